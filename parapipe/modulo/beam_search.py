"""Processors and starts of all operators together, operator by operator: a beam search."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import median

import numpy as np
from numpy.typing import NDArray

from parapipe.modulo.cyclic_problem import NEVER, CyclicProblem
from parapipe.modulo.modulo_schedules import FREE, Circle, first_fit, with_work

Array = NDArray[np.float64]
Times = tuple[tuple[int, ...], ...]

STATES = 80  # what may be left of a network and of a period, sampled
STEPS = 60  # of the subgradient method for each
MOST = 20.0  # seconds that a second of a processor may be worth
PENALTIES = (3.0, 10.0, 30.0)  # what a second above the period costs, where it cannot be met
SAMPLES = 10  # directions for each of them
PRICE_STEPS = 300


@dataclass(frozen=True, slots=True)
class Values:
    """Lower bounds on the time of the operators that are left, one behind the other.

    With c_p left of processor p, the operators from v on take at least
    sum_u min_p (1 + m_p) w_up - sum_p m_p c_p for all m >= 0 (Lagrange): some m make planes that
    are close to the least time, and rise steeply where the rest does not fit.

    Parameters
    ----------
    worth
        `worth[k, p]`: the m of plane k.
    left
        `left[k, v]`: the first sum from operator v on; 0 behind the last.
    """

    worth: Array
    left: Array

    def of(self, v: int, free: Array, reserve: float) -> Array:
        """Return the values of states.

        Parameters
        ----------
        v
            Operators from v on are left.
        free
            `free[i, p]`: what state i has left of processor p.
        reserve
            Share by which what is left counts as more: it will not fit without gaps.
        """
        planes = self.left[:, v] * (1 + reserve) - free @ self.worth.T
        result: Array = planes.max(axis=1)
        return result


def values_of(cyclic: CyclicProblem, period: int, seed: int = 0) -> Values:
    """Return values of a network at a period."""
    draw = np.random.default_rng(seed)
    time = times(cyclic)
    count, processors = time.shape
    share = draw.uniform(0, 1, STATES)
    share[: STATES // 4] = 1
    begin = (count * (1 - share)).astype(int).clip(0, count - 1)
    noise = draw.normal(0, 0.15, (STATES, processors))
    free = period * np.clip(share[:, None] + noise, 0.02, 1.0)
    free[0] = period
    counted = np.arange(count)[None, :] >= begin[:, None]
    multipliers = _prices_of_states(time, free, counted)
    prices = prices_of(cyclic)
    planes = [np.zeros((1, processors)), multipliers, MOST / 2 * np.eye(processors)]
    for penalty in PENALTIES:
        turned = np.exp(draw.normal(0, 0.3, (SAMPLES, processors)))
        planes.append(penalty * processors * prices[None] * turned)
    every = np.concatenate(planes)
    least = (time[None] * (1 + every[:, None, :])).min(axis=2)
    left = np.concatenate([np.cumsum(least[:, ::-1], 1)[:, ::-1], np.zeros((len(every), 1))], 1)
    return Values(every, left)


def times(cyclic: CyclicProblem) -> Array:
    """Return the time of each operator on each processor, infinite where it is not supported."""
    return _array(cyclic.time)


def _array(times_ns: Times) -> Array:
    return np.array([[np.inf if t >= NEVER else t for t in row] for row in times_ns], dtype=float)


def prices_of(cyclic: CyclicProblem) -> Array:
    """Return what a second of each processor is worth, in sum 1, where the period is least.

    They make the bound sum_v min_p price_p w_vp on every period large (subgradients).
    """
    return _prices(cyclic.time)


@lru_cache(maxsize=8)
def _prices(times_ns: Times) -> Array:
    time = _array(times_ns)
    rows, processors = np.arange(len(time)), time.shape[1]
    prices = np.full(processors, 1 / processors)
    best, bound = prices, -np.inf
    for step in range(PRICE_STEPS):
        chosen = (time * prices).argmin(axis=1)
        taken = time[rows, chosen]
        value = float((taken * prices[chosen]).sum())
        if value > bound:
            best, bound = prices, value
        loads = np.bincount(chosen, taken, processors)
        prices = prices * np.exp(2 * (loads / loads.sum() - 1 / processors) / (1 + step / 20))
        prices = np.maximum(prices / prices.sum(), 1e-9)
        prices = prices / prices.sum()
    best.flags.writeable = False
    return best


def _prices_of_states(time: Array, free: Array, counted: NDArray[np.bool_]) -> Array:
    """Return for each state the m of a large bound (subgradients)."""
    processors = time.shape[1]
    worth = np.zeros_like(free)
    best, bound = worth, np.full(len(free), -np.inf)
    finite = np.where(np.isinf(time), 0.0, time)
    for step in range(STEPS):
        price = time[None] * (1 + worth[:, None, :])
        chosen = price.argmin(axis=2)
        least = np.take_along_axis(price, chosen[..., None], 2)[..., 0]
        value = (least * counted).sum(axis=1) - (worth * free).sum(axis=1)
        better = value > bound
        best = np.where(better[:, None], worth, best)
        bound = np.where(better, value, bound)
        taken = finite[np.arange(len(time))[None], chosen] * counted
        loads = np.stack([(taken * (chosen == p)).sum(axis=1) for p in range(processors)], axis=1)
        worth = np.clip(worth + (loads - free) / free * 2.0 / (1 + step / 10), 0, MOST)
    return best


USEFUL = 0.5  # of the median time of what is left: shorter gaps count as lost
NEAR = 0.3  # of a period: how long an operator may wait for the next work, to leave no gap
GAP_INTERVAL = 8  # operators after which the length of useful gaps is computed anew


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
        Share of what a period is above the least that is reserved for gaps.
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
    end: int
    latency: float
    extra: float
    circle: Circle
    free: list[int]


@dataclass(frozen=True, slots=True)
class BeamResult:
    """Where all operators run, and when if processors were exclusive."""

    place: tuple[int, ...]
    start: tuple[int, ...]


def beam_search(
    cyclic: CyclicProblem,
    period: int,
    values: Values,
    manner: Manner,
    *,
    above: float,
    width: int,
    over: Callable[[], bool] = lambda: False,
) -> list[BeamResult]:
    """Return assignments that a period allows, the best first; nothing if none is left.

    Parameters
    ----------
    above
        Share by which the period is above the least one.
    width
        Partial mappings after each operator.
    over
        Whether to give up.
    """
    count = cyclic.operators
    none = [0] * count
    beam = [_Partial(0, 0.0, [FREE] * cyclic.processors, none, none, [period] * cyclic.processors)]
    useful = [0.0] * cyclic.processors
    arrivals = cyclic.arrivals(period)
    for v in range(count):
        if over():
            return []
        if v % GAP_INTERVAL == 0:
            useful = _shortest_useful_gaps(cyclic, v)
        steps = [
            step
            for each in beam
            for step in _extensions(
                cyclic, period, each, (v, arrivals[v]), manner=manner, useful=useful
            )
        ]
        if not steps:
            return []
        free = np.array([step.free for step in steps], dtype=float)
        rest = values.of(v + 1, free, manner.reserve * above)
        scores = rest + [step.latency + step.extra for step in steps]
        beam = []
        seen = set()
        for i in np.argsort(scores, kind="stable").tolist():
            step = steps[i]
            if (key := (round(scores[i]), step.end, step.processor)) not in seen:
                seen.add(key)
                beam.append(_extended(step, v))
            if len(beam) == width:
                break
    return [
        BeamResult(
            tuple(each.place),
            tuple(
                end - cyclic.time[v][p]
                for v, (end, p) in enumerate(zip(each.end, each.place, strict=True))
            ),
        )
        for each in beam
    ]


def _shortest_useful_gaps(cyclic: CyclicProblem, begin: int) -> list[float]:
    """Return the shortest useful gap on each processor, for operators from one on."""
    rest = [
        [row[p] for row in cyclic.time[begin:] if row[p] < NEVER] for p in range(cyclic.processors)
    ]
    return [USEFUL * median(each) if each else 0.0 for each in rest]


def _extensions(
    cyclic: CyclicProblem,
    period: int,
    partial: _Partial,
    next_one: tuple[int, int],
    *,
    manner: Manner,
    useful: Sequence[float],
) -> Iterator[_Step]:
    """Yield where an operator can go, given it and when its frame comes."""
    v, arrival = next_one
    for p, time in enumerate(cyclic.time[v]):
        if time > partial.free[p]:
            continue
        ready, extra = arrival, partial.extra
        for flow in cyclic.reads[v]:
            u = cyclic.maker[flow]
            ready = max(ready, partial.end[u] + cyclic.delay[flow][partial.place[u]][p])
            extra += (partial.place[u] != p) * manner.hand_over * period
        starts = (
            _possible_starts(partial.circles[p], period, ready, time)
            if manner.exclusive
            else [ready]
        )
        for start in starts:
            circle, left = partial.circles[p], partial.free[p] - time
            if manner.exclusive:
                circle = with_work(circle, period, start, time)
                left = _gap_time(circle, period, useful[p])
            free = [*partial.free[:p], left, *partial.free[p + 1 :]]
            end = start + time
            latency = max(partial.latency, (end - arrival) * cyclic.weight[v])
            yield _Step(partial, p, end, latency, extra, circle, free)


def _possible_starts(circle: Circle, period: int, ready: int, time: int) -> list[int]:
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


def _gap_time(circle: Circle, period: int, useful: float) -> int:
    """Return what useful gaps a circle has, in sum."""
    begins, ends = circle
    gaps = [after - end for end, after in zip(ends, (*begins[1:], begins[0] + period), strict=True)]
    return sum(gap for gap in gaps if gap >= useful)


def _extended(step: _Step, v: int) -> _Partial:
    partial, p = step.of, step.processor
    place, end = [*partial.place], [*partial.end]
    place[v], end[v] = p, step.end
    circles = [*partial.circles]
    circles[p] = step.circle
    return _Partial(step.latency, step.extra, circles, place, end, step.free)
