"""Processors with other numbers: the same problem, and the same answers."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from parapipe.solvers.fine.mapper import map as fine
from parapipe.solvers.problem import Flow, MappingProblem
from parapipe.solvers.schedule import (
    inverse_names,
    rename_columns,
    rename_processors,
    rename_schedule,
)
from parapipe.solvers.verify import verify
from tests.cases.oracle import optimum_s
from tests.cases.random_dags import dags


@settings(max_examples=60, deadline=None)
@given(st.data(), dags(most_operators=5))
def test_the_answer_to_the_renamed_problem_answers_the_problem(data, problem) -> None:
    names = tuple(data.draw(st.permutations(range(problem.processors))))
    other = rename_processors(problem, names)
    assert rename_processors(other, inverse_names(names)) == problem
    found = fine(other, time_limit_s=60, seed=0)
    schedule = rename_schedule(found, inverse_names(names))
    verify(problem, schedule)
    assert abs(schedule.makespan_s - optimum_s(problem)) <= 1e-6 * problem.operators


def test_columns_locations_and_what_transfers_occupy_get_the_new_numbers() -> None:
    # 0 becomes 2, 1 becomes 0, 2 becomes 1; link 3 keeps its number
    apart = ((0.0, 1.0, 2.0), (3.0, 0.0, 4.0), (5.0, 6.0, 0.0))
    busy = ((None, 0, 3), (1, None, 2), (3, None, None))
    rows = ((7.0, 8.0, 9.0), (1.0, 2.0, 3.0))
    problem = MappingProblem(rows, (Flow(None, (0, 1), apart, 0),), (0, 1), busy)
    other = rename_processors(problem, (2, 0, 1))
    assert other.time_s == ((8.0, 9.0, 7.0), (2.0, 3.0, 1.0)) == rename_columns(rows, (2, 0, 1))
    assert other.flows[0].location == 2
    assert other.flows[0].transfer_s == ((0.0, 4.0, 3.0), (6.0, 0.0, 5.0), (1.0, 2.0, 0.0))
    assert other.transfer_resource == ((None, 1, 0), (None, None, 3), (2, 3, None))


def test_transfers_of_a_schedule_go_where_the_processors_went() -> None:
    busy = ((None, 0), (1, None))
    apart = ((0.0, 2.0), (3.0, 0.0))
    rows = ((1.0, float("inf")), (float("inf"), 1.0))
    problem = MappingProblem(rows, (Flow(0, (1,), apart),), (0, 1), busy)
    schedule = fine(problem, time_limit_s=60, seed=0)
    assert schedule.transfers
    verify(rename_processors(problem, (1, 0)), rename_schedule(schedule, (1, 0)))
    assert replace(rename_schedule(schedule, (0, 1))) == schedule
