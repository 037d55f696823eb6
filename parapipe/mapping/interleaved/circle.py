"""The circle of one resource: when within a period it is busy."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

Circle = tuple[tuple[int, ...], tuple[int, ...]]
"""Begins and ends of busy times within [0, period], ascending and apart from each other."""

FREE: Circle = ((), ())


def first_fit(circle: Circle, period: int, ready: int, time: int) -> int | None:
    """Return the first time from `ready` on at which work fits; None if it fits nowhere.

    Parameters
    ----------
    ready
        Any time, from the entry of a frame; times of all periods count.
    time
        Of the work, at least 1 and at most the period.
    """
    begins, ends = circle
    if not begins:
        return ready
    at = ready % period
    base = ready - at
    i = bisect_right(begins, at) - 1
    if i >= 0:
        at = max(at, ends[i])
    last = len(begins) - 1
    for _ in range(last + 2):
        if i < last:
            if begins[i + 1] - at >= time:
                return base + at
            i += 1
        else:
            if begins[0] + period - at >= time:
                return base + at
            base += period
            i = 0
        at = ends[i]
    return None


def with_work(circle: Circle, period: int, start: int, time: int) -> Circle:
    """Return a circle with work put where there is room."""
    begin = start % period
    end = begin + time
    if end > period:
        return _joined(_joined(circle, begin, period), 0, end - period)
    return _joined(circle, begin, end)


def without_work(circle: Circle, period: int, start: int, time: int) -> Circle:
    """Return a circle with work taken away that was put there.

    Work without time stays: what is around it may be away already.
    """
    if not time:
        return circle
    begin = start % period
    end = begin + time
    if end > period:
        return _cut(_cut(circle, begin, period), 0, end - period)
    return _cut(circle, begin, end)


def _cut(circle: Circle, begin: int, end: int) -> Circle:
    """Return a circle without a part of one busy time."""
    begins, ends = circle
    at = bisect_right(begins, begin) - 1
    first, last = begins[at], ends[at]
    left = (begin,) if first < begin else ()
    right = (end,) if end < last else ()
    return (
        (*begins[:at], *((first,) if left else ()), *right, *begins[at + 1 :]),
        (*ends[:at], *left, *((last,) if right else ()), *ends[at + 1 :]),
    )


def _joined(circle: Circle, begin: int, end: int) -> Circle:
    begins, ends = circle
    low = bisect_left(ends, begin)  # the first that ends at `begin` or later
    high = bisect_right(begins, end)  # behind the last that begins at `end` or before
    if low < high:
        begin, end = min(begin, begins[low]), max(end, ends[high - 1])
    return (*begins[:low], begin, *begins[high:]), (*ends[:low], end, *ends[high:])
