"""solve_log.json: how the mapping problems were solved, and what they stand for in the network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import Any

from parapipe.graph.operator_graph import OperatorGraph
from parapipe.graph.partition import Partition
from parapipe.search.exploration_result import Exploration
from parapipe.search.problems.problems import Request
from parapipe.search.problems.time_energy import Locations
from parapipe.solvers.problem import MappingProblem
from parapipe.solvers.schedule import Answer, Certificate, EnergyClaim

NOWHERE: Mapping[str, Any] = {"requests": 0, "asked_for": []}


def solve_log(
    graph: OperatorGraph,
    partition: Partition,
    exploration: Exploration,
) -> list[dict[str, Any]]:
    """Return how the distinct mapping problems and sets of schedules were solved.

    Those of the same operators on the same processors that were solved in the same way share an
    entry: `problems` says how many they are, `requests` how many places of the network ask for them
    (blocks that repeat ask for the same), and `wall_s` is their wall time together. The other
    figures are those of the one with the largest gap, of several the one that takes longest.

    `asked_for` says where in the network that one occurs first: subgraphs, first and last operator,
    the processors they may run on, and where the tensors live before and behind them: on the
    processor that made each, then on those with a copy. Where the entry stands for several problems
    that have no gap, these locations are left out.
    Wall time, seed and solver of a schedule from the cache (`cached`) are of the run that found it.
    """
    asked: dict[MappingProblem, dict[str, Any]] = {}
    for processors, requests in exploration.asked.items():
        for request in requests:
            if request.problem not in asked:
                place = _place(request, graph, partition, processors)
                asked[request.problem] = {"requests": 0, "asked_for": [place]}
            asked[request.problem]["requests"] += 1
    groups: dict[object, list[dict[str, Any]]] = {}
    for entry in (*_shortest(exploration, asked), *_sets(exploration, asked)):
        groups.setdefault(_shared(entry), []).append(entry)
    return [_together(entries) for entries in groups.values()]


def _shared(entry: Mapping[str, Any]) -> object:
    """Return what entries have in common that become one."""
    places = [
        (each["first_operator"], each["last_operator"], *each["processors"])
        for each in entry["asked_for"]
    ]
    how = ("operators", "proves", "proven", "seed", "solver", "cached")
    return (*places, *(entry[name] for name in how))


def _together(entries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return one entry for several that have the same in common."""
    worst = max(entries, key=lambda each: (each["gap"], each.get("makespan_s", 0.0)))
    asked_for = worst["asked_for"]
    if len(entries) > 1 and not worst["gap"]:
        asked_for = [
            {name: held for name, held in place.items() if not name.startswith("locations")}
            for place in asked_for
        ]
    sums = {name: sum(each[name] for each in entries) for name in ("requests", "wall_s")}
    return {"problems": len(entries), **worst, **sums, "asked_for": asked_for}


def _shortest(
    exploration: Exploration, asked: Mapping[MappingProblem, Mapping[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Yield an entry for each problem of which the shortest schedule was looked for."""
    for problem, schedule in exploration.schedules.items():
        yield {
            "operators": problem.operators,
            **_taken(schedule.certificate, "proves", "objective_s", "bound_s", "gap", "proven"),
            "makespan_s": schedule.makespan_s,
            **_taken(schedule.certificate, "wall_s", "seed", "solver"),
            "cached": problem in exploration.cached,
            **asked.get(problem, NOWHERE),
        }


def _taken(certificate: Certificate, *names: str) -> dict[str, Any]:
    return {name: getattr(certificate, name) for name in names}


def _sets(
    exploration: Exploration, asked: Mapping[MappingProblem, Mapping[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Yield an entry for each set of schedules that trade time for energy.

    `resolution` is the share within which it stands for all schedules; null if none is known. Wall
    time is that of all its schedules together.
    """
    traded = exploration.traded
    for question, found in traded.answers.items():
        yield {
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
