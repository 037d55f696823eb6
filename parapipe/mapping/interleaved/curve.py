"""Latency against period, between a period that stages reach and the least one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from parapipe.mapping.interleaved.check import check
from parapipe.mapping.interleaved.cyclic import NANO, Cyclic, ModuloSchedule
from parapipe.mapping.interleaved.fitted import fitted
from parapipe.mapping.interleaved.least_latency import least_latency
from parapipe.mapping.interleaved.loads import least_period
from parapipe.mapping.interleaved.modulo import Works, scheduled
from parapipe.mapping.interleaved.values import prices_of, times, values_of
from parapipe.mapping.problem import MappingProblem

# Where periods lie between the least one (0) and the longest (1), in ratio: denser near that.
BETWEEN = (0.94, 0.84, 0.7, 0.55, 0.38, 0.2)
ABOVE = (0.02, 0.01, 0.004)  # shares above the least period, where schedules are hard to find
LIMIT_S = 2.0  # of counted work for the least period
WORTH = 0.01  # share by which the least period must be below the longest


@dataclass(frozen=True, slots=True)
class Point:
    """A schedule, and a bound in nanoseconds: no assignment has a shorter period."""

    schedule: ModuloSchedule
    least_period: int


def curve(
    problem: MappingProblem,
    longest_s: float,
    *,
    over: Callable[[], bool] = lambda: False,
    tell: Callable[[int, int], None] = lambda _done, _of: None,
) -> Iterator[Point]:
    """Yield schedules of low latency at periods below the longest, by descending period.

    Parameters
    ----------
    longest_s
        Seconds of the period that is known.
    over
        Whether to end.
    tell
        Called with the numbers of periods that are done and of all.
    """
    net = Cyclic(problem)
    known_least = least_period(problem, time_limit_s=LIMIT_S, seed=0, deterministic=True)
    bound, least = int(known_least.bound_s * NANO), known_least.period_s * NANO
    longest = longest_s * NANO
    if longest <= least * (1 + WORTH):
        return
    prices = prices_of(net)
    ratio = longest / least
    shares = [ratio**at - 1 for at in BETWEEN]
    shares = [*(share for share in shares if share > ABOVE[0]), *ABOVE]
    cheapest = [int(p) for p in (times(net) * prices).argmin(axis=1)]
    known: list[Sequence[int]] = [known_least.processor, cheapest]
    price = [float(each) for each in prices]
    for done, share in enumerate(shares):
        tell(done, len(shares))
        if over():
            return
        found = _at(net, int(least * (1 + share)), share, known, price)
        if found is not None:
            known = [found.processor, *known[-2:]]
            for each in (found, _sooner(net, found)):
                if each is not None:
                    check(problem, each)
                    yield Point(each, bound)
    tell(len(shares), len(shares))


def _at(
    net: Cyclic, period: int, share: float, known: Sequence[Sequence[int]], prices: list[float]
) -> ModuloSchedule | None:
    if period < max(map(min, net.time)):
        return None
    begin = [place for each in known if (place := fitted(net, each, period, prices))]
    return least_latency(net, period, values_of(net, period), begin, above=share)


def _sooner(net: Cyclic, schedule: ModuloSchedule) -> ModuloSchedule | None:
    """Return a schedule of the same assignment at its own least period."""
    period = max(net.loads(schedule.processor))
    works = Works.of(net, schedule.processor)
    return scheduled(works, period) if period < schedule.period else None
