"""solve_log.json: how each mapping problem was solved, and what it stands for in the network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any

from parapipe.graph.operator_graph import OperatorGraph
from parapipe.graph.partition import Partition
from parapipe.mapping.problem import MappingProblem
from parapipe.pipeline.explore import Exploration
from parapipe.pipeline.problems import Request
from parapipe.pipeline.time_energy import Locations


def solve_log(
    graph: OperatorGraph,
    partition: Partition,
    processors: Sequence[str],
    exploration: Exploration,
) -> list[dict[str, Any]]:
    """Return an entry for each distinct mapping problem and each set, wall times included.

    `asked_for` lists the pieces of the network that are this problem: subgraphs, first and last
    operator, the processors they may run on, and where the tensors live before and behind them: on
    the processor that made each, then on those with a copy.
    Wall time, seed and solver of a schedule from the cache (`cached`) are of the run that found it.
    """
    places = _Places(graph, partition, processors)
    asked: dict[MappingProblem, list[dict[str, Any]]] = {}
    for request in exploration.asked:
        asked.setdefault(request.problem, []).append(places.entry(request))
    shortest = [
        {
            "operators": problem.operators,
            "proves": schedule.certificate.proves,
            "objective_s": schedule.certificate.objective_s,
            "bound_s": schedule.certificate.bound_s,
            "gap": schedule.certificate.gap,
            "proven": schedule.certificate.proven,
            "makespan_s": schedule.makespan_s,
            "wall_s": schedule.certificate.wall_s,
            "seed": schedule.certificate.seed,
            "solver": schedule.certificate.solver,
            "cached": problem in exploration.cached,
            "asked_for": asked.get(problem, []),
        }
        for problem, schedule in exploration.schedules.items()
    ]
    return [*shortest, *_sets(exploration, asked)]


def _sets(
    exploration: Exploration, asked: Mapping[MappingProblem, list[dict[str, Any]]]
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
            "schedules": len(found.points),
            "resolution": found.resolution if found.resolution < inf else None,
            "gap": max(point.claim.gap for point in found.points[1:] or found.points),
            "proven": all(point.claim.proven for point in found.points[1:] or found.points),
            "wall_s": sum(point.claim.wall_s for point in found.points[1:]),
            "seed": found.points[-1].claim.seed,
            "solver": found.points[-1].claim.solver,
            "cached": question in traded.cached,
            "asked_for": asked.get(question.problem, []),
        }
        for question, found in traded.answers.items()
    ]


class _Places:
    """Tells where in the network a request belongs."""

    def __init__(
        self, graph: OperatorGraph, partition: Partition, processors: Sequence[str]
    ) -> None:
        self.graph = graph
        self.partition = partition
        self.processors = processors
        self.subgraph_of_unit = [
            number
            for number, subgraph in enumerate(partition.subgraphs, start=1)
            for _ in subgraph.units
        ]

    def entry(self, request: Request) -> dict[str, Any]:
        before = self.partition.boundaries[request.begin]
        behind = self.partition.boundaries[request.end]
        usable = {p for row in request.problem.time_s for p, s in enumerate(row) if s < inf}
        return {
            "subgraphs": sorted(set(self.subgraph_of_unit[request.begin : request.end])),
            "first_operator": self.graph.operators[request.operators[0]].id,
            "last_operator": self.graph.operators[request.operators[-1]].id,
            "processors": [self.processors[p] for p in sorted(usable)],
            "locations_before": self._places(before, request.locations_in),
            "locations_behind": self._places(behind, request.locations_out),
        }

    def _places(self, tensors: Sequence[str], locations: Locations) -> dict[str, list[str]]:
        return {
            name: [self.processors[p] for p in location]
            for name, location in zip(tensors, locations, strict=True)
        }
