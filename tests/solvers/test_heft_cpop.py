from __future__ import annotations

import pytest
from hypothesis import given, settings

from parapipe.solvers.lists import cpop, heft, heft_cpop
from parapipe.solvers.problem import Flow, MappingProblem
from tests.cases.random_dags import dags
from tests.cases.topcuoglu import UNIT_S, ten_tasks


def test_of_80_and_86_it_takes_80() -> None:
    schedule = heft_cpop(ten_tasks(), time_limit_s=1.0, seed=0)
    assert schedule.makespan_s == pytest.approx(80 * UNIT_S, rel=1e-12)
    assert schedule.certificate.solver == "HEFT"


def test_where_cpop_is_better_it_takes_that() -> None:
    # HEFT follows each operator to where it ends first, and has to come back; CPOP does not leave
    far = ((0.0, 9.0), (9.0, 0.0))
    problem = MappingProblem(((2.0, 1.0), (1.0, 20.0)), (Flow(0, (1,), far),), (0, 1))
    assert heft(problem, time_limit_s=1.0, seed=0).makespan_s == 11.0
    schedule = heft_cpop(problem, time_limit_s=1.0, seed=0)
    assert schedule.makespan_s == 3.0
    assert schedule.certificate.solver == "CPOP"


@settings(max_examples=40, deadline=None)
@given(dags())
def test_it_ends_with_the_better_of_the_two(problem) -> None:
    ends_s = [mapper(problem, time_limit_s=1.0, seed=0).makespan_s for mapper in (heft, cpop)]
    schedule = heft_cpop(problem, time_limit_s=1.0, seed=0)
    assert schedule.makespan_s == min(ends_s)
    assert schedule.certificate.objective_s == min(ends_s)
