"""Every mapping problem that a search can ask for: one per unit, processors and locations.

A boundary tensor is where its producer ran, and where a copy was moved to. So a unit is not one
problem but one for each set of processors that it may use, each location of its incoming tensors,
and each processor on which its outgoing ones are made: costs of neighbouring units meet exactly.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain
from math import inf, prod
from typing import NamedTuple

from parapipe.cost.cost_table import CostTable, Matrix
from parapipe.graph import subgraphs
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.graph.partition import Partition, Unit
from parapipe.problems.exit_choices import choices_of
from parapipe.problems.time_energy import Location, Locations
from parapipe.processes.deadline import Deadline
from parapipe.solvers.problem import Flow, MappingProblem, Series, TransferResources


def whole_problem(graph: OperatorGraph, costs: CostTable) -> MappingProblem:
    """Return all operators of a graph, and every tensor that goes between them, as one problem.

    Operators keep their indices. Synchronisation and casts are in the transfers' times, as in the
    cost table's. Graph inputs are available everywhere once loaded, and have no flow.
    """
    processors = range(len(costs.processors))
    operators = range(len(graph.operators))
    return MappingProblem(
        time_s=tuple(tuple(costs.time_s(v, p) for p in processors) for v in operators),
        flows=tuple(
            Flow(graph.producer[name], readers, costs.transfer_matrix(name))
            for name, readers in graph.consumers.items()
            if name in graph.producer
        ),
        structure=tuple(operators),
        transfer_resource=costs.transfer_resource,
    )


# Combinations of locations at one boundary, copies included, that are told apart.
MOST_LOCATIONS = 64


@dataclass(frozen=True, slots=True)
class Request:
    """A mapping problem and where it belongs.

    Parameters
    ----------
    begin, end
        Boundaries before and behind it.
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


def requests(
    graph: OperatorGraph, partition: Partition, costs: CostTable, deadline: Deadline | None = None
) -> Iterator[Request]:
    """Yield every request that a search can reach, by where they end.

    Where a single processor runs a unit, what it reads of the tensors that stay live has a copy
    there from then on, and is not moved there again. Where several run it, that depends on the
    schedule, and no copy is counted on. If more than `MOST_LOCATIONS` combinations of locations
    meet at a boundary, its copies are forgotten: estimates then are on the safe side, since a plan
    moves a tensor once. Where cuts make few requests by themselves, none are forgotten.

    Raises
    ------
    OverError
        The deadline comes first.
    """
    until = deadline or Deadline()
    last = partition.cuts.last
    arriving: list[list[Request]] = [[] for _ in range(last + 1)]
    reachable: set[Locations] = {()}
    cached: dict[Template, dict[Locations, list[_UnplacedRequest]]] = {}
    for index in range(last):
        if index:
            arrived = arriving[index]
            reachable = {request.locations_out for request in arrived}
            if not copies_count(reachable, partition):
                arrived = [
                    replace(request, locations_out=without_copies(request.locations_out))
                    for request in arrived
                ]
                reachable = {request.locations_out for request in arrived}
            yield from arrived
        for each in runs_of(graph, partition, costs, index):
            by_locations = cached.setdefault(each.template, {})
            for locations in sorted(reachable):
                if locations not in by_locations:
                    unplaced = each.template.list_unplaced(locations)
                    by_locations[locations] = list(until.each(unplaced))
                some = by_locations[locations]
                arriving[each.end] += [each.request(locations, one) for one in some]
    yield from arriving[-1]


def runs_of(
    graph: OperatorGraph, partition: Partition, costs: CostTable, index: int
) -> Iterator[UnitRun]:
    """Yield what can be run from a boundary on."""
    cuts = partition.cuts
    for run in cuts.runs[index]:
        boundaries = cuts.boundaries[index], cuts.boundaries[run.end]
        reads = (graph.reads(graph.operators[v]) for v in run.unit.operators)
        names = tuple(dict.fromkeys(chain.from_iterable(reads)))
        template = _make_template(graph, costs, run.unit, names, boundaries, alone=run.alone)
        yield UnitRun(index, run.end, run.unit.operators, names, template)


def copies_count(places: Collection[Locations], partition: Partition) -> bool:
    """Tell whether copies are told apart at a boundary where so many locations meet."""
    return partition.cuts.few or len(places) <= MOST_LOCATIONS


def without_copies(locations: Locations) -> Locations:
    """Return where tensors were made."""
    return tuple(location[:1] for location in locations)


class _UnplacedRequest(NamedTuple):
    """A request without its place in the network; `reads` are the places of its flows' tensors."""

    problem: MappingProblem
    reads: tuple[int, ...]
    locations_out: Locations


class FromOutside(NamedTuple):
    """A tensor that a unit reads: its place among those live before, None for a graph input."""

    readers: tuple[int, ...]
    transfer_s: Matrix
    before: int | None


class UnitMode(NamedTuple):
    """A set of processors (a mask), where the exits run, and the times that are left by that."""

    processors: int
    pins: dict[int, int]
    time_s: tuple[tuple[float, ...], ...]

    def inside(self, location: Location) -> bool:
        """Tell whether a tensor is wherever it may be read."""
        return not self.processors & ~sum(1 << p for p in location)


class Template(NamedTuple):
    """What requests of equal units share; operators go by their places in the unit.

    Parameters
    ----------
    time_s
        On all processors.
    exits
        Operators that make what is live behind the unit; the last one if none does.
    read
        Of each tensor that is live before the unit, whether it reads it.
    behind
        Of each tensor that is live behind it: the operator that makes it, or if none does, its
        place among those before.
    alone
        Whether it is one unit: one processor runs several as well one by one.
    """

    time_s: tuple[tuple[float, ...], ...]
    reads: tuple[Flow | FromOutside, ...]
    structure: Series
    exits: tuple[int, ...]
    read: tuple[bool, ...]
    behind: tuple[tuple[int | None, int], ...]
    alone: bool
    transfer_resource: TransferResources

    def modes(self, most: float = inf) -> Sequence[UnitMode]:
        """Return sets of processors with choices for the exits, of these at most about so many."""
        return _list_modes(self.time_s, self.exits, 1 if self.alone else 2, most)

    @property
    def choices(self) -> int:
        """How many choices of processors there are for the exits."""
        return prod(sum(time_s < inf for time_s in self.time_s[v]) for v in self.exits)

    def list_unplaced(self, locations: Locations) -> Iterator[_UnplacedRequest]:
        """Yield what can be asked for, given where incoming tensors are."""
        seen: set[MappingProblem] = set()
        for mode in self.modes():
            unplaced = self.unplaced(locations, mode)
            if unplaced.problem not in seen:
                seen.add(unplaced.problem)
                yield unplaced

    def unplaced(self, locations: Locations, mode: UnitMode) -> _UnplacedRequest:
        """Return what one way asks for."""
        flows: dict[int, Flow] = {}
        for i, read in enumerate(self.reads):
            if isinstance(read, Flow):
                flows[i] = read
            # A graph input is available everywhere once loaded; so may be a copied tensor.
            elif read.before is not None and not mode.inside(locations[read.before]):
                at = locations[read.before]
                flows[i] = Flow(None, read.readers, _with_copies(read.transfer_s, at), at[0])
        parts = (tuple(flows.values()), self.structure, self.transfer_resource)
        problem = MappingProblem(mode.time_s, *parts)
        return _UnplacedRequest(problem, tuple(flows), self.locations_out(locations, mode))

    def locations_out(self, locations: Locations, mode: UnitMode) -> Locations:
        """Return where tensors are behind it."""
        copied = self.copied(locations, mode.processors)
        return tuple(
            copied[before] if maker is None else (mode.pins[maker],)
            for maker, before in self.behind
        )

    def copied(self, locations: Locations, processors: int) -> Locations:
        """Return the locations of incoming tensors behind the unit, if these processors run it."""
        if processors.bit_count() > 1:
            return locations
        target = processors.bit_length() - 1
        return tuple(
            (location[0], *sorted((*location[1:], target)))
            if read and target not in location
            else location
            for location, read in zip(locations, self.read, strict=True)
        )


class UnitRun(NamedTuple):
    """A unit, or several as one, at its place in the network; `names` are the tensors it reads."""

    begin: int
    end: int
    operators: tuple[int, ...]
    names: tuple[str, ...]
    template: Template

    def request(self, locations: Locations, unplaced: _UnplacedRequest) -> Request:
        """Return the request for something that the template asks for."""
        return Request(
            self.begin,
            self.end,
            self.operators,
            locations,
            unplaced.locations_out,
            unplaced.problem,
            tuple(self.names[i] for i in unplaced.reads),
        )


def _make_template(
    graph: OperatorGraph,
    costs: CostTable,
    unit: Unit,
    names: Sequence[str],
    boundaries: tuple[Sequence[str], Sequence[str]],
    *,
    alone: bool,
) -> Template:
    """Return what requests of a unit share; `boundaries`: the tensors live before and behind it."""
    before = {name: i for i, name in enumerate(boundaries[0])}
    local = {v: i for i, v in enumerate(unit.operators)}
    makers = [graph.producer[name] for name in boundaries[1]]
    exits = sorted({v for v in makers if v in local}) or [unit.operators[-1]]
    return Template(
        time_s=tuple(
            tuple(costs.time_s(v, p) for p in range(len(costs.processors))) for v in unit.operators
        ),
        reads=tuple(_flow_of(graph, costs, name, local, before) for name in names),
        structure=_localise(unit.structure, local),
        exits=tuple(local[v] for v in exits),
        read=tuple(not local.keys().isdisjoint(graph.consumers[name]) for name in before),
        behind=tuple(
            (local.get(v), before.get(name, -1))
            for v, name in zip(makers, boundaries[1], strict=True)
        ),
        alone=alone,
        transfer_resource=costs.transfer_resource,
    )


def _flow_of(
    graph: OperatorGraph,
    costs: CostTable,
    name: str,
    local: Mapping[int, int],
    before: Mapping[str, int],
) -> Flow | FromOutside:
    readers = tuple(sorted(local[v] for v in graph.consumers[name] if v in local))
    maker = local.get(graph.producer.get(name, -1))
    matrix = costs.transfer_matrix(name)
    if maker is None:
        return FromOutside(readers, matrix, before.get(name))
    return Flow(maker, readers, matrix)


def _localise(series: subgraphs.Series, local: dict[int, int]) -> Series:
    return tuple(
        local[step] if isinstance(step, int) else tuple(_localise(each, local) for each in step)
        for step in series
    )


@lru_cache(maxsize=8)  # it is the same for all locations
def _list_modes(
    time_s: tuple[tuple[float, ...], ...], exits: tuple[int, ...], least: int, most: float
) -> tuple[UnitMode, ...]:
    """Return sets of `least` or more processors, with choices for the exits.

    Processors that can run none of the operators are in no set, and all of them run somewhere.
    """
    count = range(len(time_s[0]))
    able = sum(1 << p for p in count if any(row[p] < inf for row in time_s))
    support = [tuple(p for p in count if time_s[v][p] < inf) for v in exits]
    choices = [(sum(1 << p for p in {*each}), each) for each in choices_of(support, most)]
    modes = []
    most_used = min(len(time_s), len(count))
    for processors in range(1 << len(count)):
        if processors & ~able or not least <= processors.bit_count() <= most_used:
            continue
        rows = [tuple(row[p] if processors >> p & 1 else inf for p in count) for row in time_s]
        if not all(min(row) < inf for row in rows):
            continue
        for chosen in (each for used, each in choices if not used & ~processors):
            pins = dict(zip(exits, chosen, strict=True))
            left = [
                tuple(t if p == pins[v] else inf for p, t in enumerate(row)) if v in pins else row
                for v, row in enumerate(rows)
            ]
            modes.append(UnitMode(processors, pins, tuple(left)))
    return tuple(modes)


def _with_copies(matrix: Matrix, location: Location) -> Matrix:
    """Return the matrix with nothing to pay from where a tensor was made to where copies are."""
    if len(location) == 1:
        return matrix
    maker, *copies = location
    row = tuple(0.0 if q in copies else time_s for q, time_s in enumerate(matrix[maker]))
    return (*matrix[:maker], row, *matrix[maker + 1 :])
