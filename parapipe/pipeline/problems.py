"""Every mapping problem that a pipeline search can ask for: one per unit, processors and homes.

A boundary tensor lives where its producer ran, and where a copy was moved to. So a unit is not one
problem but one for each set of processors it may use, each home of its incoming tensors, and each
processor on which its outgoing ones are made: costs of neighbouring units then meet exactly.
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
from parapipe.pipeline.fronts import Home, Homes

# Combinations of homes at one boundary, copies included, that are told apart.
MOST_HOMES = 64


@dataclass(frozen=True, slots=True)
class Request:
    """A mapping problem and where it belongs.

    Parameters
    ----------
    begin, end
        Range of units that it runs, the end exclusive: one unit, or a span.
    operators
        Their operators, in the order of the problem's.
    homes_in, homes_out
        Homes of the tensors that are live before and behind it.
    problem
        Its operators on all processors of the platform.
    tensors
        Names of the problem's flows.
    """

    begin: int
    end: int
    operators: tuple[int, ...]
    homes_in: Homes
    homes_out: Homes
    problem: MappingProblem
    tensors: tuple[str, ...]


def requests(graph: OperatorGraph, partition: Partition, costs: CostTable) -> Iterator[Request]:
    """Yield every request that a search can reach, by where they end.

    Where a single processor runs a unit, what it reads of the tensors that stay live has a copy
    there from then on, and is not moved there again. Where several run it, that depends on the
    schedule, and no copy is counted on. If more than `MOST_HOMES` combinations of homes meet at
    a boundary, its copies are forgotten: estimates then are on the safe side, since a plan moves a
    tensor once.
    """
    arriving: list[list[Request]] = [[] for _ in range(len(partition.units) + 1)]
    reachable: set[Homes] = {()}
    spans = {span.begin: span for span in partition.spans}
    for index, unit in enumerate(partition.units):
        if index:
            arrived = _told_apart(arriving[index])
            reachable = {request.homes_out for request in arrived}
            yield from arrived
        ends = [(index + 1, unit)]
        if index in spans:
            ends.append((spans[index].end, spans[index].unit))
        for end, whole in ends:
            before, behind = partition.boundaries[index], partition.boundaries[end]
            template = _Template(graph, costs, whole, before, behind)
            arriving[end] += template.requests(index, end, reachable)
    yield from arriving[-1]


def _told_apart(requests: Sequence[Request]) -> list[Request]:
    if len({request.homes_out for request in requests}) <= MOST_HOMES:
        return list(requests)
    return [
        replace(request, homes_out=tuple(home[:1] for home in request.homes_out))
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

    def requests(self, begin: int, end: int, reachable: Iterable[Homes]) -> Iterator[Request]:
        """Yield what can be asked for, given the homes that incoming tensors may have."""
        operators = self.unit.operators
        exits = sorted({self.graph.producer[name] for name in self.behind} & set(operators))
        least = 1 if end == begin + 1 else 2  # one processor does as well unit by unit
        placed = list(self.placements(exits or [operators[-1]], least))
        for homes in sorted(reachable):
            home_of = dict(zip(self.before, homes, strict=True))
            seen: set[MappingProblem] = set()
            for processors, pins in placed:
                flows = dict(self._flows(home_of, processors))
                problem = self.problem(tuple(flows.values()), processors, pins)
                if problem is None or problem in seen:
                    continue
                seen.add(problem)
                copied = self.copied(home_of, processors)
                homes_out = tuple(
                    copied[name] if name in copied else (pins[self.graph.producer[name]],)
                    for name in self.behind
                )
                yield Request(begin, end, operators, homes, homes_out, problem, tuple(flows))

    def placements(self, exits: Sequence[int], least: int) -> Iterator[tuple[int, dict[int, int]]]:
        """Yield sets of `least` or more processors (masks), with every choice for the exits."""
        count = len(self.costs.processors)
        for mask in range(1, 1 << count):
            if least <= mask.bit_count() <= len(self.unit.operators):
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
        return MappingProblem(rows, flows, self._structure(), self.costs.carrier)

    def copied(self, home_of: Mapping[str, Home], processors: int) -> dict[str, Home]:
        """Return the homes of incoming tensors behind the unit, if these processors run it."""
        if processors.bit_count() > 1:
            return dict(home_of)
        target = processors.bit_length() - 1
        inside = set(self.unit.operators)
        return {
            name: home
            if target in home or inside.isdisjoint(self.graph.consumers[name])
            else (home[0], *sorted((*home[1:], target)))
            for name, home in home_of.items()
        }

    def _flows(self, home_of: Mapping[str, Home], processors: int) -> Iterator[tuple[str, Flow]]:
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
            elif name in home_of and processors & ~sum(1 << p for p in home_of[name]):
                home = home_of[name]
                yield name, Flow(None, readers, _with_copies(matrix, home), home[0])

    def _structure(self) -> Series:
        local = {v: i for i, v in enumerate(self.unit.operators)}

        def renamed(series: Series) -> Series:
            return tuple(
                local[step] if isinstance(step, int) else tuple(renamed(branch) for branch in step)
                for step in series
            )

        return renamed(self.unit.structure)


def _with_copies(matrix: Matrix, home: Home) -> Matrix:
    """Return the matrix with nothing to pay from where a tensor was made to where copies are."""
    if len(home) == 1:
        return matrix
    made, *copies = home
    row = tuple(0.0 if q in copies else time_s for q, time_s in enumerate(matrix[made]))
    return (*matrix[:made], row, *matrix[made + 1 :])
