"""How many segments each processor of a mapping runs, and limits of that.

A segment is a run of a processor's operators that needs no other processor in between: what an
export makes one file of (`parapipe.plan.segments`, which cuts by the same moments). A segment
begins where an operator is the first of its processor to read a tensor from another one, and where
the frame lag changes. It ends where another processor waits within the stage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from collections.abc import Mapping as ByKey
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from parapipe.errors import MappingError
from parapipe.files.mistakes import did_you_mean, listed
from parapipe.mappings.mapping import Mapping, Placement

if TYPE_CHECKING:
    from parapipe.cost.cost_table import CostTable
    from parapipe.graph.operator_graph import OperatorGraph
    from parapipe.mappings.configuration import Configuration
    from parapipe.platform.segments import SegmentRules

Orders = ByKey[int, Sequence[Placement]]


class Moved(NamedTuple):
    """A tensor that an operator makes and one on another processor reads."""

    tensor: str
    made: Placement
    read: Placement


def awaited_tensors(orders: Orders, moved: Iterable[Moved]) -> dict[Placement, list[str]]:
    """Return tensors of other processors by the operator that is the first on its own to read them.

    A frame comes to operators of lower lag first.
    """
    turn = _turns(orders)
    readers: dict[tuple[str, int, int], list[Placement]] = {}
    for tensor, made, read in moved:
        readers.setdefault((tensor, made.processor, read.processor), []).append(read)
    awaited: dict[Placement, list[str]] = {}
    for (tensor, *_), some in readers.items():
        awaited.setdefault(min(some, key=turn.__getitem__), []).append(tensor)
    return awaited


def awaited_operators(
    orders: Orders,
    moved: Iterable[Moved],
    awaited: ByKey[Placement, Sequence[str]],
    repeats: Callable[[Placement], bool],
) -> frozenset[Placement]:
    """Return operators that another processor waits for within the stage: for each reader the last.

    What an earlier stage makes is there when a stage begins. A stage that works on several frames
    has no such moment: whoever reads there may wait for a tensor.

    Parameters
    ----------
    awaited
        As of `awaited_tensors`.
    repeats
        Tells whether the stage of an operator works on several frames.
    """
    turn = _turns(orders)
    last: dict[tuple[int, int, Placement], Placement] = {}
    for tensor, made, read in moved:
        within = made.lag == read.lag or repeats(made)
        if within and tensor in awaited.get(read, ()):
            key = (made.processor, made.lag, read)
            last[key] = max(last.get(key, made), made, key=turn.__getitem__)
    return frozenset(last.values())


def _turns(orders: Orders) -> dict[Placement, tuple[int, int]]:
    return {at: (at.lag, i) for order in orders.values() for i, at in enumerate(order)}


def count_segments(mapping: Mapping, graph: OperatorGraph) -> dict[int, int]:
    """Return how many segments each processor has, those that take turns on frames likewise.

    Parameters
    ----------
    graph
        As of `segments_of`.
    """
    return {
        each: len(segments)
        for p, segments in segments_of(mapping, graph).items()
        for each in mapping.replicas.get(p, (p,))
    }


def segments_of(mapping: Mapping, graph: OperatorGraph) -> dict[int, list[list[Placement]]]:
    """Return the segments of each processor in its order; of replicas, those of the first one.

    Parameters
    ----------
    graph
        That the mapping is of, with one frame of one model.
    """
    at = mapping.at
    moved = [
        Moved(name, at[u], at[v])
        for name, u in graph.producer.items()
        if name
        for v in graph.consumers.get(name, ())
        if at[u].processor != at[v].processor
    ]
    lags = [{stage.lag for stage in group} for group in mapping.groups]
    repeating = {lag for some in lags if len(some) > 1 for lag in some}
    begins = awaited_tensors(mapping.orders, moved)
    ends = awaited_operators(mapping.orders, moved, begins, lambda each: each.lag in repeating)
    segments: dict[int, list[list[Placement]]] = {}
    for p, order in mapping.orders.items():
        own = segments[p] = [[*order[:1]]]
        for a, b in pairwise(order):
            if b in begins or a in ends or a.lag != b.lag:
                own.append([])
            own[-1].append(b)
    return segments


def counts_of(some: Iterable[Configuration], graph: OperatorGraph) -> list[dict[int, int]]:
    """Return how many segments each processor has in each configuration of a model."""
    return [count_segments(each.mapping, each.graph_of(graph)) for each in some]


@dataclass(frozen=True, slots=True)
class SegmentLimit:
    """The most segments that processors may have.

    Parameters
    ----------
    most
        Of every processor, or of some by their names; None for no limit. Parts of a divided
        processor and its streams share what it may have.
    """

    most: int | ByKey[str, int] | None

    def check(self, names: Sequence[str]) -> None:
        """Refuse limits of processors that there are not.

        Raises
        ------
        MappingError
            Names all of them.
        """
        if isinstance(self.most, ByKey):
            unknown = [name for name in self.most if name not in names]
            if unknown:
                wrong, there = (listed([f"'{n}'" for n in each]) for each in (unknown, names))
                raise MappingError(
                    f"the platform has no processor {wrong} to limit segments of; it has {there}"
                    f"{did_you_mean(unknown[0], names)}"
                )

    def within(self, rules: SegmentRules) -> SegmentLimit:
        """Return the limit together with those of the platform: of each, the least."""
        if not rules.most:
            return self
        names = dict.fromkeys(rules.whole)
        asked = {name: self.of(name) for name in names}
        every = {
            name: min(each for each in (asked[name], rules.most.get(name)) if each is not None)
            for name in names
            if asked[name] is not None or name in rules.most
        }
        return SegmentLimit(every)

    def of(self, name: str) -> int | None:
        """Return the most segments of a processor; None if it has no limit."""
        return self.most.get(name) if isinstance(self.most, ByKey) else self.most

    def excess(self, segments: ByKey[str, int]) -> dict[str, int]:
        """Return how many segments there are too many, by processor; nothing if it is kept."""
        most = {name: self.of(name) for name in segments}
        over = ((name, count, most[name]) for name, count in segments.items())
        return {name: count - limit for name, count, limit in over if limit and count > limit}

    def told(self, segments: ByKey[str, int]) -> str:
        """Say how many segments there are in place of those that are allowed."""
        return "; ".join(
            f"{segments[name]} on {name} instead of {segments[name] - more}"
            for name, more in self.excess(segments).items()
        )


def segments_by_name(
    configuration: Configuration, graph: OperatorGraph, costs: CostTable
) -> dict[str, int]:
    """Return how many segments a configuration has on each processor, its parts taken together.

    Parameters
    ----------
    graph
        The model's, if the configuration has not split it.
    costs
        Those that it rests on.
    """
    whole = costs.segment_rules.whole if costs.segment_rules else costs.processors
    total: dict[str, int] = {}
    for p, count in sorted(
        count_segments(configuration.mapping, configuration.graph_of(graph)).items()
    ):
        total[whole[p]] = total.get(whole[p], 0) + count
    return total


class LimitedSegments:
    """The segments of configurations of a model, beside the most that they may have."""

    def __init__(
        self,
        most: int | ByKey[str, int] | None,
        graph: OperatorGraph,
        tables: Sequence[CostTable],
    ) -> None:
        self.limit = SegmentLimit(most)
        self._graph, self._tables = graph, tables

    def fits(self, configuration: Configuration) -> bool:
        """Tell whether a configuration keeps the limit."""
        return not self.limit.excess(self._segments(configuration))

    def nearest(self, some: Iterable[Configuration]) -> Configuration:
        """Return the configuration that has fewest segments too many."""

        def distance(each: Configuration) -> tuple[int, tuple[float, ...]]:
            return sum(self.limit.excess(self._segments(each)).values()), each.nano_objectives

        return min(some, key=distance)

    def told(self, configuration: Configuration) -> str:
        """Say how many segments there are in place of those that are allowed."""
        return self.limit.told(self._segments(configuration))

    def _segments(self, each: Configuration) -> dict[str, int]:
        return segments_by_name(each, self._graph, self._tables[each.table])
