from __future__ import annotations

from math import inf

import pytest

from parapipe.solvers.lists import cpop, critical_path
from parapipe.solvers.paths import means_of
from parapipe.solvers.problem import Flow, MappingProblem
from tests.cases.topcuoglu import UNIT_S, ten_tasks

NEAR3 = tuple(tuple(0.1 * (p != q) for q in range(3)) for p in range(3))


def chain(*rows: tuple[float, ...]) -> MappingProblem:
    flows = [Flow(v, (v + 1,), NEAR3) for v in range(len(rows) - 1)]
    return MappingProblem(rows, tuple(flows), tuple(range(len(rows))))


def test_the_ten_tasks_of_topcuoglu_end_at_86() -> None:
    schedule = cpop(ten_tasks(), time_limit_s=1.0, seed=0)
    assert schedule.makespan_s == pytest.approx(86 * UNIT_S, rel=1e-12)


def test_their_critical_path_is_1_2_9_10_on_the_second_processor() -> None:
    path = critical_path(means_of(ten_tasks()))
    assert [v + 1 for v in path] == [1, 2, 9, 10]
    # 16 + 19 + 12 + 7 = 54, against 66 and 63
    assert {cpop(ten_tasks(), time_limit_s=1.0, seed=0).processor[v] for v in path} == {1}


def test_a_critical_path_stays_together_where_single_operators_are_faster_elsewhere() -> None:
    schedule = cpop(
        chain((1.0, 2.0, 9.0), (4.0, 2.0, 9.0), (1.0, 1.5, 9.0)), time_limit_s=1, seed=0
    )
    assert schedule.processor == (1, 1, 1)


def test_its_processor_is_the_one_that_supports_most_of_the_path() -> None:
    # processor 0 would be fastest on what it supports, but that is one operator of three
    schedule = cpop(
        chain((0.1, 2.0, inf), (inf, 2.0, 3.0), (inf, 2.0, 1.0)), time_limit_s=1, seed=0
    )
    assert schedule.processor == (1, 1, 1)


def test_an_operator_that_it_does_not_support_goes_where_it_ends_first() -> None:
    schedule = cpop(
        chain((1.0, inf, 9.0), (inf, 3.0, 2.0), (1.0, 0.5, inf)), time_limit_s=1, seed=0
    )
    assert schedule.processor == (0, 2, 0)
    assert schedule.makespan_s == pytest.approx(1 + 0.1 + 2 + 0.1 + 1)


def test_a_tensor_that_comes_late_from_outside_puts_its_reader_on_the_critical_path() -> None:
    # 0 and 1 are as long, and 1 waits for a tensor wherever it runs
    late = ((0.0, 5.0), (5.0, 0.0))
    problem = MappingProblem(
        ((3.0, 3.0), (3.0, 3.0)), (Flow(None, (1,), late, 0),), (((0,), (1,)),)
    )
    assert critical_path(means_of(problem)) == (1,)


def test_of_equally_long_paths_the_one_of_the_least_operators_is_taken() -> None:
    problem = MappingProblem(
        ((1.0,),) * 4, (Flow(0, (1, 2), ((0.0,),)), Flow(2, (3,), ((0.0,),))), (0, 1, 2, 3)
    )
    assert critical_path(means_of(problem)) == (0, 2, 3)
    twin = MappingProblem(((1.0,),) * 3, (Flow(0, (1, 2), ((0.0,),)),), (0, ((1,), (2,))))
    assert critical_path(means_of(twin)) == (0, 1)
