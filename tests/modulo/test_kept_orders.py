"""Modulo schedules that keep an order: by hand, and random ones verified."""

import random

import pytest

from parapipe.modulo.cyclic_problem import CyclicProblem
from parapipe.modulo.kept_orders import at_period, schedule_in_order
from parapipe.modulo.modulo_schedules import Jobs
from parapipe.modulo.verify import check
from tests.modulo.test_modulo import LINK, NONE, RECEIVER, problem_of, random_problem

CHAIN = CyclicProblem(problem_of([(2, 9), (9, 2), (1, 9)], {0: [1], 1: [2]}, 0))
PLACE = (0, 1, 0)


def test_each_is_placed_as_early_as_fits():
    jobs = Jobs.of(CHAIN, PLACE)
    # every 3 ns: the first processor is busy with the first operator until 2, then free until 3
    schedule = schedule_in_order(jobs, 3, (0, 1, 2))
    assert schedule.start == (0, 2, 5)
    assert schedule.latency == 6
    assert schedule_in_order(jobs, 6, (0, 1, 2)).start == (0, 2, 4)
    assert schedule_in_order(jobs, 2, (0, 1, 2)) is None  # it works for 3 ns


def test_orders_are_kept_as_long_as_the_period_allows():
    jobs = Jobs.of(CHAIN, PLACE)
    slow = schedule_in_order(jobs, 6, (0, 1, 2))
    assert at_period(jobs, slow, 5).start == (0, 2, 4)
    # the last one would have to end before the first one of the next frame
    assert at_period(jobs, slow, 4) is None
    # with the frames that take turns at 3 ns, one period lies between the two
    assert at_period(jobs, schedule_in_order(jobs, 3, (0, 1, 2)), 4).start == (0, 2, 6)


def circle(jobs, schedule, resource):
    """Return what a resource does in a period, in circular order, from its first work on."""
    start = jobs.starts(schedule)
    own = [w for w, r in enumerate(jobs.resource) if r == resource]
    own.sort(key=lambda w: start[w] % schedule.period)
    at = own.index(min(own))
    return own[at:] + own[:at]


@pytest.mark.parametrize("kind", [NONE, RECEIVER, LINK])
@pytest.mark.parametrize("seed", range(25))
def test_what_is_built_passes_the_check(seed, kind):
    problem, rng = random_problem(seed, operators=6, occupies=kind), random.Random(seed)
    cyclic = CyclicProblem(problem)
    place = [
        rng.choice([p for p in range(2) if cyclic.time[v][p] < 100])
        for v in range(cyclic.operators)
    ]
    jobs, built = Jobs.of(cyclic, place), 0
    least = max(cyclic.loads(place))
    for period in range(least, least + 6):
        schedule = schedule_in_order(jobs, period, range(cyclic.operators))
        for other in range(least, period if schedule else least):
            if paced := at_period(jobs, schedule, other):
                check(problem, paced)
                assert paced.period == other
                for resource in {*jobs.resource}:
                    assert circle(jobs, paced, resource) == circle(jobs, schedule, resource)
        if schedule:
            check(problem, schedule)
            built += 1
    assert built
