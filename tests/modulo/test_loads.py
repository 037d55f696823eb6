from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parapipe.modulo.least_period import least_period, loads_s, period_s, restrict_to
from parapipe.solvers.problem import Flow, MappingProblem
from tests.cases.occupying_cases import FAR, LINK, RECEIVER, SENDER, any_problem
from tests.cases.random_dags import dags, placements

ROUNDED = 1e-5  # what a proof may miss, as a share


def solved(problem):
    return least_period(problem, time_limit_s=20, seed=0, deterministic=True)


def test_operators_are_shared_out_evenly() -> None:
    # 7 + 5 on one, 6 + 4 + 2 on the other
    problem = MappingProblem(tuple((t, t) for t in (7.0, 6.0, 5.0, 4.0, 2.0)), (), (0, 1, 2, 3, 4))
    found = solved(problem)
    assert (found.period_s, found.proven, found.gap) == (12.0, True, 0.0)
    assert sorted(loads_s(problem, found.processor)) == [12.0, 12.0]


@pytest.mark.parametrize(
    ("transfer_resource", "least_s", "loads"),
    [
        ((), 3.0, [3.0, 1.0]),  # a delay loads nothing
        (SENDER, 6.0, [6.0, 1.0]),
        (RECEIVER, 4.0, [3.0, 4.0]),
        (LINK, 3.0, [3.0, 1.0, 3.0]),
    ],
)
def test_a_hand_over_loads_what_it_keeps_busy(transfer_resource, least_s, loads) -> None:
    # 1 s on processor 0, read 3 s away by 1 s on processor 1; 2 s more on processor 0
    rows = ((1.0, inf), (inf, 1.0), (2.0, inf))
    problem = MappingProblem(rows, (Flow(0, (1,), FAR),), (0, 1, 2), transfer_resource)
    found = solved(problem)
    assert found.period_s == least_s
    assert loads_s(problem, found.processor) == loads


def test_readers_on_one_processor_share_a_hand_over() -> None:
    rows = ((1.0, inf), (inf, 1.0), (inf, 1.0))
    problem = MappingProblem(rows, (Flow(0, (1, 2), FAR),), (0, 1, 2), RECEIVER)
    assert solved(problem).period_s == 5.0


def test_a_processor_may_stay_unused_and_may_be_left_out() -> None:
    # to hand over costs the receiver more than it saves
    problem = MappingProblem(((2.0, 2.0), (2.0, 2.0)), (Flow(0, (1,), FAR),), (0, 1), RECEIVER)
    assert solved(problem).period_s == 4.0
    free = replace(problem, transfer_resource=())
    assert solved(free).period_s == 2.0
    assert solved(restrict_to(free, [1])).processor == (1, 1)
    assert restrict_to(MappingProblem(((1.0, inf),), (), (0,)), [1]) is None


@settings(max_examples=60, deadline=None)
@given(dags(most_operators=6), st.sampled_from(["delay", "sender", "receiver", "link"]))
def test_no_assignment_has_less_by_brute_force(problem, kind) -> None:
    everyone = range(problem.processors)
    busy = {"sender": lambda p, _: p, "receiver": lambda _, q: q, "link": lambda *_: len(everyone)}
    if kind != "delay":
        table = [[None if p == q else busy[kind](p, q) for q in everyone] for p in everyone]
        problem = replace(problem, transfer_resource=tuple(map(tuple, table)))
    check(problem)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000))
def test_no_assignment_has_less_where_kinds_of_transfers_mix(seed) -> None:
    check(any_problem(seed, most_operators=6))


def check(problem) -> None:
    least_s = min(period_s(problem, processor) for processor in placements(problem))
    found = solved(problem)
    assert found.proven
    assert found.period_s == period_s(problem, found.processor)
    assert found.bound_s <= least_s * (1 + 1e-12)
    assert least_s <= found.period_s <= least_s * (1 + ROUNDED)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([1e-3, 4.0, 1e3]))
def test_times_k_fold_make_the_period_k_fold(seed, k) -> None:
    problem = any_problem(seed)

    def longer(table):
        return tuple(tuple(k * time_s for time_s in row) for row in table)

    flows = tuple(replace(flow, transfer_s=longer(flow.transfer_s)) for flow in problem.flows)
    scaled = replace(problem, time_s=longer(problem.time_s), flows=flows)
    assert solved(scaled).period_s == pytest.approx(k * solved(problem).period_s, rel=ROUNDED)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000))
def test_one_more_processor_never_lengthens_the_period(seed) -> None:
    problem = any_problem(seed)
    fewer = restrict_to(problem, range(problem.processors - 1))
    if fewer is not None:
        assert solved(problem).period_s <= solved(fewer).period_s * (1 + ROUNDED)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000))
def test_without_time_there_is_an_assignment_and_a_true_bound(seed) -> None:
    problem = any_problem(seed)
    least_s = solved(problem).period_s
    quick = least_period(problem, time_limit_s=0, seed=0)
    assert quick.bound_s <= least_s <= quick.period_s * (1 + ROUNDED)
    assert quick.period_s == period_s(problem, quick.processor)


def test_the_answer_is_the_same_in_every_run() -> None:
    problem = any_problem(7, most_operators=12)
    assert solved(problem) == solved(problem)
