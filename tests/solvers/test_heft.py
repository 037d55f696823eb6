from __future__ import annotations

from math import inf

import pytest

from parapipe.solvers.lists import heft
from parapipe.solvers.problem import Flow, MappingProblem
from tests.cases.topcuoglu import UNIT_S, ten_tasks, ten_tasks_of_peft

ONE = ((0.0, 1.0), (1.0, 0.0))


def test_the_ten_tasks_of_topcuoglu_end_at_80() -> None:
    schedule = heft(ten_tasks(), time_limit_s=1.0, seed=0)
    assert schedule.makespan_s == pytest.approx(80 * UNIT_S, rel=1e-12)
    # as the paper draws it: P1 runs 2 and 8; P2 runs 4, 6, 9 and 10; P3 runs 1, 3, 5 and 7
    assert [p + 1 for p in schedule.processor] == [3, 1, 3, 2, 3, 2, 3, 1, 2, 2]


def test_the_ten_tasks_of_the_peft_paper_end_at_133() -> None:
    schedule = heft(ten_tasks_of_peft(), time_limit_s=1.0, seed=0)
    assert schedule.makespan_s == pytest.approx(133 * UNIT_S, rel=1e-12)


def test_its_certificate_speaks_of_the_makespan_and_is_not_proven() -> None:
    claim = heft(ten_tasks(), time_limit_s=1.0, seed=7).certificate
    assert (claim.proves, claim.solver, claim.seed, claim.proven) == ("makespan", "HEFT", 7, False)
    # tasks 1, 2, 9 and 10 take 16 + 19 + 12 + 7 on P2; leaving it, or being elsewhere, takes longer
    assert claim.bound_s == pytest.approx(54 * UNIT_S, rel=1e-12)


def test_it_is_proven_where_the_simple_bound_meets_it() -> None:
    problem = MappingProblem(((1.0, 3.0), (1.0, 3.0)), (Flow(0, (1,), ONE),), (0, 1))
    claim = heft(problem, time_limit_s=1.0, seed=0).certificate
    assert claim.proven
    assert claim.objective_s == claim.bound_s == 2.0


def test_the_longest_path_goes_first() -> None:
    # 0 → 2 is longer than 1; both could start on the only processor
    problem = MappingProblem(((1.0,), (2.5,), (3.0,)), (Flow(0, (2,), ((0.0,),)),), (0, 1, 2))
    assert heft(problem, time_limit_s=1.0, seed=0).start_s == (0.0, 4.0, 1.0)


def test_each_operator_goes_where_it_ends_first_with_its_transfers() -> None:
    # operator 1: 5 s here, or 1 + 3 there
    problem = MappingProblem(((1.0, inf), (5.0, 3.0)), (Flow(0, (1,), ONE),), (0, 1))
    schedule = heft(problem, time_limit_s=1.0, seed=0)
    assert schedule.processor == (0, 1)
    assert schedule.makespan_s == 5.0
