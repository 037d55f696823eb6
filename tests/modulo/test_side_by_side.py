"""Problems and schedules side by side are what they are by themselves, one after the other."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parapipe.modulo.baselines import join_problems, repeat_pattern, sub_problem
from parapipe.modulo.cyclic_problem import CyclicProblem
from parapipe.modulo.least_period import bound_s, least_period
from parapipe.modulo.modulo_schedules import Jobs, schedule_jobs
from parapipe.modulo.verify import check
from tests.cases.occupying_cases import any_problem
from tests.cases.small_problems import small_problem

SEEDS = st.integers(0, 10**9)
ROUNDED = 1e-5  # what a proof may miss, as a share


def models(seed):
    """Two models with the same processors, hand-overs that keep them busy or not, and counts."""
    first = any_problem(seed, 3)
    flows = tuple(each for each in first.flows if each.producer is not None)
    first = replace(first, flows=flows)
    return [first, join_problems([first], [2])], [1 + seed % 2, 1 + seed // 2 % 2]


@settings(max_examples=20)
@given(seed=SEEDS)
def test_each_part_of_a_joined_problem_is_the_problem_that_it_was(seed):
    problems, counts = models(seed)
    whole, begin = join_problems(problems, counts), 0
    for problem, count in zip(problems, counts, strict=True):
        for _ in range(count):
            found = sub_problem(whole, begin, begin + problem.operators)
            assert (found.time_s, found.flows) == (problem.time_s, problem.flows)
            begin += problem.operators
    assert begin == whole.operators


@settings(max_examples=10)
@given(seed=SEEDS, times=st.integers(1, 4))
def test_a_schedule_in_a_row_keeps_all_rules_and_its_loads(seed, times):
    problems, counts = models(seed)
    whole = join_problems(problems, counts)
    cyclic = CyclicProblem(whole)
    jobs = Jobs.of(cyclic, [row.index(min(row)) for row in cyclic.time])
    schedule = schedule_jobs(jobs, 2 * sum(jobs.time))
    longer = repeat_pattern(problems, counts, schedule, times)
    check(join_problems(problems, [count * times for count in counts]), longer)
    assert longer.period == times * schedule.period
    for p in range(whole.processors):
        assert longer.processor.count(p) == times * schedule.processor.count(p)
    if times == 1:
        assert longer == schedule


@settings(max_examples=6)
@given(seed=SEEDS)
@pytest.mark.parametrize("random_problem", [small_problem, any_problem])
def test_no_number_of_frames_takes_less_than_the_bound_of_one(random_problem, seed):
    problem = random_problem(seed)
    bound = bound_s(problem)
    for count in (1, 2, 3):
        frames = join_problems([problem], [count])
        least = least_period(frames, time_limit_s=0.2, seed=0, deterministic=True)
        assert bound * count <= least.period_s * (1 + ROUNDED)
