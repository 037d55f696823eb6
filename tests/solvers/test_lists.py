from __future__ import annotations

from dataclasses import replace
from math import fsum, inf

import pytest
from hypothesis import given, settings

from parapipe.solvers.lists import list_schedule
from parapipe.solvers.problem import Flow, MappingProblem
from parapipe.solvers.registry import mapper
from parapipe.solvers.replay import replay
from parapipe.solvers.verify import verify
from tests.cases.random_dags import dags, least_makespan_s

NAMES = ("heft", "cpop", "peft", "heft_cpop")
ONE = ((0.0, 1.0), (1.0, 0.0))


def test_an_operator_is_inserted_into_the_first_gap_that_is_long_enough() -> None:
    # on processor 0: operator 0 until 1, then 2, which waits for 1 until 5; 3 fits in between
    problem = MappingProblem(
        ((1.0, inf), (inf, 4.0), (2.0, inf), (3.0, inf)), (Flow(1, (2,), ONE),), (0, 1, 2, 3)
    )
    table = list_schedule(problem, [4, 3, 2, 1])
    assert table.start_s == [0.0, 0.0, 5.0, 1.0]
    longer = replace(problem, time_s=(*problem.time_s[:3], (4.5, inf)))
    assert list_schedule(longer, [4, 3, 2, 1]).start_s == [0.0, 0.0, 5.0, 7.0]


def test_a_gap_counts_from_when_the_inputs_arrive() -> None:
    # as above, but 3 reads 0's output, which takes 2 s from processor 1
    slow = ((0.0, 2.0), (2.0, 0.0))
    problem = MappingProblem(
        ((inf, 1.0), (inf, 4.0), (2.0, inf), (3.0, inf)),
        (Flow(1, (2,), ONE), Flow(0, (3,), slow)),
        (0, 1, 2, 3),
    )
    # 1 ends at 5, so 2 starts at 6; 3 can start at 3
    assert list_schedule(problem, [4, 3, 2, 1]).start_s == [0.0, 1.0, 6.0, 3.0]
    longer = replace(problem, time_s=(*problem.time_s[:3], (3.5, inf)))
    assert list_schedule(longer, [4, 3, 2, 1]).start_s == [0.0, 1.0, 6.0, 8.0]


def test_an_operator_that_takes_no_time_does_not_get_in_front_of_its_producer() -> None:
    problem = MappingProblem(((0.0,), (0.0,), (2.0,)), (Flow(0, (1,), ((0.0,),)),), (0, 1, 2))
    table = list_schedule(problem, [2, 1, 3])
    assert table.start_s == [0.0, 0.0, 0.0]
    assert replay(problem, table.processor, (0, 1, 2)).start_s == (0.0, 0.0, 0.0)


def test_a_pinned_operator_has_no_choice() -> None:
    problem = MappingProblem(((1.0, 5.0),), (), (0,))
    assert list_schedule(problem, [0]).processor == [0]
    assert list_schedule(problem, [0], pinned={0: 1}).processor == [1]


def test_tails_are_added_before_ends_are_compared() -> None:
    problem = MappingProblem(((1.0, 5.0),), (), (0,))
    assert list_schedule(problem, [0], tail_s=[(5.0, 0.5)]).processor == [1]


def test_equal_priorities_and_ends_go_by_number() -> None:
    problem = MappingProblem(((1.0, 1.0),) * 3, (), (0, 1, 2))
    table = list_schedule(problem, [0, 0, 0])
    assert table.processor == [0, 1, 0]
    assert table.start_s == [0.0, 0.0, 1.0]


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=60, deadline=None)
@given(problem=dags(most_operators=12))
def test_every_dag_gets_a_valid_schedule_and_always_the_same(name, problem) -> None:
    schedule = mapper(name)(problem, time_limit_s=0.0, seed=0)
    verify(problem, schedule)
    claim = schedule.certificate
    assert claim.proves == "makespan"
    assert claim.bound_s <= claim.objective_s == schedule.makespan_s
    again = mapper(name)(problem, time_limit_s=9.0, seed=1)
    assert replace(again, certificate=claim) == schedule
    # in its order nothing could start earlier; of operators with the same start, that is not seen
    order = sorted(range(problem.operators), key=lambda v: (schedule.start_s[v], schedule.end_s[v]))
    if len(set(schedule.start_s)) == problem.operators:
        assert replay(problem, schedule.processor, order).start_s == schedule.start_s


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=25, deadline=None)
@given(problem=dags(most_operators=4))
def test_no_heuristic_beats_the_optimum_and_proven_means_optimal(name, problem) -> None:
    schedule = mapper(name)(problem, time_limit_s=1.0, seed=0)
    least_s = least_makespan_s(problem)
    assert schedule.makespan_s >= least_s
    assert schedule.certificate.bound_s <= least_s + 1e-15
    if schedule.certificate.proven:
        assert schedule.makespan_s == pytest.approx(least_s, rel=1e-12)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=25, deadline=None)
@given(problem=dags(most_operators=9, support=False, outside=False))
def test_on_one_processor_operators_run_without_a_gap(name, problem) -> None:
    rows = tuple((row[0], *[inf] * (problem.processors - 1)) for row in problem.time_s)
    schedule = mapper(name)(replace(problem, time_s=rows), time_limit_s=1.0, seed=0)
    assert schedule.makespan_s == pytest.approx(fsum(row[0] for row in rows), rel=1e-12)
    assert schedule.certificate.proven
