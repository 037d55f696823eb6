"""What each operator takes in a usual frame of a run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from parapipe.runtime.record import Span

SHORTEST_S = 1e-9  # of an operator; a profile has no times of 0


def typical_times(spans: Iterable[Span]) -> Mapping[str, float]:
    """Return seconds of each operator in a usual frame, of a run of one processor without pauses.

    The mean of the frames whose time is in the middle half, so that all together are what these
    take; medians, of times of which few are short and many long, are less. A frame is counted from
    the end of the one before: what lies before an operator, such as bringing the graph's inputs, is
    its own. Each takes at least `SHORTEST_S`.

    Parameters
    ----------
    spans
        Of at least two frames, of all operators in each.
    """
    frames: dict[int, list[Span]] = defaultdict(list)
    for span in spans:
        frames[span.frame].append(span)
    ordered = [sorted(frames[index], key=lambda span: span.start_s) for index in sorted(frames)]
    begins_s = [frame[-1].end_s for frame in ordered]
    counted = sorted(
        zip(begins_s, ordered[1:], strict=False), key=lambda each: each[1][-1].end_s - each[0]
    )
    middle = counted[len(counted) // 4 : len(counted) - len(counted) // 4]
    times_s: dict[str, float] = defaultdict(float)
    for begin_s, frame in middle:
        done_s = begin_s
        for span in frame:
            work_s = span.end_s - span.start_s if span.work_s is None else span.work_s
            before_s = max(span.start_s - done_s, 0.0)
            times_s[span.name] += (before_s + work_s) / len(middle)
            done_s = max(done_s, span.end_s)
    return {name: max(time_s, SHORTEST_S) for name, time_s in times_s.items()}
