"""A profile's rows out of segments that a processor's compiler has compiled."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from parapipe.compilers.contract import CompiledRow, CompiledSegment
from parapipe.cost.cost_table import CostTable
from parapipe.cost.profile import COMPILED, UNPRICED, Measurement
from parapipe.cost.signature import Signature, signature_of
from parapipe.graph.data_types import convert_graph
from parapipe.graph.joined import join_groups
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.graph.work import operator_class
from parapipe.platform.platform import Platform
from parapipe.platform.processor import Processor
from parapipe.platform.sections import Compiled
from parapipe.profiling.compiled_times import NodePrice, fit_of, node_prices, row_work

LEAST_S = 1e-9  # a profile's file holds positive times, rounded to this


@dataclass(frozen=True, slots=True)
class CompiledTime:
    """What an operator takes in a compiled segment.

    Parameters
    ----------
    time_s
        Seconds of its rows, and of its share of rows that name no node.
    priced
        Whether the compiler prices any of it.
    """

    time_s: float
    priced: bool


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
) -> dict[int, CompiledTime]:
    """Return what the operators of a segment take in it, by number.

    The time of a row that stands for several operators is shared by their own prices. One that
    names no node (a conversion at a border) belongs to what comes next, or to what came last.
    Together they take what all rows take.
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
    return {v: CompiledTime(time_s, v in priced) for v, time_s in shared.items()}


def measurements_of(
    graph: OperatorGraph,
    segments: Sequence[Mapping[int, CompiledTime]],
    costs: CostTable,
    processors: Sequence[Processor],
) -> Iterator[Measurement]:
    """Yield the rows of a profile: one for each distinct operator on each processor.

    Of operators with equal signatures the mean counts, so that they add up to the segments.

    Parameters
    ----------
    graph
        With the operators that are compiled at one go as one.
    segments
        The times of the operators of each, by number.
    costs
        Of the same graph: they tell the types that operators compute in.
    processors
        Equal ones, all of which get the rows.
    """
    place = costs.processors.index(processors[0].name)
    collected: dict[tuple[Signature, str], list[tuple[int, CompiledTime]]] = defaultdict(list)
    converted: dict[str | None, OperatorGraph] = {None: graph}
    for times in segments:
        for v, time in times.items():
            cost = costs.cost(v, place)
            if cost is None:
                continue
            dtype = cost.data_type
            if dtype not in converted:
                converted[dtype] = convert_graph(graph, str(dtype))
            first, *others = converted[dtype].operators[v].singles
            signature = signature_of(first, converted[dtype])
            key = signature, " ".join(part.type for part in others)
            collected[key].append((v, time))
    for (signature, then), times_of in collected.items():
        first = graph.operators[times_of[0][0]].singles[0]
        seconds = [max(time.time_s, LEAST_S) for _, time in times_of]
        mean_s = fmean(seconds)
        for processor in processors:
            yield Measurement(
                signature=signature,
                operator_class=operator_class(first, graph),
                macs=first.work.macs,
                size_bytes=first.work.read_bytes + first.work.written_bytes,
                processor=processor.name,
                frequency_hz=processor.clock.default_frequency_hz,
                time_s=round(mean_s, 9),
                rows=len(seconds),
                spread=round((max(seconds) - min(seconds)) / mean_s, 4),
                method=COMPILED if any(time.priced for _, time in times_of) else UNPRICED,
                then=then,
                weights="own",
            )


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
