"""What a mapping takes while its processors slow each other down: its steady state.

Work goes on at a rate that depends on what runs beside it, and that changes whenever a processor
becomes busy or idle. So frames are sent through the mapping, event by event, until what happens
occurs again: first as fast as they are taken, which gives the least period that can be kept up;
then one each period, which gives what a frame takes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from collections.abc import Mapping as ByKey
from dataclasses import dataclass
from fractions import Fraction
from math import lcm

from parapipe.cost.co_run import CoRunLaw, Running
from parapipe.cost.cost_table import CostTable
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.mappings.event_graph import (
    PICOSECONDS,
    EventGraph,
    Execution,
    execution_of,
    picoseconds,
)
from parapipe.mappings.frame_replay import Admission, RunningTask
from parapipe.mappings.mapping import Mapping
from parapipe.mappings.steady_state import Recurrence, recurrence

WAITING = 2  # frames that wait for admission where they come as fast as they are taken
MOST_PACES = 4  # periods that are tried, each longer than the one before


class Slowdowns:
    """How many times as long tasks of an event graph take that run at the same time.

    Parameters
    ----------
    work
        What each task is to the law on each of the processors that take turns on it; none of a
        transfer, which neither slows operators nor is slowed.
    """

    def __init__(self, law: CoRunLaw, work: Sequence[Sequence[Running]]) -> None:
        self._law, self._work = law, work
        self._known: dict[tuple[RunningTask, ...], Sequence[float]] = {}

    def of(self, running: Sequence[RunningTask]) -> Sequence[float]:
        """Return the factors of what runs."""
        key = tuple(running)
        if key not in self._known:
            factors = [1.0] * len(key)
            operators = [i for i, (v, _) in enumerate(key) if self._work[v]]
            beside = [self._work[key[i][0]][key[i][1]] for i in operators]
            for i, factor in zip(operators, self._law.slowdowns(beside), strict=True):
                factors[i] = factor
            self._known[key] = factors
        return self._known[key]


@dataclass(frozen=True, slots=True)
class FrameSpans:
    """When operators and transfers run for some frames in a row, which occur again and again.

    Parameters
    ----------
    period_s
        Seconds between frames; frame i of them is admitted i periods after the first.
    spans_s
        By operator, or -1 - the transfer that keeps something busy: the start and end for each of
        the frames, in seconds from when the first of them was admitted.
    exact
        Whether they recur, to the picosecond; else they are the last ones of a long run.
    """

    period_s: float
    spans_s: ByKey[int, Sequence[tuple[float, float]]]
    exact: bool

    @property
    def frames(self) -> int:
        """How many frames."""
        return len(next(iter(self.spans_s.values())))

    @property
    def latency_s(self) -> float:
        """Seconds from the first start to the last end of a frame, of the longest one.

        Frames come as late as the first start of all allows.
        """
        times = [*map(self._frame, range(self.frames))]
        return max(end_s for _, end_s in times) - min(start_s for start_s, _ in times)

    def _frame(self, i: int) -> tuple[float, float]:
        times = [each[i] for v, each in self.spans_s.items() if v >= 0]
        come_s = i * self.period_s
        return min(a for a, _ in times) - come_s, max(b for _, b in times) - come_s


@dataclass(frozen=True, slots=True)
class CoRunTimes:
    """What a mapping takes while its processors slow each other down.

    Parameters
    ----------
    sustained_period_s
        Seconds between frames that are admitted as fast as they are taken.
    frames
        What happens while they come once per period.
    """

    sustained_period_s: float
    frames: FrameSpans

    @property
    def period_s(self) -> float:
        """Seconds between frames."""
        return self.frames.period_s

    @property
    def latency_s(self) -> float:
        """Seconds of a frame at that period, of the longest one."""
        return self.frames.latency_s

    @property
    def exact(self) -> bool:
        """Whether all recurs, to the picosecond."""
        return self.frames.exact


@dataclass(frozen=True, slots=True)
class CoRunEffect:
    """What it costs that processors slow each other down.

    Parameters
    ----------
    free_latency_s, free_period_s, free_sustained_period_s
        The figures if they did not.
    frames
        When all runs, frame after frame, one each period.
    """

    free_latency_s: float
    free_period_s: float
    free_sustained_period_s: float
    frames: FrameSpans


def co_run_times(
    mapping: Mapping,
    graph: OperatorGraph,
    costs: CostTable,
    law: CoRunLaw,
    *,
    least_period_s: float,
) -> CoRunTimes:
    """Return the steady state of a mapping, in which its processors slow each other down.

    Parameters
    ----------
    least_period_s
        Frames do not come more often: what the period is by itself.
    """
    return steady_times(*_executed(mapping, graph, costs, law), least_period_s)


def frame_alone(
    mapping: Mapping, graph: OperatorGraph, costs: CostTable, law: CoRunLaw
) -> FrameSpans | None:
    """Return when all runs for a frame that comes when the one before has ended.

    Only processors that work on the same frame slow each other down. None if something works on
    several frames in a fixed order, so that no frame can end before the next one begins.
    """
    execution, first, slowdowns = _executed(mapping, graph, costs, law)
    if any(len({execution.graph.lag[v] for v in order}) > 1 for order, _ in execution.graph.rows):
        return None
    pace_ps = Fraction(max(1, sum(execution.graph.time_ps)))
    while True:
        paced = recurrence(execution.graph, Admission(first, pace_ps, WAITING), slowdowns.of)
        spans_s = dict(_frame_spans(execution, paced, pace_ps))
        frames = FrameSpans(seconds(pace_ps), spans_s, paced.exact)
        if frames.latency_s <= frames.period_s:
            return frames
        pace_ps *= 2


def _executed(
    mapping: Mapping, graph: OperatorGraph, costs: CostTable, law: CoRunLaw
) -> tuple[Execution, frozenset[int], Slowdowns]:
    """Return what an executor does, the events that a frame's arrival starts, and slowdowns."""
    execution = execution_of(mapping)
    slowdowns = Slowdowns(law, running_work(execution, mapping, costs))
    return execution, frozenset(execution.event[v] for v in first_operators(graph)), slowdowns


def steady_times(
    execution: Execution, first: frozenset[int], slowdowns: Slowdowns, least_period_s: float
) -> CoRunTimes:
    """Return the steady state of what an executor does.

    Parameters
    ----------
    first
        Events that a frame's arrival starts.
    """
    graph, least_ps = execution.graph, Fraction(picoseconds(least_period_s))
    saturated = recurrence(graph, Admission(first, None, WAITING), slowdowns.of)

    def run_at(pace_ps: Fraction) -> Recurrence:
        return recurrence(graph, Admission(first, pace_ps, WAITING), slowdowns.of)

    pace_ps = max(saturated.period_ps, least_ps) if saturated.exact else least_ps
    for _ in range(MOST_PACES):
        paced = run_at(pace_ps)
        if paced.period_ps <= pace_ps:
            break
        pace_ps = paced.period_ps
    sustained_ps = saturated.period_ps
    if not saturated.exact:
        # Parts that nothing joins ran away from each other, or from slower paces than need be.
        pace_ps, paced = _quickened(run_at, graph, (pace_ps, paced), least_ps)
        sustained_ps, _ = _quickened(run_at, graph, (pace_ps, paced), Fraction(0))
    spans_s = dict(_frame_spans(execution, paced, pace_ps))
    period_s = least_period_s if pace_ps == least_ps else seconds(pace_ps)
    frames = FrameSpans(period_s, spans_s, paced.exact)
    return CoRunTimes(seconds(sustained_ps), frames)


def _quickened(
    run_at: Callable[[Fraction], Recurrence],
    graph: EventGraph,
    found: tuple[Fraction, Recurrence],
    least_ps: Fraction,
) -> tuple[Fraction, Recurrence]:
    """Return a pace, no less than the least, that the busiest resource keeps, and the run at it."""
    pace_ps, paced = found
    while paced.exact and (busy_ps := max(least_ps, _busy_ps(graph, paced))) < pace_ps:
        faster = run_at(busy_ps)
        if faster.period_ps > busy_ps:
            break
        pace_ps, paced = busy_ps, faster
    return pace_ps, paced


def _busy_ps(graph: EventGraph, paced: Recurrence) -> Fraction:
    """Return how long the busiest resource is at work for a frame; those that take turns share."""
    busy_ps = (
        Fraction(sum(span.end_ps - span.start_ps for v in order for span in paced.spans[v]), count)
        for order, count in graph.rows
    )
    return max(busy_ps) / paced.frames


def seconds(time_ps: Fraction) -> float:
    """Return a time in seconds, the nearest."""
    return time_ps.numerator / (time_ps.denominator * PICOSECONDS)


def first_operators(graph: OperatorGraph) -> set[int]:
    """Return the operators that a frame's arrival starts: they read a graph input, or nothing."""
    inputs = set(graph.inputs)
    return {
        v
        for v, operator in enumerate(graph.operators)
        if not (read := set(graph.reads(operator))) or read & inputs
    }


def running_work(
    execution: Execution, mapping: Mapping, costs: CostTable
) -> list[Sequence[Running]]:
    """Return what each event is to a law, on each of the processors that take turns on it."""
    every: list[Sequence[Running]] = []
    names = costs.wholes
    for works, time_ps in zip(execution.works, execution.graph.time_ps, strict=True):
        operators = [v for v in works if v >= 0]
        moved_bytes = 0
        for v in operators:
            cost = costs.cost(v, mapping.at[v].processor)
            assert cost is not None, "it was mapped there"
            moved_bytes += cost.moved_bytes
        p = mapping.at[operators[0]].processor if operators else -1
        turns = mapping.replicas.get(p, (p,)) if operators else ()
        every.append([Running(names[q], moved_bytes, time_ps / PICOSECONDS) for q in turns])
    return every


def _frame_spans(
    execution: Execution, paced: Recurrence, pace_ps: Fraction
) -> Iterator[tuple[int, tuple[tuple[float, float], ...]]]:
    """Yield the spans of the same frames in a row, counted from when the first is admitted."""
    count, took_ps = paced.frames, paced.took_ps
    begin = max(spans[0].frame for spans in paced.spans)
    begin += -begin % lcm(*execution.graph.replicas)  # a frame of the first that take turns
    for works, spans in zip(execution.works, paced.spans, strict=True):
        of_turn = {span.frame % count: span for span in spans}
        row = []
        for frame in range(begin, begin + count):
            span = of_turn[frame % count]
            later_ps = (frame - span.frame) // count * took_ps - begin * pace_ps
            times_ps = (span.start_ps + later_ps, span.end_ps + later_ps)
            row.append((seconds(times_ps[0]), seconds(times_ps[1])))
        yield from dict.fromkeys(works, tuple(row)).items()
