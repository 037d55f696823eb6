"""A profile's rows out of times that operators took together with others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from parapipe.cost.cost_table import CostTable
from parapipe.cost.measured_rows import APPORTIONED
from parapipe.cost.profile import COMPILED, TIMED, UNPRICED, Measurement
from parapipe.cost.signature import Signature, signature_of
from parapipe.graph.data_types import convert_graph
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.graph.work import operator_class
from parapipe.platform.processor import Processor

LEAST_S = 1e-9  # a profile's file holds positive times, rounded to this
_ORDER = (APPORTIONED, TIMED, COMPILED, UNPRICED)
"""Of operators with equal signatures, the first of their methods counts."""


@dataclass(frozen=True, slots=True)
class OperatorTime:
    """What an operator takes where it ran, or would run.

    Parameters
    ----------
    method
        How it was got, as in `Measurement`.
    """

    time_s: float
    method: str


def measurements_of(
    graph: OperatorGraph,
    runs: Sequence[Mapping[int, OperatorTime]],
    costs: CostTable,
    processors: Sequence[Processor],
    *,
    weights: str,
) -> Iterator[Measurement]:
    """Yield the rows of a profile: one for each distinct operator on each processor.

    Of operators with equal signatures the mean counts, so that they add up to what they took. Those
    that the processors do not run are left out.

    Parameters
    ----------
    graph
        With the operators that ran at one go as one, where a profile shall know them as one.
    runs
        The times of the operators of each, by number.
    costs
        Of the same graph: they tell the types that operators compute in.
    processors
        Equal ones, all of which get the rows.
    weights
        As in `Measurement`.
    """
    collected = _by_signature(graph, runs, costs, costs.processors.index(processors[0].name))
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
                method=_method_of([time for _, time in times_of]),
                then=then,
                weights=weights,
            )


def _method_of(times: Collection[OperatorTime]) -> str:
    return min((time.method for time in times), key=_ORDER.index)


def _by_signature(
    graph: OperatorGraph,
    runs: Sequence[Mapping[int, OperatorTime]],
    costs: CostTable,
    place: int,
) -> Mapping[tuple[Signature, str], list[tuple[int, OperatorTime]]]:
    """Return the times of operators on a processor by what a profile has them under."""
    collected: dict[tuple[Signature, str], list[tuple[int, OperatorTime]]] = defaultdict(list)
    converted: dict[str | None, OperatorGraph] = {None: graph}
    for v, time in ((v, time) for times in runs for v, time in times.items()):
        cost = costs.cost(v, place)
        if cost is None:
            continue
        dtype = cost.data_type
        if dtype not in converted:
            converted[dtype] = convert_graph(graph, str(dtype))
        first, *others = converted[dtype].operators[v].singles
        signature = signature_of(first, converted[dtype])
        collected[signature, " ".join(part.type for part in others)].append((v, time))
    return collected
