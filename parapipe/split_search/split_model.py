"""A chosen split as a graph of its own: its operators, what they cost, and when they run."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf

from parapipe.cost.cost_table import CostTable
from parapipe.cost.price import OperatorCost
from parapipe.errors import SplitError
from parapipe.graph.operator_graph import Operator, OperatorGraph
from parapipe.graph.part_marks import whole_and_number
from parapipe.mappings.assignment import Assignment
from parapipe.mappings.configuration import SplitModel
from parapipe.parts.part import Range
from parapipe.platform.support import Refusal
from parapipe.search.stages.unit_schedules import Choice
from parapipe.split_search.execution_modes import Split, SplitWays
from parapipe.split_search.part_prices import scaled
from parapipe.split_search.problem import Way

_TAKING_APART = "Slice"

Splitter = Callable[[Sequence[str]], OperatorGraph]
Pricer = Callable[[OperatorGraph], CostTable]


def rules_of(ways: Sequence[Way], graph: OperatorGraph) -> tuple[str, ...]:
    """Return the rules that split a model as chosen ways do."""
    return tuple(rule_of(way.mark, graph) for way in ways if isinstance(way.mark, Split))


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
    asked: Range | None = None


def placed(
    ways: Sequence[Way], made: SplitWays, splitter: Splitter, pricer: Pricer, cuts: Sequence[int]
) -> tuple[SplitModel, Assignment]:
    """Return the split model of chosen ways, and where its operators run, in which order.

    Parameters
    ----------
    cuts
        Places in the order of operators at which a stage begins, but for the first one.

    Raises
    ------
    SplitError
        If the model cannot be split so.
    """
    rules = rules_of(ways, made.graph)
    graph = splitter(rules)
    places = _places(ways, made)
    _check_split(ways, made, graph)
    keys = [_key(operator, places) for operator in graph.operators]
    found: list[_Place | None] = [places[key] if key else None for key in keys]
    _place_others(graph, found)
    sure = [place for place in found if place is not None]
    assert len(sure) == len(found)
    costs = _costs(pricer(graph), sure, made)
    order = ordered(graph, [place.key for place in sure])
    bounds = [-inf, *cuts, inf]
    stages = tuple(
        tuple(v for v in order if begin <= sure[v].key[0] < end) for begin, end in pairwise(bounds)
    )
    assignment = Assignment(tuple(place.processor for place in sure), stages, ordered=True)
    return SplitModel(rules, graph, costs), assignment


def _check_split(ways: Sequence[Way], made: SplitWays, graph: OperatorGraph) -> None:
    """Check that what was to be split is not in the graph as a whole.

    Not all parts need be there: a Concat of a single range is no operator. A view before the
    operator's result may stay.

    Raises
    ------
    SplitError
        If an operator stayed whole.
    """
    there = {name for operator in graph.operators for name in operator.members}
    for way in ways:
        if isinstance(way.mark, Split):
            operator = made.graph.operators[way.mark.operators[-1]]
            if operator.members[-1] in there:
                raise SplitError(f"'{operator.name}' stays whole where its parts were counted on")


def _places(ways: Sequence[Way], made: SplitWays) -> dict[tuple[str, int], _Place]:
    """Return places by the name of an ONNX node and the number of the part, -1 if it is whole."""
    members = [operator.members for operator in made.graph.operators]
    return {
        (name, number): place
        for way in ways
        for number, place in _of_way(way, made)
        for name in members[place.v]
    }


def _scheduled(way: Way, choice: Choice) -> Iterator[tuple[int, _Place]]:
    """Yield places of operators that run side by side, in order of their start."""
    schedule = choice.schedule
    placed_at = zip(choice.request.operators, schedule.processor, schedule.start_s, strict=True)
    for v, p, start_s in placed_at:
        yield -1, _Place((float(way.begin), 0.0, start_s), p, v)


def _of_way(way: Way, made: SplitWays) -> Iterator[tuple[int, _Place]]:
    if isinstance(way.mark, Choice):
        yield from _scheduled(way, way.mark)
        return
    split = way.mark if isinstance(way.mark, Split) else None
    for number, piece in enumerate(way.pieces):
        asked = split.ranges[number] if split else None
        for inside, v in enumerate(made.order[way.begin : way.end]):
            key = (float(way.begin), float(number), float(inside))
            yield number if split else -1, _Place(key, piece.processor, v, split, asked)


def _key(operator: Operator, places: Mapping[tuple[str, int], _Place]) -> tuple[str, int] | None:
    """Return the key of an operator's place; None if it only serves others."""
    for name in operator.members:
        for key in ((name, -1), whole_and_number(name)):
            if key in places:
                return key
    return None


def _place_others(graph: OperatorGraph, found: list[_Place | None]) -> None:
    """Place what joins parts where they are read, and what cuts tensors, too, if these are there.

    What cuts a tensor for another processor stands where the tensor is made.
    """
    others = [v for v, place in enumerate(found) if place is None]
    for v in reversed(others):
        behind = [place for w in graph.successors(v) if (place := found[w])]
        near = min(behind, key=lambda place: place.key, default=None)
        near = near or _place_before(graph, found, v)
        found[v] = replace(near, key=(near.key[0], -1.0, *near.key[1:]), v=-1)
    for v in others:
        before = [place for u in graph.predecessors(v) if (place := found[u])]
        readers = {place.processor for w in graph.successors(v) if (place := found[w])}
        if graph.operators[v].type == _TAKING_APART and before and readers - {before[0].processor}:
            found[v] = replace(before[0], key=(*before[0].key, 1.0), v=-1)


def _place_before(graph: OperatorGraph, found: Sequence[_Place | None], v: int) -> _Place:
    """Return the place of an operator before one: of what it reads, or of what that reads."""
    there = (place for u in graph.predecessors(v) if (place := found[u]))
    return next(there, None) or _place_before(graph, found, min(graph.predecessors(v)))


def _costs(table: CostTable, places: Sequence[_Place], made: SplitWays) -> CostTable:
    """Return what a split graph costs; what cuts and joins, as it costs by itself."""
    entries = []
    counted: set[tuple[int, float]] = set()
    for v, place in enumerate(places):
        if place.v < 0:
            entries.append(table.entries[v])
            continue
        first = (place.v, place.key[1]) not in counted
        counted.add((place.v, place.key[1]))
        row = made.prices.costs.entries[place.v]
        entries.append(tuple(_entry(e, place, p, made, first) for p, e in enumerate(row)))
    return replace(table, entries=tuple(entries))


def _entry(
    entry: OperatorCost | Refusal, place: _Place, p: int, made: SplitWays, first: bool
) -> OperatorCost | Refusal:
    """Return what an operator of a split graph costs on a processor, given what the whole does.

    What is one operator in the model may be several in the split graph: the first has all costs.
    """
    if isinstance(entry, Refusal):
        return entry
    if not first:
        return scaled(entry, 0.0)
    if place.split is None or place.asked is None:
        return entry
    return made.prices.cost(place.split.operators, place.asked, place.v, p)


def ordered(graph: OperatorGraph, keys: Sequence[tuple[float, ...]]) -> tuple[int, ...]:
    """Return the operators in topological order, those of small keys first."""
    left = [len(graph.predecessors(v)) for v in range(len(graph.operators))]
    ready = [(keys[v], v) for v, count in enumerate(left) if not count]
    heapq.heapify(ready)
    order = []
    while ready:
        _, v = heapq.heappop(ready)
        order.append(v)
        for w in graph.successors(v):
            left[w] -= 1
            if not left[w]:
                heapq.heappush(ready, (keys[w], w))
    return tuple(order)
