"""A profile's rows out of segments that a processor's compiler has compiled."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from parapipe.compilers.contract import CompiledRow, CompiledSegment
from parapipe.cost.cost_table import CostTable
from parapipe.cost.profile import COMPILED, UNPRICED
from parapipe.graph.joined import join_groups
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.platform.platform import Platform
from parapipe.platform.processor import Processor
from parapipe.platform.sections import Compiled
from parapipe.profiling.compiled_times import NodePrice, fit_of, node_prices, row_work
from parapipe.profiling.operator_times import OperatorTime


@dataclass(frozen=True, slots=True)
class RowTimes:
    """Turns rows into times for a processor.

    Parameters
    ----------
    prices
        parapipe's own price of each node.
    """

    prices: Mapping[str, NodePrice]
    fit: Compiled
    clock_hz: float

    @classmethod
    def of(cls, costs: CostTable, platform: Platform, processor: Processor) -> RowTimes:
        """Return that of a processor.

        Parameters
        ----------
        costs
            Of the graph, without compiled times.

        Raises
        ------
        PlatformError
            If the platform does not say how cycles become seconds.
        """
        fit = fit_of(processor, platform.name)
        prices = node_prices(costs, platform, processor)
        return cls(prices, fit, processor.clock.default_frequency_hz)

    def time_s(self, row: CompiledRow) -> float:
        """Return the seconds of a row."""
        return row_work(row, self.prices).time_s(self.clock_hz, self.fit)

    def segment_s(self, segment: CompiledSegment) -> float:
        """Return the seconds of all rows of a segment."""
        return sum(map(self.time_s, segment.rows))


def joined_as(graph: OperatorGraph, segments: Sequence[CompiledSegment]) -> OperatorGraph:
    """Return the graph with the operators of each fused row as one, where that is possible.

    The first operator must have all the multiply-accumulates: a profile knows a group by the
    signature of its first operator and the types of the others, and a Concat before two different
    convolutions would stand for both.
    """
    by_node = _operators_by_node(graph)
    rows = (_operators_of(row, by_node) for segment in segments for row in segment.rows)
    return join_groups(graph, (group for group in rows if _begins_with_work(graph, group)))


def _begins_with_work(graph: OperatorGraph, group: Sequence[int]) -> bool:
    return not any(graph.operators[v].work.macs for v in group[1:])


def operator_times(
    graph: OperatorGraph, segment: CompiledSegment, times: RowTimes
) -> dict[int, OperatorTime]:
    """Return what the operators of a segment take in it, by number.

    The time of a row that stands for several operators is shared by their own prices. One that
    names no node (a conversion at a border) belongs to what comes next, or to what came last.
    Together they take what all rows take. Of an operator of which the compiler prices nothing, the
    method says so.
    """
    by_node = _operators_by_node(graph)
    shared: dict[int, float] = defaultdict(float)
    priced: set[int] = set()
    waiting_s, last = 0.0, None
    for row in segment.rows:
        operators = _operators_of(row, by_node)
        if not operators:
            waiting_s += times.time_s(row)
            continue
        for v, share in _shares(row, operators, by_node, times):
            shared[v] += share * (times.time_s(row) + waiting_s)
        priced.update(operators if row.cycles else ())
        waiting_s, last = 0.0, operators[-1]
    if last is not None:
        shared[last] += waiting_s
    return {
        v: OperatorTime(time_s, COMPILED if v in priced else UNPRICED)
        for v, time_s in shared.items()
    }


def _operators_by_node(graph: OperatorGraph) -> dict[str, int]:
    return {name: v for v, operator in enumerate(graph.operators) for name in operator.members}


def _operators_of(row: CompiledRow, by_node: Mapping[str, int]) -> list[int]:
    return sorted({by_node[name] for name in row.nodes if name in by_node})


def _shares(
    row: CompiledRow, operators: Sequence[int], by_node: Mapping[str, int], times: RowTimes
) -> Iterator[tuple[int, float]]:
    """Yield the share of a row that each of its operators has, by their own prices."""
    own_s = dict.fromkeys(operators, 0.0)
    for name in row.nodes:
        if name in by_node and name in times.prices:
            own_s[by_node[name]] += times.prices[name].npu_s
    total_s = sum(own_s.values())
    for v in operators:
        yield v, own_s[v] / total_s if total_s else 1 / len(operators)
