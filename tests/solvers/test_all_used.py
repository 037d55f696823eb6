"""Schedules that use every processor they may."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest
from hypothesis import given

from parapipe.solvers.all_processors import use_all_processors
from parapipe.solvers.problem import Flow, MappingProblem
from parapipe.solvers.registry import mapper
from parapipe.solvers.replay import certified, one_at_a_time
from parapipe.solvers.verify import verify
from tests.cases.occupying_cases import any_problem
from tests.cases.oracle import optimum_s
from tests.cases.random_dags import dags
from tests.cases.small_problems import small_problem

heft = mapper("heft")
fine = mapper("fine")


def shortest(problem):
    return fine(problem, time_limit_s=10, seed=0)


def usable(problem):
    return {p for row in problem.time_s for p, time_s in enumerate(row) if time_s < inf}


def test_the_operator_that_costs_least_elsewhere_goes_there():
    rows = ((1.0, 4.0), (1.0, 3.5), (1.0, 9.0))
    problem = MappingProblem(rows, (), (0, 1, 2))
    assert shortest(problem).processor == (0, 0, 0)
    found = use_all_processors(problem, shortest(problem))
    assert found.processor == (0, 1, 0)
    # The second processor needs 3.5 for whatever it runs.
    claim = found.certificate
    assert (found.makespan_s, claim.bound_s, claim.proven) == (3.5, 3.5, True)


def test_the_operators_that_read_it_wait_for_the_transfer():
    there_and_back = ((0.0, 0.25), (0.5, 0.0))
    rows = ((1.0, 2.0), (1.0, inf))
    problem = MappingProblem(rows, (Flow(0, (1,), there_and_back),), (0, 1))
    found = use_all_processors(problem, shortest(problem))
    assert (found.processor, found.start_s) == ((1, 0), (0.0, 2.5))


def test_there_is_none_where_all_are_used_or_an_operator_lacks():
    problem = MappingProblem(((1.0, 9.0), (9.0, 1.0)), (), (0, 1))
    assert use_all_processors(problem, shortest(problem)) is None
    lonely = MappingProblem(((1.0, 9.0),), (), (0,))
    assert use_all_processors(lonely, shortest(lonely)) is None
    pinned = MappingProblem(((1.0, 9.0, 9.0), (1.0, inf, inf)), (), (0, 1))
    assert use_all_processors(pinned, shortest(pinned)) is None


@given(dags())
def test_all_processors_are_used_and_nothing_is_claimed_that_is_not_so(problem):
    schedule = heft(problem, time_limit_s=1, seed=0)
    found = use_all_processors(problem, schedule)
    if found is not None:
        verify(problem, found)
        assert set(found.processor) == usable(problem) > set(schedule.processor)
        assert found.certificate.objective_s == found.makespan_s >= found.certificate.bound_s


@pytest.mark.parametrize("seed", range(80))
def test_the_bound_holds_for_every_schedule_that_uses_all(seed):
    problem = small_problem(seed, most=5)
    schedule = heft(problem, time_limit_s=1, seed=0)
    found = use_all_processors(problem, schedule)
    if found is not None:
        least_s = max(
            min(
                optimum_s(replace(problem, time_s=pinned(problem.time_s, v, p)))
                for v, row in enumerate(problem.time_s)
                if row[p] < inf
            )
            for p in usable(problem) - set(schedule.processor)
        )
        assert found.certificate.bound_s - 1e-12 <= least_s <= found.makespan_s + 1e-12


def pinned(rows, v, p):
    row = tuple(time_s if q == p else inf for q, time_s in enumerate(rows[v]))
    return (*rows[:v], row, *rows[v + 1 :])


@given(dags(support=False))
def test_every_processor_gets_an_operator_if_there_are_enough(problem):
    timed = one_at_a_time(problem, [0] * problem.operators)
    schedule = certified(
        problem, [0] * problem.operators, timed,
        bound_s=0.0, solver="by hand", seed=0, began_s=0.0,
    )  # fmt: skip
    found = use_all_processors(problem, schedule)
    assert (found is not None) == (1 < problem.processors <= problem.operators)


@pytest.mark.parametrize("seed", range(30))
def test_transfers_that_keep_something_busy_are_reckoned_with(seed):
    problem = any_problem(seed)
    found = use_all_processors(problem, shortest(problem))
    if found is not None:
        verify(problem, found)
        assert set(found.processor) == usable(problem)
