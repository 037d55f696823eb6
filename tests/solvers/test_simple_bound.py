from __future__ import annotations

from dataclasses import replace
from math import inf

from hypothesis import given, settings

from parapipe.solvers.paths import bound_with_s, earliest_starts_s, simple_bound_s
from parapipe.solvers.problem import Flow, MappingProblem
from tests.cases.random_dags import dags, least_makespan_s

ONE = ((0.0, 1.0), (1.0, 0.0))


def test_of_a_chain_it_is_the_shortest_path() -> None:
    # operator 1: 5 s here, or 1 + 2 + 1 there and back
    flows = (Flow(0, (1,), ONE), Flow(1, (2,), ONE))
    problem = MappingProblem(((1.0, 9.0), (5.0, 2.0), (1.0, 9.0)), flows, (0, 1, 2))
    assert simple_bound_s(problem) == 6.0


def test_of_equal_operators_it_is_the_shared_load() -> None:
    assert simple_bound_s(MappingProblem(((2.0, 2.0),) * 3, (), (0, 1, 2))) == 3.0


def test_operators_that_one_processor_alone_supports_share_with_nobody() -> None:
    rows = ((2.0, inf), (2.0, inf), (1.0, 1.0))
    assert simple_bound_s(MappingProblem(rows, (), (0, 1, 2))) == 4.0


def test_a_tensor_from_outside_delays_its_reader() -> None:
    problem = MappingProblem(((inf, 2.0),), (Flow(None, (0,), ONE, 0),), (0,))
    assert simple_bound_s(problem) == 3.0


def test_a_load_waits_for_the_first_input_and_leaves_time_for_what_comes_behind() -> None:
    # 0 and 1 only on processor 1, a second away from their input; 2 only on 0, a second away again
    problem = MappingProblem(
        ((inf, 2.0), (inf, 3.0), (4.0, inf)),
        (Flow(None, (0, 1), ONE, 0), Flow(0, (2,), ONE), Flow(1, (2,), ONE)),
        (((0,), (1,)), 2),
    )
    assert simple_bound_s(problem) == 1 + (2 + 3) + 1 + 4


def test_earliest_starts_take_each_input_from_its_best_processor() -> None:
    # 0's output comes soonest from processor 0, 1's from 1
    problem = MappingProblem(
        ((1.0, 4.0), (4.0, 2.0), (1.0, inf)), (Flow(0, (2,), ONE), Flow(1, (2,), ONE)), (0, 1, 2)
    )
    assert earliest_starts_s(problem) == ((0.0, 0.0), (0.0, 0.0), (3.0, inf))


@settings(max_examples=80, deadline=None)
@given(dags(most_operators=4))
def test_no_schedule_ends_below_it(problem) -> None:
    assert simple_bound_s(problem) <= least_makespan_s(problem) * (1 + 1e-12)


@settings(max_examples=80, deadline=None)
@given(dags(most_operators=6))
def test_with_a_processor_in_use_it_is_the_least_of_those_with_an_operator_on_it(problem) -> None:
    for p in range(problem.processors):
        pinned = [
            replace(problem, time_s=(*rows[:v], own, *rows[v + 1 :]))
            for rows in [problem.time_s]
            for v, row in enumerate(rows)
            if row[p] < inf
            for own in [tuple(t if q == p else inf for q, t in enumerate(row))]
        ]
        assert bound_with_s(problem, p) == min(map(simple_bound_s, pinned), default=inf)
