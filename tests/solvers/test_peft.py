from __future__ import annotations

from math import inf

import pytest

from parapipe.solvers.lists import peft
from parapipe.solvers.problem import Flow, MappingProblem
from tests.cases.topcuoglu import UNIT_S, ten_tasks_of_peft


def test_the_ten_tasks_of_the_peft_paper_end_at_122() -> None:
    schedule = peft(ten_tasks_of_peft(), time_limit_s=1.0, seed=0)
    assert schedule.makespan_s == pytest.approx(122 * UNIT_S, rel=1e-12)


def test_it_looks_ahead_where_the_first_to_end_is_a_dead_end() -> None:
    # 0 ends first on processor 0, but only 1 supports what follows, 9 s away
    far = ((0.0, 9.0), (9.0, 0.0))
    problem = MappingProblem(((1.0, 2.0), (inf, 1.0)), (Flow(0, (1,), far),), (0, 1))
    schedule = peft(problem, time_limit_s=1.0, seed=0)
    assert schedule.processor == (1, 1)
    assert schedule.makespan_s == 3.0


def test_the_transfer_counted_is_that_of_the_two_processors() -> None:
    # from processor 0 it is near to 1, from 2 it is far; all pairs together would not tell
    pairs = ((0.0, 1.0, 5.0), (1.0, 0.0, 5.0), (5.0, 9.0, 0.0))
    problem = MappingProblem(((2.0, inf, 1.0), (inf, 1.0, inf)), (Flow(0, (1,), pairs),), (0, 1))
    assert peft(problem, time_limit_s=1.0, seed=0).processor == (0, 1)
