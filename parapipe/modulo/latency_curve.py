"""Latency against period, and lower bounds on the latency at a period.

The operators of one path run one behind the other, wherever they run, with a transfer where the
processor changes; and the loads of all processors stay within the period. With a price m_r >= 0 for
each second of a resource's load, no assignment takes less than

    min Σ_path (w + c) + Σ_r m_r (load_r - T)

(Lagrange), where the operators of the path are chosen along it and all others one by one. So prices
make a line that falls with the period T, and the highest line is the bound. The path is the longest
one. Prices 0 for every path at once make the critical path.

Of few operators, the least latency is searched by CP-SAT, too, as long as its work lasts: then it
is proven in most cases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import ceil, inf

import numpy as np
from numpy.typing import NDArray

from parapipe.modulo.beam_search import prices_of, times, values_of
from parapipe.modulo.cyclic_problem import CyclicProblem, ModuloSchedule
from parapipe.modulo.least_latency import fit_loads, least_latency
from parapipe.modulo.least_period import LeastPeriod, least_period
from parapipe.modulo.modulo_schedules import Jobs, schedule_jobs
from parapipe.modulo.reordering import reorder_jobs
from parapipe.modulo.verify import check
from parapipe.solvers.problem import NANO, MappingProblem

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
        while (step := before[at]) is not None:
            path.append(at)
            self.delay.append(step[1])
            at = step[0]
        self.path = [at, *path[::-1]]
        self.delay.reverse()
        self.others = np.setdiff1d(np.arange(problem.operators), self.path)

    def lines(self, periods_s: Sequence[float]) -> list[tuple[float, float]]:
        """Return lines that bound the latency: its value at a period of 0, and its fall."""
        period = np.array(periods_s)[:, None]
        price = np.zeros((len(periods_s), self.resources))
        values_and_slopes = []
        for step in range(STEPS):
            value, loads = self._least(price)
            values_and_slopes += list(zip(value.tolist(), price.sum(axis=1).tolist(), strict=True))
            price = np.maximum(0, price + (loads - period) / period * 2 / (1 + step / 8))
        steepest = {round(slope, 3): (value, slope) for value, slope in sorted(values_and_slopes)}
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
        prices = 1 + price[:, :processors]
        sums = prices * self.time[self.path[0]]
        origins: list[NDArray[np.intp]] = []
        for v, delay in zip(self.path[1:], self.delay, strict=True):
            sums_from = sums[:, :, None] + delay * moving
            origins.append(sums_from.argmin(axis=1))
            sums = sums_from.min(axis=1) + prices * self.time[v]
        q = sums.argmin(axis=1)
        for i in range(len(self.path) - 1, 0, -1):
            np.add.at(loads, (rows, q), self.time[self.path[i]][q])
            p = origins[i - 1][rows, q]
            loads += self.busy[:, p, q].T * self.delay[i - 1][p, q][:, None]
            q = p
        np.add.at(loads, (rows, q), self.time[self.path[0]][q])
        return total + sums.min(axis=1), loads


# Where periods lie between the least one (0) and the longest (1), in ratio: denser near that.
BETWEEN = (0.94, 0.84, 0.7, 0.55, 0.38, 0.2)
ABOVE = (0.02, 0.01, 0.004)  # shares above the least period, where schedules are hard to find
MOST_OPERATORS = 9000  # placed, of all periods together: of larger networks fewer are tried
LIMIT_S = 2.0  # of counted work for the least period
WORTH = 0.01  # share by which the least period must be below the longest
FEW = 12  # operators of which the least latency is searched by CP-SAT,
EXACT_S = 0.2  # in so much of its deterministic time for all periods, about a second of a core,
PERIODS = 8  # for latencies of at most so many of them, if none is known


def low_latency_schedules(
    problem: MappingProblem,
    least: LeastPeriod,
    longest_s: float,
    *,
    floors: LatencyFloors | None = None,
    seed: int = 0,
    over: Callable[[], bool] = lambda: False,
    tell: Callable[[int, int], None] = lambda _done, _of: None,
) -> Iterator[ModuloSchedule]:
    """Yield schedules of low latency at periods below the longest.

    Periods are tried in descending order. A schedule may keep a shorter one than was tried, and
    then comes twice, for each of both.

    Parameters
    ----------
    least
        What is known of the least period; see `least_period_of`.
    longest_s
        Seconds of the period that is known.
    floors
        Take what is proven of the latency.
    seed
        Of all random choices.
    over
        Whether to end.
    tell
        Called with the numbers of periods that are done and of all.
    """
    cyclic = CyclicProblem(problem)
    if longest_s <= least.period_s * (1 + WORTH):
        return
    prices = prices_of(cyclic)
    shares = period_shares(longest_s / least.period_s, cyclic.operators)
    cheapest = [int(p) for p in (times(cyclic) * prices).argmin(axis=1)]
    places: list[Sequence[int]] = [least.processor, cheapest]
    price = [float(each) for each in prices]
    exact = _Exact(cyclic, ceil(least.bound_s * NANO), floors, seed)
    for done, share in enumerate(shares):
        tell(done, len(shares))
        period = int(least.period_s * NANO * (1 + share))
        if over():
            return
        if period < max(map(min, cyclic.time)):
            continue
        begin = [at for each in places if (at := fit_loads(cyclic, each, period, price, over=over))]
        values = values_of(cyclic, period, seed)
        best = least_latency(cyclic, period, values, begin, above=share, seed=seed, over=over)
        if best is not None:
            places = [best.processor, *places[-2:]]
            for each in filter(None, (best, _at_least_period(cyclic, best))):
                schedule = reorder_jobs(cyclic, each, seed) if share <= ABOVE[0] else each
                check(problem, schedule)
                exact.schedules.append(schedule)
                yield schedule
        if shortest := exact.at(period):
            check(problem, shortest)
            yield shortest
    tell(len(shares), len(shares))


@dataclass(slots=True)
class _Exact:
    """The search for the least latency by CP-SAT.

    Parameters
    ----------
    least
        Bound on the period.
    left_s
        What it may still take.
    schedules
        What has been found.
    """

    cyclic: CyclicProblem
    least: int
    floors: LatencyFloors | None
    seed: int
    left_s: float = EXACT_S
    schedules: list[ModuloSchedule] = field(default_factory=list)

    def at(self, period: int) -> ModuloSchedule | None:
        """Return a schedule of less latency than is known at periods up to this one, if found."""
        if self.cyclic.operators > FEW or self.left_s <= 0:
            return None
        from parapipe.modulo.exact_latency import least_latency_by_cp_sat  # loads CP-SAT

        short = (each for each in self.schedules if each.period <= period)
        best = min(short, key=lambda each: each.latency, default=None)
        solution = least_latency_by_cp_sat(
            self.cyclic,
            period,
            shortest=self.least,
            latency=best.latency if best else PERIODS * period,
            incumbent=best,
            most=self.left_s,
            seed=self.seed,
        )
        self.left_s -= solution.effort
        if self.floors:
            self.floors.prove(period / NANO, solution.bound / NANO - self.cyclic.rounding_s)
        if solution.schedule is None or (best and solution.schedule.latency >= best.latency):
            return None
        self.schedules.append(solution.schedule)
        return solution.schedule


def period_shares(ratio: float, operators: int) -> list[float]:
    """Return by which shares the periods that are tried are above the least one, descending.

    Parameters
    ----------
    ratio
        Of the longest period to the least.
    operators
        Of the network. The more there are, the fewer periods; the shortest is always among them.
    """
    shares = [ratio**at - 1 for at in BETWEEN]
    shares = [*(share for share in shares if share > ABOVE[0]), *ABOVE]
    shares = [share for share in shares if 1 + share < ratio]
    step = ceil(len(shares) * operators / MOST_OPERATORS)
    return shares[::-step][::-1] if shares else []


def least_period_of(problem: MappingProblem, seed: int) -> LeastPeriod:
    """Return the least period that is found in a counted amount of work, and its bound."""
    return least_period(problem, time_limit_s=LIMIT_S, seed=seed, deterministic=True)


def _at_least_period(cyclic: CyclicProblem, schedule: ModuloSchedule) -> ModuloSchedule | None:
    """Return a schedule of the same assignment at its own least period."""
    period = max(cyclic.loads(schedule.processor))
    jobs = Jobs.of(cyclic, schedule.processor)
    return schedule_jobs(jobs, period) if period < schedule.period else None
