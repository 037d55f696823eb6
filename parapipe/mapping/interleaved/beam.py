"""Processors and starts of all operators together, operator by operator, the best few kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from parapipe.mapping.interleaved.circle import FREE, Circle, first_fit, with_work
from parapipe.mapping.interleaved.cyclic import NEVER, Cyclic
from parapipe.mapping.interleaved.values import Values

USEFUL = 0.5  # of the median time of what is left: shorter gaps count as lost
NEAR = 0.3  # of a period: how long an operator may wait for the next work, to leave no gap
SHOWN_AGAIN = 8  # operators after which the length of useful gaps is asked again


@dataclass(frozen=True, slots=True)
class Manner:
    """How to build.

    Parameters
    ----------
    exclusive
        Whether an operator waits until its processor is free; else only loads count, and the
        starts are found later.
    hand_over
        Share of a period that a hand-over counts for, beside its time.
    reserve
        Share of what a period is above the least that is kept for gaps.
    """

    exclusive: bool
    hand_over: float
    reserve: float


@dataclass(slots=True)
class _Partial:
    """The first operators, placed."""

    latency: float
    extra: float
    circles: list[Circle]
    place: list[int]
    end: list[int]
    free: list[int]


@dataclass(slots=True)
class _Step:
    """One more operator."""

    of: _Partial
    processor: int
    start: int
    end: int
    latency: float
    extra: float
    circle: Circle
    free: list[int]


@dataclass(frozen=True, slots=True)
class Built:
    """Where all operators run, and when if processors were exclusive."""

    place: tuple[int, ...]
    start: tuple[int, ...]


def built(
    net: Cyclic,
    period: int,
    values: Values,
    manner: Manner,
    *,
    above: float,
    width: int,
    over: Callable[[], bool] = lambda: False,
) -> list[Built]:
    """Return what can be kept up at a period, the best first; nothing if all ways ended.

    Parameters
    ----------
    above
        Share by which the period is above the least one.
    width
        Partial mappings that are kept.
    over
        Whether to give up.
    """
    count = net.operators
    none = [0] * count
    kept = [_Partial(0, 0.0, [FREE] * net.processors, none, none, [period] * net.processors)]
    useful = [0.0] * net.processors
    arrivals = net.arrivals(period)
    for v in range(count):
        if over():
            return []
        if v % SHOWN_AGAIN == 0:
            useful = _useful(net, v)
        steps = [
            step
            for each in kept
            for step in _steps(net, period, each, (v, arrivals[v]), manner=manner, useful=useful)
        ]
        if not steps:
            return []
        free = np.array([step.free for step in steps], dtype=float)
        rest = values.of(v + 1, free, manner.reserve * above)
        scores = rest + [step.latency + step.extra for step in steps]
        kept = []
        seen = set()
        for i in np.argsort(scores, kind="stable").tolist():
            step = steps[i]
            if (key := (round(scores[i]), step.end, step.processor)) not in seen:
                seen.add(key)
                kept.append(_taken(step, v))
            if len(kept) == width:
                break
    return [
        Built(
            tuple(each.place),
            tuple(
                end - net.time[v][p]
                for v, (end, p) in enumerate(zip(each.end, each.place, strict=True))
            ),
        )
        for each in kept
    ]


def _useful(net: Cyclic, begin: int) -> list[float]:
    """Return the shortest useful gap on each processor, for operators from one on."""
    rest = [[row[p] for row in net.time[begin:] if row[p] < NEVER] for p in range(net.processors)]
    return [USEFUL * median(each) if each else 0.0 for each in rest]


def _steps(
    net: Cyclic,
    period: int,
    of: _Partial,
    next_one: tuple[int, int],
    *,
    manner: Manner,
    useful: Sequence[float],
) -> Iterator[_Step]:
    """Yield where an operator can go, given it and when its frame comes."""
    v, came = next_one
    for p, time in enumerate(net.time[v]):
        if time > of.free[p]:
            continue
        ready, extra = came, of.extra
        for flow in net.reads[v]:
            u = net.maker[flow]
            ready = max(ready, of.end[u] + net.delay[flow][of.place[u]][p])
            extra += (of.place[u] != p) * manner.hand_over * period
        found = _starts(of.circles[p], period, ready, time) if manner.exclusive else [ready]
        for start in found:
            circle, left = of.circles[p], of.free[p] - time
            if manner.exclusive:
                circle = with_work(circle, period, start, time)
                left = _room(circle, period, useful[p])
            free = [*of.free[:p], left, *of.free[p + 1 :]]
            end = start + time
            latency = max(of.latency, (end - came) * net.weight[v])
            yield _Step(of, p, start, end, latency, extra, circle, free)


def _starts(circle: Circle, period: int, ready: int, time: int) -> list[int]:
    """Return the first start that fits, and the one that leaves no gap to what follows."""
    start = first_fit(circle, period, ready, time)
    if start is None:
        return []
    begins = circle[0]
    if not begins:
        return [start]
    end = start % period + time
    follows = next((begin for begin in begins if begin >= end), begins[0] + period)
    gap = follows - end
    return [start, start + gap] if 0 < gap < NEAR * period else [start]


def _room(circle: Circle, period: int, useful: float) -> int:
    """Return what useful gaps a circle has, in sum."""
    begins, ends = circle
    gaps = [after - end for end, after in zip(ends, (*begins[1:], begins[0] + period), strict=True)]
    return sum(gap for gap in gaps if gap >= useful)


def _taken(step: _Step, v: int) -> _Partial:
    of, p = step.of, step.processor
    place, end = [*of.place], [*of.end]
    place[v], end[v] = p, step.end
    circles = [*of.circles]
    circles[p] = step.circle
    return _Partial(step.latency, step.extra, circles, place, end, step.free)
