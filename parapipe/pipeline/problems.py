"""Every mapping problem that a pipeline search can ask for: one per unit, processors and locations.

A boundary tensor is where its producer ran, and where a copy was moved to. So a unit is not one
problem but one for each set of processors that it may use, each location of its incoming tensors,
and each processor on which its outgoing ones are made: costs of neighbouring units meet exactly.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import inf

from parapipe.cost.cost_table import CostTable, Matrix
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.graph.partition import Partition, Unit
from parapipe.mapping.problem import Flow, MappingProblem, Series
from parapipe.pipeline.time_energy import Location, Locations

# Combinations of locations at one boundary, copies included, that are told apart.
MOST_LOCATIONS = 64


@dataclass(frozen=True, slots=True)
class Request:
    """A mapping problem and where it belongs.

    Parameters
    ----------
    begin, end
        Range of units that it runs, the end exclusive: one unit, or a merged unit.
    operators
        Their operators, in the order of the problem's.
    locations_in, locations_out
        Locations of the tensors that are live before and behind it.
    problem
        Its operators on all processors of the platform.
    tensors
        Names of the problem's flows.
    """

    begin: int
    end: int
    operators: tuple[int, ...]
    locations_in: Locations
    locations_out: Locations
    problem: MappingProblem
    tensors: tuple[str, ...]


def requests(graph: OperatorGraph, partition: Partition, costs: CostTable) -> Iterator[Request]:
    """Yield every request that a search can reach, by where they end.

    Where a single processor runs a unit, what it reads of the tensors that stay live has a copy
    there from then on, and is not moved there again. Where several run it, that depends on the
    schedule, and no copy is counted on. If more than `MOST_LOCATIONS` combinations of locations
    meet at a boundary, its copies are forgotten: estimates then are on the safe side, since a plan
    moves a tensor once.
    """
    arriving: list[list[Request]] = [[] for _ in range(len(partition.units) + 1)]
    reachable: set[Locations] = {()}
    merged = {unit.begin: unit for unit in partition.merged_units}
    for index, unit in enumerate(partition.units):
        if index:
            arrived = _told_apart(arriving[index])
            reachable = {request.locations_out for request in arrived}
            yield from arrived
        ends = [(index + 1, unit)]
        if index in merged:
            ends.append((merged[index].end, merged[index].unit))
        for end, whole in ends:
            before, behind = partition.boundaries[index], partition.boundaries[end]
            template = _Template(graph, costs, whole, before, behind)
            arriving[end] += template.requests(index, end, reachable)
    yield from arriving[-1]


def _told_apart(requests: Sequence[Request]) -> list[Request]:
    if len({request.locations_out for request in requests}) <= MOST_LOCATIONS:
        return list(requests)
    return [
        replace(request, locations_out=tuple(location[:1] for location in request.locations_out))
        for request in requests
    ]


@dataclass(frozen=True, slots=True)
class _Template:
    """What all problems of one unit share; `before` and `behind` are the tensors live there."""

    graph: OperatorGraph
    costs: CostTable
    unit: Unit
    before: tuple[str, ...]
    behind: tuple[str, ...]

    def requests(self, begin: int, end: int, reachable: Iterable[Locations]) -> Iterator[Request]:
        """Yield what can be asked for, given the locations that incoming tensors may have."""
        operators = self.unit.operators
        exits = sorted({self.graph.producer[name] for name in self.behind} & set(operators))
        least = 1 if end == begin + 1 else 2  # one processor does as well unit by unit
        placed = list(self.placements(exits or [operators[-1]], least))
        for locations in sorted(reachable):
            locations_of = dict(zip(self.before, locations, strict=True))
            seen: set[MappingProblem] = set()
            for processors, pins in placed:
                flows = dict(self._flows(locations_of, processors))
                problem = self.problem(tuple(flows.values()), processors, pins)
                if problem is None or problem in seen:
                    continue
                seen.add(problem)
                copied = self.copied(locations_of, processors)
                locations_out = tuple(
                    copied[name] if name in copied else (pins[self.graph.producer[name]],)
                    for name in self.behind
                )
                yield Request(
                    begin, end, operators, locations, locations_out, problem, tuple(flows)
                )

    def placements(self, exits: Sequence[int], least: int) -> Iterator[tuple[int, dict[int, int]]]:
        """Yield sets of `least` or more processors (masks), with every choice for the exits.

        Processors that can run none of the operators are in no set.
        """
        count = len(self.costs.processors)
        able = sum(
            1 << p
            for p in range(count)
            if any(self.costs.time_s(v, p) < inf for v in self.unit.operators)
        )
        for mask in range(1, 1 << count):
            if not mask & ~able and least <= mask.bit_count() <= len(self.unit.operators):
                inside = [p for p in range(count) if mask >> p & 1]
                for chosen in product(inside, repeat=len(exits)):
                    yield mask, dict(zip(exits, chosen, strict=True))

    def problem(
        self, flows: tuple[Flow, ...], processors: int, pins: Mapping[int, int]
    ) -> MappingProblem | None:
        """Return the problem, or None if an operator has nowhere to run."""
        rows = tuple(
            tuple(
                self.costs.time_s(v, p) if processors >> p & 1 and pins.get(v, p) == p else inf
                for p in range(len(self.costs.processors))
            )
            for v in self.unit.operators
        )
        if any(min(row) == inf for row in rows):
            return None
        return MappingProblem(rows, flows, self._structure(), self.costs.transfer_resource)

    def copied(self, locations_of: Mapping[str, Location], processors: int) -> dict[str, Location]:
        """Return the locations of incoming tensors behind the unit, if these processors run it."""
        if processors.bit_count() > 1:
            return dict(locations_of)
        target = processors.bit_length() - 1
        inside = set(self.unit.operators)
        return {
            name: location
            if target in location or inside.isdisjoint(self.graph.consumers[name])
            else (location[0], *sorted((*location[1:], target)))
            for name, location in locations_of.items()
        }

    def _flows(
        self, locations_of: Mapping[str, Location], processors: int
    ) -> Iterator[tuple[str, Flow]]:
        """Yield the tensors that operators wait for, by name."""
        local = {v: i for i, v in enumerate(self.unit.operators)}
        names = dict.fromkeys(
            name for v in self.unit.operators for name in self.graph.reads(self.graph.operators[v])
        )
        for name in names:
            producer = local.get(self.graph.producer.get(name, -1))
            readers = tuple(sorted(local[v] for v in self.graph.consumers[name] if v in local))
            matrix = self.costs.transfer_matrix(name)
            if producer is not None:
                yield name, Flow(producer, readers, matrix)
            # A graph input is available everywhere once loaded; so may be a copied tensor.
            elif name in locations_of and processors & ~sum(1 << p for p in locations_of[name]):
                location = locations_of[name]
                yield name, Flow(None, readers, _with_copies(matrix, location), location[0])

    def _structure(self) -> Series:
        local = {v: i for i, v in enumerate(self.unit.operators)}

        def renamed(series: Series) -> Series:
            return tuple(
                local[step] if isinstance(step, int) else tuple(renamed(branch) for branch in step)
                for step in series
            )

        return renamed(self.unit.structure)


def _with_copies(matrix: Matrix, location: Location) -> Matrix:
    """Return the matrix with nothing to pay from where a tensor was made to where copies are."""
    if len(location) == 1:
        return matrix
    made, *copies = location
    row = tuple(0.0 if q in copies else time_s for q, time_s in enumerate(matrix[made]))
    return (*matrix[:made], row, *matrix[made + 1 :])
