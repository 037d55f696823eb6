"""Lower bounds on the latency of all mappings whose period is at most a given one.

The operators of one path run one behind the other, wherever they run, with a transfer where the
processor changes; and the loads of all processors stay within the period. With a price m_r >= 0 for
each second of a resource's load, no assignment takes less than

    min Σ_path (w + c) + Σ_r m_r (load_r - T)

(Lagrange), where the operators of the path are chosen along it and all others one by one. So prices
make a line that falls with the period T, and the highest line is the bound. The path is the longest
one. Prices 0 for every path at once make the critical path.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import numpy as np
from numpy.typing import NDArray

from parapipe.mapping.problem import MappingProblem

Array = NDArray[np.float64]

STEPS = 60  # of the subgradient method
NEVER_S = 1e9  # of an operator that is not supported
ROUNDING = 1e-9  # share of a bound that sums of doubles may be off


class LatencyFloors:
    """What is known of the least latency.

    Parameters
    ----------
    periods_s
        Periods at which the bounds are to be high; they hold at all.
    """

    def __init__(self, problem: MappingProblem, periods_s: Sequence[float]) -> None:
        self.critical_path_s = critical_path_s(problem) * (1 - ROUNDING)
        self._lines = _Path(problem).lines(periods_s) if periods_s else []
        self._proven: list[tuple[float, float]] = []

    def at(self, period_s: float) -> float:
        """Return seconds of latency that no mapping with at most this period is below."""
        lines = (value - slope * period_s for value, slope in self._lines)
        proven = (latency_s for most_s, latency_s in self._proven if period_s <= most_s)
        return max(self.critical_path_s, *proven, *(each * (1 - ROUNDING) for each in lines))

    def prove(self, period_s: float, latency_s: float) -> None:
        """Take what is proven of all mappings with at most a period."""
        self._proven.append((period_s, latency_s))


def critical_path_s(problem: MappingProblem) -> float:
    """Return the longest path of operators and transfers, each operator where that is best."""
    into = _flows_into(problem)
    end = np.zeros((problem.operators, problem.processors))
    for v, row in enumerate(problem.time_s):
        ready = np.zeros(problem.processors)
        for u, delay in into[v]:
            ready = np.maximum(ready, (end[u][:, None] + delay).min(axis=0))
        end[v] = ready + np.array(row)
    return float(end.min(axis=1).max())


def _flows_into(problem: MappingProblem) -> list[list[tuple[int, Array]]]:
    """Return what each operator reads from others: the maker, and the times to move it."""
    into: list[list[tuple[int, Array]]] = [[] for _ in range(problem.operators)]
    for flow in problem.flows:
        if flow.producer is not None:
            delay = np.array(flow.transfer_s)
            for v in flow.consumers:
                into[v].append((flow.producer, delay))
    return into


class _Path:
    """The path of operators that takes longest where each is fastest, and all others."""

    def __init__(self, problem: MappingProblem) -> None:
        self.time = np.array(problem.time_s)
        self.time[np.isinf(self.time)] = NEVER_S
        self.resources = problem.resources
        everyone = range(problem.processors)
        self.busy = np.zeros((self.resources, problem.processors, problem.processors))
        for p in everyone:
            for q in everyone:
                if (resource := problem.resource_of(p, q)) is not None:
                    self.busy[resource, p, q] = 1
        into = _flows_into(problem)
        least, best = self.time.min(axis=1), np.zeros(problem.operators)
        before: list[tuple[int, Array] | None] = [None] * problem.operators
        for v in range(problem.operators):
            before[v] = last = max(into[v], key=lambda each: best[each[0]], default=None)
            best[v] = least[v] + (best[last[0]] if last else 0.0)
        path: list[int] = []
        self.delay: list[Array] = []
        at = int(best.argmax())
        while (came := before[at]) is not None:
            path.append(at)
            self.delay.append(came[1])
            at = came[0]
        self.path = [at, *path[::-1]]
        self.delay.reverse()
        self.others = np.setdiff1d(np.arange(problem.operators), self.path)

    def lines(self, periods_s: Sequence[float]) -> list[tuple[float, float]]:
        """Return lines that bound the latency: its value at a period of 0, and its fall."""
        period = np.array(periods_s)[:, None]
        price = np.zeros((len(periods_s), self.resources))
        found = []
        for step in range(STEPS):
            value, loads = self._least(price)
            found += list(zip(value.tolist(), price.sum(axis=1).tolist(), strict=True))
            price = np.maximum(0, price + (loads - period) / period * 2 / (1 + step / 8))
        steepest = {round(slope, 3): (value, slope) for value, slope in sorted(found)}
        return [line for line in steepest.values() if line[0] < inf]

    def _least(self, price: Array) -> tuple[Array, Array]:
        """Return the least sums for some prices, without the periods, and their loads."""
        rows, processors = np.arange(len(price)), self.time.shape[1]
        loads = np.zeros_like(price)
        priced = self.time[self.others] * price[:, None, :processors]
        chosen = priced.argmin(axis=2)
        total = np.take_along_axis(priced, chosen[..., None], 2)[..., 0].sum(axis=1)
        for i, v in enumerate(self.others):
            np.add.at(loads, (rows, chosen[:, i]), self.time[v][chosen[:, i]])
        moving = 1 + np.einsum("br,rpq->bpq", price, self.busy)
        worth = 1 + price[:, :processors]
        sums = worth * self.time[self.path[0]]
        came: list[NDArray[np.intp]] = []
        for v, delay in zip(self.path[1:], self.delay, strict=True):
            ways = sums[:, :, None] + delay * moving
            came.append(ways.argmin(axis=1))
            sums = ways.min(axis=1) + worth * self.time[v]
        q = sums.argmin(axis=1)
        for i in range(len(self.path) - 1, 0, -1):
            np.add.at(loads, (rows, q), self.time[self.path[i]][q])
            p = came[i - 1][rows, q]
            loads += self.busy[:, p, q].T * self.delay[i - 1][p, q][:, None]
            q = p
        np.add.at(loads, (rows, q), self.time[self.path[0]][q])
        return total + sums.min(axis=1), loads
