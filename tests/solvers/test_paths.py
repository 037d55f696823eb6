from __future__ import annotations

from math import inf

import pytest

from parapipe.solvers.paths import (
    downward_ranks_s,
    means_of,
    optimistic_costs_s,
    readers_of,
    supporting,
    upward_ranks_s,
)
from parapipe.solvers.problem import Flow, MappingProblem
from tests.cases.topcuoglu import UNIT_S, ten_tasks, ten_tasks_of_peft


def test_the_ranks_of_the_ten_tasks_are_those_of_the_paper() -> None:
    means = means_of(ten_tasks())
    upward = [108, 77, 80, 80, 69, 63.333, 42.667, 35.667, 44.333, 14.667]
    downward = [0, 31, 25, 22, 24, 27, 62.333, 66.667, 63.667, 93.333]
    assert [rank / UNIT_S for rank in upward_ranks_s(means)] == pytest.approx(upward, abs=1e-3)
    assert [rank / UNIT_S for rank in downward_ranks_s(means)] == pytest.approx(downward, abs=1e-3)


def test_means_are_taken_over_supporting_processors_and_pairs_of_different_ones() -> None:
    moved = ((0.0, 1.0, 2.0), (3.0, 0.0, 4.0), (50.0, 60.0, 0.0))
    problem = MappingProblem(((1.0, 2.0, inf), (inf, 5.0, 8.0)), (Flow(0, (1,), moved),), (0, 1))
    assert supporting(problem) == ((0, 1), (1, 2))
    means = means_of(problem)
    assert means.time_s == (1.5, 6.5)
    assert means.delay_s[0] == {1: (1.0 + 2.0 + 4.0) / 3}  # 0 → 1, 0 → 2, 1 → 2; 1 → 1 is none
    assert upward_ranks_s(means) == (1.5 + 7 / 3 + 6.5, 6.5)
    assert downward_ranks_s(means) == (0.0, 1.5 + 7 / 3)


def test_operators_that_one_processor_alone_supports_have_no_mean_transfer() -> None:
    far = ((0.0, 9.0), (9.0, 0.0))
    problem = MappingProblem(((1.0, inf), (1.0, inf)), (Flow(0, (1,), far),), (0, 1))
    assert means_of(problem).delay_s[0] == {1: 0.0}


def test_two_tensors_between_the_same_operators_are_one_edge_with_the_longest_transfers() -> None:
    flows = (
        Flow(0, (1,), ((0.0, 1.0), (4.0, 0.0))),
        Flow(0, (1, 2), ((0.0, 2.0), (3.0, 0.0))),
    )
    problem = MappingProblem(((1.0, 1.0),) * 3, flows, (0, ((1,), (2,))))
    edges = readers_of(problem)[0]
    assert edges == {1: ((0.0, 2.0), (4.0, 0.0)), 2: ((0.0, 2.0), (3.0, 0.0))}
    assert means_of(problem).delay_s[0] == {1: 3.0, 2: 2.5}


def test_a_tensor_from_outside_releases_its_reader_at_its_mean_arrival() -> None:
    flows = (
        Flow(None, (0,), ((0.0, 2.0), (1.0, 0.0)), 0),
        Flow(None, (0,), ((0.0, 1.0), (1.0, 0.0)), 1),
    )
    problem = MappingProblem(((1.0, 1.0), (1.0, 1.0)), flows, (((0,), (1,)),))
    means = means_of(problem)
    assert means.release_s == (1.5, 0.0)  # latest on processor 0 at 1, on 1 at 2
    assert downward_ranks_s(means) == (1.5, 0.0)


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


def test_an_optimistic_cost_counts_the_transfer_of_its_two_processors() -> None:
    pairs = ((0.0, 1.0, 5.0), (1.0, 0.0, 5.0), (5.0, 9.0, 0.0))
    problem = MappingProblem(((2.0, inf, 1.0), (inf, 1.0, inf)), (Flow(0, (1,), pairs),), (0, 1))
    assert optimistic_costs_s(problem)[0] == (2.0, inf, 10.0)
