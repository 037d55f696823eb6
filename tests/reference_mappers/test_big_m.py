from __future__ import annotations

from math import inf
from time import perf_counter

from hypothesis import given, settings
from hypothesis import strategies as st

from parapipe.reference_mappers.fine_milp import big_m_model, unordered_pairs
from parapipe.solvers.paths import list_order
from parapipe.solvers.problem import Flow, MappingProblem, rounded_down
from parapipe.solvers.replay import replay
from tests.cases.random_dags import dags, placements

MICRO = 1e-6
THREE = ((0.0, 3 * MICRO), (3 * MICRO, 0.0))


def fork() -> MappingProblem:
    """0 → (1, 2); operator 2 runs on processor 1 only. 2 µs each, 3 µs for a transfer."""
    two = 2 * MICRO
    rows = ((two, two), (two, two), (inf, two))
    return MappingProblem(rows, (Flow(0, (1, 2), THREE),), (0, ((1,), (2,))))


def test_pairs_that_a_path_orders_are_left_out() -> None:
    # 0 → 1 → 3, 2 → 3 and 4 alone
    free = ((0.0,),)
    flows = (Flow(0, (1,), free), Flow(1, (3,), free), Flow(2, (3,), free))
    problem = MappingProblem(((1.0,),) * 5, flows, (0, 1, 2, 3, 4))
    assert list(unordered_pairs(problem)) == [(0, 2), (0, 4), (1, 2), (1, 4), (2, 4), (3, 4)]


def test_the_fork_has_the_rows_counted_by_hand() -> None:
    # (3): 3. (4): 0 → 1 with 1 + 2 rows, 0 → 2 with 1 + 1, as 2 is on 1 only. (5) and (6): one
    # each, for 1 and 2 on processor 1. (7): 3. Variables: 5 x, 3 s, 1 y, C
    model, _ = big_m_model(fork())
    assert model.numConstraints() == 3 + 3 + 2 + 2 + 3
    assert model.numVariables() == 5 + 3 + 1 + 1


def test_big_m_is_the_sum_of_longest_times_and_longest_transfers() -> None:
    # 2 + 2 + 2 and 3 for the only tensor: the weight of y in (5) and (6)
    model, _ = big_m_model(fork())
    weights = {
        coefficient
        for constraint in model.constraints.values()
        for variable, coefficient in constraint.items()
        if variable.name == "y_1_2"
    }
    assert weights == {9, -9}


def test_a_tensor_from_outside_keeps_its_reader_waiting() -> None:
    problem = MappingProblem(((MICRO, MICRO),), (Flow(None, (0,), THREE, 1),), (0,))
    model, variables = big_m_model(problem)
    variables.runs_on[0][0].varValue, variables.runs_on[0][1].varValue = 1, 0
    for start_us, holds in ((3, True), (2, False)):
        variables.start[0].varValue = start_us
        variables.makespan.varValue = start_us + 1
        assert all(row.valid() for row in model.constraints.values()) == holds


@settings(max_examples=80, deadline=None)
@given(dags(), st.randoms(use_true_random=False))
def test_no_schedule_is_cut_off(problem, choose) -> None:
    problem = rounded_down(problem)
    processor = choose.choice(list(placements(problem)))
    priority = list(range(problem.operators))
    choose.shuffle(priority)
    order = list_order(problem, processor, priority)
    found = replay(problem, processor, order)
    start_s, end_s = found.start_s, found.end_s
    model, variables = big_m_model(problem)
    for v, p in enumerate(processor):
        for q, x in variables.runs_on[v].items():
            x.varValue = int(q == p)
        variables.start[v].varValue = start_s[v] / MICRO
    variables.makespan.varValue = max(end_s) / MICRO
    for y in model.variables():
        if y.name.startswith("y_"):
            u, v = map(int, y.name.removeprefix("y_").split("_"))
            y.varValue = int(order.index(u) < order.index(v))
    assert [row for row in model.constraints.values() if not row.valid(1e-6)] == []


def test_a_model_that_is_not_written_in_time_is_given_up() -> None:
    assert big_m_model(fork(), deadline_s=perf_counter()) is None
