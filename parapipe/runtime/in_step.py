"""Segments in the plan's order on all processors together, and the bytes that a run buffers.

A tensor counts from the start of the segment that makes it, which writes it all the while, to the
end of the last one that reads it. Graph inputs count from the first start of their frame on: those
that wait to be admitted are the caller's, and so are results that are made. Tensors that are made
of ranges have buffers, which are there all the time.

A run whose processors take other times than the plan says may hold more than the plan: one of them
is ahead of another one, as far as queues allow. *In step*, a segment begins no sooner than all that
has ended before it in the plan. Then whatever has begun in the run has also begun in the plan just
before the first end that is still to come, and whatever is still to be read there is still to be
read in the plan: the run holds no more than the plan does at that time.

This file needs the standard library only, so that it can stand beside a runner on a device.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from math import floor

from .document import Segment, SessionPlan
from .record import Span
from .views import container_of, frames_buffered, ranges_of, sources


class BufferedBytes:
    """What is held now, and the most so far.

    Parameters
    ----------
    plan
        A folder's, with the queues of the run.
    readers
        How many segments read each tensor.
    inside
        Whether tensors in arenas count. If so, `outside` counts the others alone; it is None where
        there are no arenas.
    """

    def __init__(
        self, plan: SessionPlan, readers: Mapping[str, int], *, inside: bool = True
    ) -> None:
        with_arenas = inside and bool(plan.places)
        self.outside = BufferedBytes(plan, readers, inside=False) if with_arenas else None
        ranges, frames = ranges_of(plan), frames_buffered(plan)
        within = {*container_of(plan)}
        if not inside:
            placed = {each.tensor for each in plan.places}
            ranges = {name: parts for name, parts in ranges.items() if name not in placed}
            within |= placed
        outputs = {name for each in plan.segments for name in each.outputs}
        self._size = {
            name: 0 if name in within else plan.tensors[name].size_bytes
            for name in outputs | {*readers}
        }
        self._readers = readers
        self._makes = {
            each.id: sum(self._size[name] for name in each.outputs) for each in plan.segments
        }
        self._reads = sources(plan)
        self._outputs = {each.id: each.outputs for each in plan.segments}
        self._enters = sum(self._size[name] for name in plan.inputs if readers.get(name))
        self._entered = 0
        self._left: dict[tuple[str, int], int] = {}
        self._now = sum(
            plan.tensors[container].size_bytes * max(frames[each.tensor] for each in parts)
            for container, parts in ranges.items()
        )
        self.peak = self._now

    def begin(self, segment: str, frame: int) -> None:
        """Count what a segment makes, and the inputs of frames that begin now."""
        if self.outside:
            self.outside.begin(segment, frame)
        self._now += self._makes[segment]
        if frame >= self._entered:
            self._now += self._enters * (frame + 1 - self._entered)
            self._entered = frame + 1
        self.peak = max(self.peak, self._now)

    def end(self, segment: str, frame: int) -> None:
        """Count no more what no segment will read again."""
        if self.outside:
            self.outside.end(segment, frame)
        for name in self._outputs[segment]:
            if not self._readers.get(name):
                self._now -= self._size[name]
        for name in self._reads[segment]:
            left = self._left.pop((name, frame), self._readers[name]) - 1
            if left:
                self._left[name, frame] = left
            else:
                self._now -= self._size[name]


def peak_buffered_bytes(plan: SessionPlan, spans: Iterable[Span]) -> int:
    """Return the most bytes held at one time in a run that is over.

    Parameters
    ----------
    spans
        What was done. Several of one segment and frame (micro-batches) count as one, from the first
        start to the last end: the tensors are allocated for the whole frame.
    """
    at: dict[tuple[str, int], tuple[float, float]] = {}
    for each in spans:
        start_s, end_s = at.get((each.name, each.frame), (each.start_s, each.end_s))
        at[each.name, each.frame] = min(start_s, each.start_s), max(end_s, each.end_s)
    first = min((frame for _, frame in at), default=0)
    moments = sorted(
        (time_s, begins, name, frame - first)
        for (name, frame), ends_s in at.items()
        for begins, time_s in ((True, ends_s[0]), (False, ends_s[1]))
    )
    buffered = BufferedBytes(
        plan, Counter(name for read in sources(plan).values() for name in read)
    )
    for _, begins, name, frame in moments:
        (buffered.begin if begins else buffered.end)(name, frame)
    return buffered.peak


TIE = 1e-9  # share of a period by which times that are equal may differ


def step_waits(plan: SessionPlan) -> dict[str, tuple[tuple[str, int], ...]]:
    """Return what must have ended before each segment begins, by its id.

    Returns
    -------
    dict
        For each other processor, and each number of frames ahead, the last segment there that has
        ended then; what the processor did before has ended, too.
    """
    return {each.id: tuple(_last_before(each, plan)) for each in plan.segments}


def _last_before(segment: Segment, plan: SessionPlan) -> Iterator[tuple[str, int]]:
    period_s = plan.predicted.period_s
    last: dict[tuple[str, int], tuple[float, str]] = {}
    for other in plan.segments:
        if other.processor == segment.processor:
            continue
        # what takes no time has not ended before what starts then, or both would wait
        tie = -TIE if other.end_s - other.start_s <= TIE * period_s else TIE
        since = (segment.start_s - other.end_s) / period_s
        periods = floor(since + tie)
        key = other.processor, segment.lag - other.lag + periods
        candidate = since - periods, other.id
        last[key] = min(last.get(key, candidate), candidate)
    for (_, ahead), (_, name) in last.items():
        yield name, ahead
