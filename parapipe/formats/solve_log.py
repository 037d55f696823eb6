"""solve_log.json: how each mapping problem was solved, and what it stands for in the network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any

from parapipe.graph.operator_graph import OperatorGraph
from parapipe.graph.partition import Partition
from parapipe.mapping.problem import MappingProblem
from parapipe.mapping.schedule import Answer, Certificate, EnergyClaim
from parapipe.pipeline.exploration import Exploration
from parapipe.pipeline.problems import Request
from parapipe.pipeline.time_energy import Locations

NOWHERE: Mapping[str, Any] = {"requests": 0, "asked_for": []}


def solve_log(
    graph: OperatorGraph,
    partition: Partition,
    exploration: Exploration,
) -> list[dict[str, Any]]:
    """Return an entry for each distinct mapping problem and each set, wall times included.

    `asked_for` says where in the network this problem occurs first: subgraphs, first and last
    operator, the processors they may run on, and where the tensors live before and behind them: on
    the processor that made each, then on those with a copy. `requests` counts all its places:
    blocks that repeat ask for the same.
    Wall time, seed and solver of a schedule from the cache (`cached`) are of the run that found it.
    """
    asked: dict[MappingProblem, dict[str, Any]] = {}
    for processors, requests in exploration.asked.items():
        for request in requests:
            if request.problem not in asked:
                place = _place(request, graph, partition, processors)
                asked[request.problem] = {"requests": 0, "asked_for": [place]}
            asked[request.problem]["requests"] += 1
    shortest = [
        {
            "operators": problem.operators,
            **_taken(schedule.certificate, "proves", "objective_s", "bound_s", "gap", "proven"),
            "makespan_s": schedule.makespan_s,
            **_taken(schedule.certificate, "wall_s", "seed", "solver"),
            "cached": problem in exploration.cached,
            **asked.get(problem, NOWHERE),
        }
        for problem, schedule in exploration.schedules.items()
    ]
    return [*shortest, *_sets(exploration, asked)]


def _taken(certificate: Certificate, *names: str) -> dict[str, Any]:
    return {name: getattr(certificate, name) for name in names}


def _sets(
    exploration: Exploration, asked: Mapping[MappingProblem, Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return an entry for each set of schedules that trade time for energy.

    `resolution` is the share within which it stands for all schedules; null if none is known. Wall
    time is that of all its schedules together.
    """
    traded = exploration.traded
    return [
        {
            "operators": question.problem.operators,
            "proves": "energy",
            "schedules": len(found.schedules),
            "resolution": found.resolution if found.resolution < inf else None,
            "gap": max(claim.gap for claim in _claims(found)),
            "proven": all(claim.proven for claim in _claims(found)),
            "wall_s": sum(point.certificate.wall_s for point in found.schedules[1:]),
            **_taken(found.schedules[-1].certificate, "seed", "solver"),
            "cached": question in traded.cached,
            **asked.get(question.problem, NOWHERE),
        }
        for question, found in traded.answers.items()
    ]


def _claims(found: Answer) -> list[EnergyClaim]:
    """Return what is proven of the energies, of the shortest schedule only if there is no other."""
    claims = [schedule.certificate.energy for schedule in found.schedules]
    return [claim for claim in claims[1:] or claims if claim]


def _place(
    request: Request, graph: OperatorGraph, partition: Partition, processors: Sequence[str]
) -> dict[str, Any]:
    """Return where in the network a request belongs."""

    def locations(unit: int, where: Locations) -> dict[str, list[str]]:
        live = partition.cuts.boundaries[unit]
        return {name: [processors[p] for p in held] for name, held in zip(live, where, strict=True)}

    usable = {p for row in request.problem.time_s for p, s in enumerate(row) if s < inf}
    return {
        "subgraphs": list(partition.numbers(request.operators)),
        "first_operator": graph.operators[request.operators[0]].id,
        "last_operator": graph.operators[request.operators[-1]].id,
        "processors": [processors[p] for p in sorted(usable)],
        "locations_before": locations(request.begin, request.locations_in),
        "locations_behind": locations(request.end, request.locations_out),
    }
