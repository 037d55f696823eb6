"""A chosen split as a graph of its own: its operators, what they cost, and when they run."""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf

from parapipe.cost.cost_table import CostTable
from parapipe.cost.price import OperatorCost
from parapipe.errors import SplitError
from parapipe.graph.operator_graph import Operator, OperatorGraph
from parapipe.graph.part_marks import tensor_and_part
from parapipe.mappings.assignment import Assignment
from parapipe.mappings.configuration import SplitModel
from parapipe.parts.part import Range
from parapipe.platform.support import Refusal
from parapipe.search.stages.unit_schedules import Choice
from parapipe.split_search.execution_modes import ExecutionModes, Split
from parapipe.split_search.part_prices import scaled_cost
from parapipe.split_search.problem import ExecutionMode

_CUTTING = "Slice"

Splitter = Callable[[Sequence[str]], OperatorGraph]
Pricer = Callable[[OperatorGraph], CostTable]


def rules_of(modes: Sequence[ExecutionMode], graph: OperatorGraph) -> tuple[str, ...]:
    """Return the rules that split a model as chosen modes do."""
    return tuple(rule_of(mode.mark, graph) for mode in modes if isinstance(mode.mark, Split))


def rule_of(split: Split, graph: OperatorGraph) -> str:
    """Return a rule of a run, of one operator too: that names just these, whatever their names."""
    first, last = (graph.operators[split.operators[end]].id for end in (0, -1))
    axis = split.ranges[0].axis
    sizes = [each.size for each in split.ranges]
    return f"{first}..{last}:{axis}={','.join(map(str, sizes))}"


@dataclass(frozen=True, slots=True)
class _Place:
    """Where an operator of the split graph comes from; `v`: -1 if it only serves others."""

    key: tuple[float, ...]
    processor: int
    v: int
    split: Split | None = None
    range_: Range | None = None


def split_and_assign(
    modes: Sequence[ExecutionMode],
    execution_modes: ExecutionModes,
    splitter: Splitter,
    pricer: Pricer,
    cuts: Sequence[int],
) -> tuple[SplitModel, Assignment]:
    """Return the split model of chosen modes, and where its operators run, in which order.

    Parameters
    ----------
    cuts
        Places in the order of operators at which a stage begins, but for the first one.

    Raises
    ------
    SplitError
        If the model cannot be split so.
    """
    rules = rules_of(modes, execution_modes.graph)
    graph = splitter(rules)
    place_of = _places(modes, execution_modes)
    _check_split(modes, execution_modes, graph)
    keys = [_place_key(operator, place_of) for operator in graph.operators]
    incomplete: list[_Place | None] = [place_of[key] if key else None for key in keys]
    table = pricer(graph)
    _place_others(graph, incomplete, table, cuts)
    places = [place for place in incomplete if place is not None]
    assert len(places) == len(incomplete)
    costs = _costs_of_split(table, places, execution_modes)
    order = topological_order(graph, [place.key for place in places])
    bounds = [-inf, *cuts, inf]
    stages = tuple(
        tuple(v for v in order if begin <= places[v].key[0] < end)
        for begin, end in pairwise(bounds)
    )
    assignment = Assignment(tuple(place.processor for place in places), stages, ordered=True)
    return SplitModel(rules, graph, costs), assignment


def _check_split(
    modes: Sequence[ExecutionMode], execution_modes: ExecutionModes, graph: OperatorGraph
) -> None:
    """Check that what was to be split is not in the graph as a whole.

    Not all parts need be there: a Concat of a single range is no operator. A view before the
    operator's result may stay.

    Raises
    ------
    SplitError
        If an operator stayed whole.
    """
    present = {name for operator in graph.operators for name in operator.members}
    for mode in modes:
        if isinstance(mode.mark, Split):
            operator = execution_modes.graph.operators[mode.mark.operators[-1]]
            if operator.members[-1] in present:
                raise SplitError(f"'{operator.name}' stays whole where its parts were counted on")


def _places(
    modes: Sequence[ExecutionMode], execution_modes: ExecutionModes
) -> dict[tuple[str, int], _Place]:
    """Return places by the name of an ONNX node and the number of the part, -1 if it is whole."""
    members = [operator.members for operator in execution_modes.graph.operators]
    return {
        (name, number): place
        for mode in modes
        for number, place in _places_of_mode(mode, execution_modes)
        for name in members[place.v]
    }


def _places_of_mode(
    mode: ExecutionMode, execution_modes: ExecutionModes
) -> Iterator[tuple[int, _Place]]:
    if isinstance(mode.mark, Choice):  # operators that run side by side, in order of their start
        schedule, operators = mode.mark.schedule, mode.mark.request.operators
        for v, p, start_s in zip(operators, schedule.processor, schedule.start_s, strict=True):
            yield -1, _Place((float(mode.begin), 0.0, start_s), p, v)
        return
    split = mode.mark if isinstance(mode.mark, Split) else None
    for number, piece in enumerate(mode.pieces):
        range_ = split.ranges[number] if split else None
        for inside, v in enumerate(execution_modes.order[mode.begin : mode.end]):
            key = (float(mode.begin), float(number), float(inside))
            yield number if split else -1, _Place(key, piece.processor, v, split, range_)


def _place_key(
    operator: Operator, places: Mapping[tuple[str, int], _Place]
) -> tuple[str, int] | None:
    """Return the key of an operator's place; None if it only serves others."""
    for name in operator.members:
        for key in ((name, -1), tensor_and_part(name)):
            if key in places:
                return key
    return None


def _place_others(
    graph: OperatorGraph,
    places: list[_Place | None],
    table: CostTable,
    cuts: Sequence[int],
) -> None:
    """Place what joins parts where they are read, and what cuts tensors, too, if these are there.

    What cuts a tensor for another processor stands where the tensor is made. What its processor
    cannot run stands on that of its stage where it takes least.

    Raises
    ------
    SplitError
        If no processor of its stage can run it.
    """
    others = [v for v, place in enumerate(places) if place is None]
    for v in reversed(others):
        behind = [place for w in graph.successors(v) if (place := places[w])]
        neighbour = min(behind, key=lambda place: place.key, default=None)
        neighbour = neighbour or _place_before(graph, places, v)
        places[v] = replace(neighbour, key=(neighbour.key[0], -1.0, *neighbour.key[1:]), v=-1)
    for v in others:
        before = [place for u in graph.predecessors(v) if (place := places[u])]
        readers = {place.processor for w in graph.successors(v) if (place := places[w])}
        if graph.operators[v].type == _CUTTING and before and readers - {before[0].processor}:
            places[v] = replace(before[0], key=(*before[0].key, 1.0), v=-1)
    for v in others:
        if (place := places[v]) and table.time_s(v, place.processor) == inf:
            stage = bisect_right(cuts, place.key[0])
            there = {
                each.processor
                for each in places
                if each and bisect_right(cuts, each.key[0]) == stage
            }
            fastest = min(there, key=lambda p: table.time_s(v, p))
            if table.time_s(v, fastest) == inf:
                name, kind = graph.operators[v].name, graph.operators[v].type
                raise SplitError(f"no processor of its stage can run the {kind} '{name}'")
            places[v] = replace(place, processor=fastest)


def _place_before(graph: OperatorGraph, places: Sequence[_Place | None], v: int) -> _Place:
    """Return the place of an operator before one: of what it reads, or of what that reads."""
    producers = (place for u in graph.predecessors(v) if (place := places[u]))
    return next(producers, None) or _place_before(graph, places, min(graph.predecessors(v)))


def _costs_of_split(
    table: CostTable, places: Sequence[_Place], execution_modes: ExecutionModes
) -> CostTable:
    """Return what a split graph costs; what cuts and joins, as it costs by itself."""
    entries = []
    counted: set[tuple[int, float]] = set()
    for v, place in enumerate(places):
        if place.v < 0:
            entries.append(table.entries[v])
            continue
        first = (place.v, place.key[1]) not in counted
        counted.add((place.v, place.key[1]))
        row = execution_modes.prices.costs.entries[place.v]
        entries.append(
            tuple(_entry_of_split(e, place, p, execution_modes, first) for p, e in enumerate(row))
        )
    return replace(table, entries=tuple(entries))


def _entry_of_split(
    entry: OperatorCost | Refusal,
    place: _Place,
    p: int,
    execution_modes: ExecutionModes,
    first: bool,
) -> OperatorCost | Refusal:
    """Return what an operator of a split graph costs on a processor, given what the whole does.

    What is one operator in the model may be several in the split graph: the first has all costs.
    """
    if isinstance(entry, Refusal):
        return entry
    if not first:
        return scaled_cost(entry, 0.0)
    if place.split is None or place.range_ is None:
        return entry
    return execution_modes.prices.cost(place.split.operators, place.range_, place.v, p)


def topological_order(graph: OperatorGraph, keys: Sequence[tuple[float, ...]]) -> tuple[int, ...]:
    """Return the operators in topological order, those of small keys first."""
    waiting = [len(graph.predecessors(v)) for v in range(len(graph.operators))]
    ready = [(keys[v], v) for v, count in enumerate(waiting) if not count]
    heapq.heapify(ready)
    order = []
    while ready:
        _, v = heapq.heappop(ready)
        order.append(v)
        for w in graph.successors(v):
            waiting[w] -= 1
            if not waiting[w]:
                heapq.heappush(ready, (keys[w], w))
    return tuple(order)
