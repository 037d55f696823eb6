"""Latency against period, between a period that stages reach and the least one.

Of few operators, the least latency is searched by CP-SAT, too, as long as its work lasts: then it
is proven in most cases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import ceil

from parapipe.mapping.interleaved.check import check
from parapipe.mapping.interleaved.cyclic import Cyclic, ModuloSchedule
from parapipe.mapping.interleaved.fitted import fitted
from parapipe.mapping.interleaved.latency_floors import LatencyFloors
from parapipe.mapping.interleaved.least_latency import least_latency
from parapipe.mapping.interleaved.loads import LeastPeriod, least_period
from parapipe.mapping.interleaved.modulo import Works, scheduled
from parapipe.mapping.interleaved.reordered import reordered
from parapipe.mapping.interleaved.values import prices_of, times, values_of
from parapipe.mapping.problem import MappingProblem
from parapipe.mapping.units import NANO

# Where periods lie between the least one (0) and the longest (1), in ratio: denser near that.
BETWEEN = (0.94, 0.84, 0.7, 0.55, 0.38, 0.2)
ABOVE = (0.02, 0.01, 0.004)  # shares above the least period, where schedules are hard to find
MOST_OPERATORS = 9000  # placed, of all periods together: of larger networks fewer are tried
LIMIT_S = 2.0  # of counted work for the least period
WORTH = 0.01  # share by which the least period must be below the longest
FEW = 12  # operators of which the least latency is searched by CP-SAT,
EXACT_S = 0.2  # in so much of its deterministic time for all periods, about a second of a core,
PERIODS = 8  # for latencies of at most so many of them, if none is known


def curve(
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
        Are told what is proven of the latency.
    seed
        Of all random choices.
    over
        Whether to end.
    tell
        Called with the numbers of periods that are done and of all.
    """
    net = Cyclic(problem)
    if longest_s <= least.period_s * (1 + WORTH):
        return
    prices = prices_of(net)
    shares = shares_tried(longest_s / least.period_s, net.operators)
    cheapest = [int(p) for p in (times(net) * prices).argmin(axis=1)]
    known: list[Sequence[int]] = [least.processor, cheapest]
    price = [float(each) for each in prices]
    exact = _Exact(net, ceil(least.bound_s * NANO), floors, seed)
    for done, share in enumerate(shares):
        tell(done, len(shares))
        period = int(least.period_s * NANO * (1 + share))
        if over():
            return
        if period < max(map(min, net.time)):
            continue
        begin = [at for each in known if (at := fitted(net, each, period, price, over=over))]
        values = values_of(net, period, seed)
        found = least_latency(net, period, values, begin, above=share, seed=seed, over=over)
        if found is not None:
            known = [found.processor, *known[-2:]]
            for each in filter(None, (found, _sooner(net, found))):
                made = reordered(net, each, seed) if share <= ABOVE[0] else each
                check(problem, made)
                exact.known.append(made)
                yield made
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
    known
        What has been found.
    """

    net: Cyclic
    least: int
    floors: LatencyFloors | None
    seed: int
    left_s: float = EXACT_S
    known: list[ModuloSchedule] = field(default_factory=list)

    def at(self, period: int) -> ModuloSchedule | None:
        """Return a schedule of less latency than is known at periods up to this one, if found."""
        if self.net.operators > FEW or self.left_s <= 0:
            return None
        from parapipe.mapping.interleaved.exact import solved  # loads CP-SAT

        short = (each for each in self.known if each.period <= period)
        best = min(short, key=lambda each: each.latency, default=None)
        found = solved(
            self.net,
            period,
            shortest=self.least,
            latency=best.latency if best else PERIODS * period,
            known=best,
            most=self.left_s,
            seed=self.seed,
        )
        self.left_s -= found.effort
        if self.floors:
            self.floors.prove(period / NANO, found.bound / NANO - self.net.rounding_s)
        if found.schedule is None or (best and found.schedule.latency >= best.latency):
            return None
        self.known.append(found.schedule)
        return found.schedule


def shares_tried(ratio: float, operators: int) -> list[float]:
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


def _sooner(net: Cyclic, schedule: ModuloSchedule) -> ModuloSchedule | None:
    """Return a schedule of the same assignment at its own least period."""
    period = max(net.loads(schedule.processor))
    works = Works.of(net, schedule.processor)
    return scheduled(works, period) if period < schedule.period else None
