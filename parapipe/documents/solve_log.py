"""solve_log.json: how the mapping problems were solved, and what they stand for in the network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import Any

from parapipe.graph.operator_graph import OperatorGraph
from parapipe.graph.partition import Partition
from parapipe.problems.problems import Request
from parapipe.problems.time_energy import Locations
from parapipe.search.exploration_result import Exploration
from parapipe.solvers.problem import MappingProblem
from parapipe.solvers.schedule import Answer, Certificate, EnergyClaim

NOWHERE: Mapping[str, Any] = {"requests": 0, "asked_for": []}


def solve_log(
    graph: OperatorGraph, partition: Partition, exploration: Exploration
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
    places: dict[MappingProblem, dict[str, Any]] = {}
    for processors, requests in exploration.asked.items():
        for request in requests:
            if request.problem not in places:
                place = _place_in_network(request, graph, partition, processors)
                places[request.problem] = {"requests": 0, "asked_for": [place]}
            places[request.problem]["requests"] += 1
    groups: dict[object, list[dict[str, Any]]] = {}
    for entry in (*_shortest_entries(exploration, places), *_set_entries(exploration, places)):
        groups.setdefault(_grouping_key(entry), []).append(entry)
    return [_merge_entries(entries) for entries in groups.values()]


def _grouping_key(entry: Mapping[str, Any]) -> object:
    """Return what entries have in common that become one."""
    places = [
        (each["first_operator"], each["last_operator"], *each["processors"])
        for each in entry["asked_for"]
    ]
    how = ("operators", "proves", "proven", "seed", "solver", "cached")
    return (*places, *(entry[name] for name in how))


def _merge_entries(entries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return one entry for several that have the same in common."""
    worst = max(entries, key=lambda each: (each["gap"], each.get("makespan_s", 0.0)))
    asked_for = worst["asked_for"]
    if len(entries) > 1 and not worst["gap"]:
        asked_for = [
            {name: value for name, value in place.items() if not name.startswith("locations")}
            for place in asked_for
        ]
    sums = {name: sum(each[name] for each in entries) for name in ("requests", "wall_s")}
    return {"problems": len(entries), **worst, **sums, "asked_for": asked_for}


def _shortest_entries(
    exploration: Exploration, places: Mapping[MappingProblem, Mapping[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Yield an entry for each problem of which the shortest schedule was looked for."""
    for problem, schedule in exploration.schedules.items():
        yield {
            "operators": problem.operators,
            **_fields_of(schedule.certificate, "proves", "objective_s", "bound_s", "gap", "proven"),
            "makespan_s": schedule.makespan_s,
            **_fields_of(schedule.certificate, "wall_s", "seed", "solver"),
            "cached": problem in exploration.cached,
            **places.get(problem, NOWHERE),
        }


def _fields_of(certificate: Certificate, *names: str) -> dict[str, Any]:
    return {name: getattr(certificate, name) for name in names}


def _set_entries(
    exploration: Exploration, places: Mapping[MappingProblem, Mapping[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Yield an entry for each set of schedules that trade time for energy.

    `resolution` is the share within which it stands for all schedules; null if none is known. Wall
    time is that of all its schedules together.
    """
    traded = exploration.traded
    for question, answer in traded.answers.items():
        yield {
            "operators": question.problem.operators,
            "proves": "energy",
            "schedules": len(answer.schedules),
            "resolution": answer.resolution if answer.resolution < inf else None,
            "gap": max(claim.gap for claim in _energy_claims(answer)),
            "proven": all(claim.proven for claim in _energy_claims(answer)),
            "wall_s": sum(point.certificate.wall_s for point in answer.schedules[1:]),
            **_fields_of(answer.schedules[-1].certificate, "seed", "solver"),
            "cached": question in traded.cached,
            **places.get(question.problem, NOWHERE),
        }


def _energy_claims(answer: Answer) -> list[EnergyClaim]:
    """Return what is proven of the energies, of the shortest schedule only if there is no other."""
    claims = [schedule.certificate.energy for schedule in answer.schedules]
    return [claim for claim in claims[1:] or claims if claim]


def _place_in_network(
    request: Request, graph: OperatorGraph, partition: Partition, processors: Sequence[str]
) -> dict[str, Any]:
    """Return where in the network a request belongs."""

    def locations(unit: int, where: Locations) -> dict[str, list[str]]:
        live = partition.cuts.boundaries[unit]
        names = ([processors[p] for p in holders] for holders in where)
        return dict(zip(live, names, strict=True))

    usable = {p for row in request.problem.time_s for p, s in enumerate(row) if s < inf}
    return {
        "subgraphs": list(partition.numbers(request.operators)),
        "first_operator": graph.operators[request.operators[0]].id,
        "last_operator": graph.operators[request.operators[-1]].id,
        "processors": [processors[p] for p in sorted(usable)],
        "locations_before": locations(request.begin, request.locations_in),
        "locations_behind": locations(request.end, request.locations_out),
    }
