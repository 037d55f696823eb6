"""The order in which segments begin on all processors together, as the plan has it.

A run whose processors take other times than the plan says may hold more than the plan: one of them
is ahead of another one, as far as queues allow. *In step*, a segment begins no sooner than all that
has ended before it in the plan. Then whatever has begun in the run has also begun in the plan just
before the first end that is still to come, and whatever is still to be read there is still to be
read in the plan: the run holds no more than the plan does at that time.

This file needs the standard library only, so that it can stand beside a runner on a device.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import floor

from .document import Segment, SessionPlan

TIE = 1e-9  # share of a period by which times that are equal may differ


def steps(plan: SessionPlan) -> dict[str, tuple[tuple[str, int], ...]]:
    """Return what must have ended before each segment begins, by its id.

    Returns
    -------
    dict
        For each other processor, and each number of frames ahead, the last segment there that has
        ended then; what the processor did before has ended, too.
    """
    return {each.id: tuple(_before(each, plan)) for each in plan.segments}


def _before(segment: Segment, plan: SessionPlan) -> Iterator[tuple[str, int]]:
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
        found = since - periods, other.id
        last[key] = min(last.get(key, found), found)
    for (_, ahead), (_, name) in last.items():
        yield name, ahead
