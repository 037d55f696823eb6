"""What the rest of a network costs at least, given what each processor has left of a period."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from parapipe.mapping.interleaved.cyclic import NEVER, Cyclic

Array = NDArray[np.float64]
Times = tuple[tuple[int, ...], ...]

STATES = 80  # what may be left of a network and of a period, drawn at random
STEPS = 60  # of the subgradient method for each
MOST = 20.0  # seconds that a second of a processor may be worth
PENALTIES = (3.0, 10.0, 30.0)  # what a second above the period costs, where it cannot be kept
DRAWN = 10  # directions for each of them
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


def values_of(net: Cyclic, period: int, seed: int = 0) -> Values:
    """Return values of a network at a period."""
    draw = np.random.default_rng(seed)
    time = times(net)
    count, processors = time.shape
    share = draw.uniform(0, 1, STATES)
    share[: STATES // 4] = 1
    begin = (count * (1 - share)).astype(int).clip(0, count - 1)
    noise = draw.normal(0, 0.15, (STATES, processors))
    free = period * np.clip(share[:, None] + noise, 0.02, 1.0)
    free[0] = period
    counted = np.arange(count)[None, :] >= begin[:, None]
    worth = _worth(time, free, counted)
    prices = prices_of(net)
    planes = [np.zeros((1, processors)), worth, MOST / 2 * np.eye(processors)]
    for penalty in PENALTIES:
        turned = np.exp(draw.normal(0, 0.3, (DRAWN, processors)))
        planes.append(penalty * processors * prices[None] * turned)
    every = np.concatenate(planes)
    least = (time[None] * (1 + every[:, None, :])).min(axis=2)
    left = np.concatenate([np.cumsum(least[:, ::-1], 1)[:, ::-1], np.zeros((len(every), 1))], 1)
    return Values(every, left)


def times(net: Cyclic) -> Array:
    """Return the time of each operator on each processor, infinite where it is not supported."""
    return _array(net.time)


def _array(times_ns: Times) -> Array:
    return np.array([[np.inf if t >= NEVER else t for t in row] for row in times_ns], dtype=float)


def prices_of(net: Cyclic) -> Array:
    """Return what a second of each processor is worth, in sum 1, where the period is least.

    They make the bound sum_v min_p price_p w_vp on every period large (subgradients).
    """
    return _prices(net.time)


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


def _worth(time: Array, free: Array, counted: NDArray[np.bool_]) -> Array:
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
