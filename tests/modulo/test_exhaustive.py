"""Every pair of period and latency, against a search that shares no code with the package.

Times are small whole numbers, so that starts may be taken as whole numbers, too. The search tries
all assignments, all starts within the period of all work, and which frame each of it belongs to.
"""

import random
from functools import cache
from itertools import accumulate, product
from math import inf

import pytest

from parapipe.modulo.cyclic_problem import CyclicProblem
from parapipe.modulo.exact_latency import least_latency_by_cp_sat
from parapipe.modulo.latency_curve import (
    LatencyFloors,
    critical_path_s,
    least_period_of,
    low_latency_schedules,
)
from parapipe.modulo.verify import check
from parapipe.solvers.problem import NANO
from tests.cases.nightly import nightly_from
from tests.modulo.test_modulo import LINK, NONE, RECEIVER, SENDER, problem_of

KINDS = (NONE, SENDER, RECEIVER, LINK)


def instance(seed, operators, processors, longest):
    rng = random.Random(seed)
    times = [[rng.randint(1, longest) for _ in range(processors)] for _ in range(operators)]
    readers = {u: [] for u in range(operators)}
    for v in range(1, operators):
        for u in {rng.randrange(v), *([rng.randrange(v)] if rng.random() < 0.4 else [])}:
            readers[u].append(v)
    return times, readers, rng.randint(1, 2)


class Placed:
    """The work of one assignment: operators in order, each behind the transfers that it needs."""

    def __init__(self, times, readers, moved, kind, place):
        self.work = []  # (name, resource, time), each behind what it waits for
        self.waits = {}  # name: [(what it waits for, time after its start)]
        self.reading = {}  # transfer that occupies: its readers
        for v, p in enumerate(place):
            self.waits[v] = []
            for u in range(v):
                if v not in readers[u]:
                    continue
                q = place[u]
                if p == q or kind == NONE:
                    delay = 0 if p == q else moved
                    self.waits[v].append((u, times[u][q] + delay))
                    continue
                name = ("transfer", u, p)
                if name not in self.reading:
                    resource = {SENDER: q, RECEIVER: p, LINK: "link"}[kind]
                    self.work.append((name, resource, moved))
                    self.waits[name] = [(u, times[u][q])]
                    self.reading[name] = []
                self.reading[name].append(v)
                self.waits[v].append((name, moved))
            self.work.append((v, p, times[v][p]))
        self.time = {name: time for name, _, time in self.work}
        self.operators = range(len(place))

    def latency(self, period):
        """The least latency at a period; infinite if there is no schedule."""
        return min((self._least(begin, period) for begin in self._begins({}, period)), default=inf)

    def _begins(self, begin, period):
        if len(begin) == len(self.work):
            yield begin
            return
        name, resource, time = self.work[len(begin)]
        for at in range(period if begin else 1):
            taken = {(at + i) % period for i in range(time)}
            others = [
                {(begin[other] + i) % period for i in range(long)}
                for other, where, long in self.work[: len(begin)]
                if where == resource
            ]
            if len(taken) == time and not any(taken & each for each in others):
                yield from self._begins({**begin, name: at}, period)

    def _least(self, begin, period):
        """Try which operator starts first, and whether readers of transfers wait a period more."""
        late = sorted({v for readers in self.reading.values() for v in readers})
        found = inf
        for first in self.operators:
            for more in product((0, period), repeat=len(late)):
                start = self._starts(
                    begin, period, begin[first], dict(zip(late, more, strict=True))
                )
                if self._in_time(start, period):
                    last = max(start[v] + self.time[v] for v in self.operators)
                    found = min(found, last - begin[first])
                    if not any(more):
                        break
        return found

    def _starts(self, begin, period, ready, more):
        start = {}
        for name, _, _ in self.work:
            at = max([ready, *(start[u] + gap for u, gap in self.waits[name])])
            start[name] = at + (begin[name] - at) % period + more.get(name, 0)
        return start

    def _in_time(self, start, period):
        """Whether each transfer can start less than a period before its first reader."""
        return all(
            (min(start[v] for v in readers) - start[name] - self.time[name]) % period
            + self.time[name]
            < period
            for name, readers in self.reading.items()
        )


@cache
def known(seed, operators, processors, longest, kind):
    """The least latency of an instance at each period up to that of one processor, from 1 on."""
    times, readers, moved = instance(seed, operators, processors, longest)
    count = of_one_processor(times)
    return [inf, *(exhaustive(times, readers, moved, kind, each) for each in range(1, count + 1))]


def exhaustive(times, readers, moved, kind, period):
    processors = range(len(times[0]))
    return min(
        Placed(times, readers, moved, kind, place).latency(period)
        for place in product(processors, repeat=len(times))
    )


def of_one_processor(times):
    return min(sum(column) for column in zip(*times, strict=True))


CASES = [
    *((seed, 4, 2, 2, kind) for seed in range(3) for kind in KINDS),
    *((seed, 3, 3, 3, kind) for seed in range(2) for kind in KINDS),
]


def problem(seed, operators, processors, longest, kind):
    times, readers, moved = instance(seed, operators, processors, longest)
    return problem_of(times, readers, moved, kind)


def latency_of(found):
    assert found.proven
    return found.schedule.latency if found.schedule else inf


@pytest.mark.parametrize(("seed", "operators", "processors", "longest", "kind"), CASES)
def test_latency_at_each_period_up_to_that_of_one_processor(
    seed, operators, processors, longest, kind
):
    case = (seed, operators, processors, longest, kind)
    cyclic = CyclicProblem(problem(*case))
    for period, latency in enumerate(known(*case)[1:10], start=1):
        assert latency_of(least_latency_by_cp_sat(cyclic, period)) == latency, period


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", nightly_from(1, range(2)))
def test_latency_of_six_operators_up_to_the_least_period_of_two_processors(seed, kind):
    times, readers, moved = instance(seed, 6, 2, 1)
    cyclic = CyclicProblem(problem_of(times, readers, moved, kind))
    for period in range(1, 4):
        latency = exhaustive(times, readers, moved, kind, period)
        assert latency_of(least_latency_by_cp_sat(cyclic, period)) == latency, period


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", nightly_from(1, range(2)))
def test_latency_at_any_period_up_to_a_longest_one(seed, kind):
    case = (seed, 4, 2, 2, kind)
    cyclic = CyclicProblem(problem(*case))
    for period, least in enumerate(accumulate(known(*case)[1:10], min), start=1):
        found = least_latency_by_cp_sat(cyclic, period, shortest=1)
        assert latency_of(found) == least, period
        if found.schedule:
            check(cyclic.problem, found.schedule)
            assert found.schedule.period <= period
            none = least_latency_by_cp_sat(cyclic, period, shortest=1, latency=least - 1)
            assert (none.schedule, none.bound, none.proven) == (None, least, True)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", nightly_from(1, range(4)))
def test_no_latency_is_below_its_bound_and_bounds_fall_with_the_period(seed, kind):
    case = (seed, 4, 2, 3, kind)
    latency = known(*case)
    least = next(period for period, each in enumerate(latency) if each < inf)
    periods = range(least, len(latency))
    floors = LatencyFloors(problem(*case), [period / NANO for period in periods])
    bounds = [floors.at(period / NANO) * NANO for period in periods]
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[-1] >= critical_path_s(problem(*case)) * NANO * (1 - 1e-6)
    for period, bound in zip(periods, bounds, strict=True):
        assert bound <= min(latency[: period + 1])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", nightly_from(1, range(2)))
def test_the_curve_of_few_operators_has_the_least_latency_and_proves_it(seed, kind):
    case = (seed, 4, 2, 2, kind)
    latency, given, floors = known(*case), problem(*case), LatencyFloors(problem(*case), [])
    longest_s = (len(latency) - 1) / NANO
    found = [
        *low_latency_schedules(given, least_period_of(given, seed=0), longest_s, floors=floors)
    ]
    assert found
    for schedule in found:
        least = min(each.latency for each in found if each.period <= schedule.period)
        assert least == min(latency[: schedule.period + 1])
        assert floors.at(schedule.period / NANO) * NANO == pytest.approx(least)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", nightly_from(1, range(4)))
def test_what_map_finds_is_never_below_and_reaches_the_least_period_of_delays(seed, kind):
    case = (seed, 4, 2, 3, kind)
    latency, given = known(*case), problem(*case)
    least = next(period for period, each in enumerate(latency) if each < inf)
    period_s = least_period_of(given, seed=0)
    schedules = [*low_latency_schedules(given, period_s, (len(latency) - 1) / NANO)]
    assert int(period_s.bound_s * NANO) <= least
    for schedule in schedules:
        assert schedule.latency >= latency[schedule.period]
    if kind == NONE:
        assert min([len(latency) - 1, *(schedule.period for schedule in schedules)]) == least
