from __future__ import annotations

from math import inf

import pytest
from topcuoglu import UNIT_S, ten_tasks_of_peft

from parapipe.mapping.peft import map as peft
from parapipe.mapping.peft import optimistic_costs_s
from parapipe.mapping.problem import Flow, MappingProblem


def test_the_ten_tasks_of_the_peft_paper_end_at_122() -> None:
    schedule = peft(ten_tasks_of_peft(), time_limit_s=1.0, seed=0)
    assert schedule.makespan_s == pytest.approx(122 * UNIT_S, rel=1e-12)


def test_the_optimistic_cost_table_of_their_first_last_and_ninth_task() -> None:
    # task 9 on P1: 10 there takes 13, or 7 + 16 on P2, 7 + 33 on P3; on P3: 33, 7 + 13 or 7 + 16
    table = optimistic_costs_s(ten_tasks_of_peft())
    assert [round(cost / UNIT_S) for cost in table[9]] == [0, 0, 0]
    assert [round(cost / UNIT_S) for cost in table[8]] == [13, 16, 20]
    assert [round(cost / UNIT_S) for cost in table[0]] == [64, 68, 86]


def test_a_processor_without_support_has_an_infinite_cost_and_no_influence() -> None:
    free = ((0.0, 0.0), (0.0, 0.0))
    problem = MappingProblem(
        ((1.0, 2.0), (4.0, inf), (inf, 3.0)), (Flow(0, (1,), free), Flow(1, (2,), free)), (0, 1, 2)
    )
    assert optimistic_costs_s(problem) == ((7.0, 7.0), (3.0, inf), (inf, 0.0))


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
    assert optimistic_costs_s(problem)[0] == (2.0, inf, 10.0)
    assert peft(problem, time_limit_s=1.0, seed=0).processor == (0, 1)
