"""Mappings whose processors slow each other down: by hand, and between what bounds them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from parapipe.cost.co_run import Draw, LinearContention, SharedMemoryLaw, SlowdownTable
from parapipe.cost.cost_table import build_cost_table
from parapipe.mappings.assembly import mapping_of
from parapipe.mappings.assignment import Assignment
from parapipe.mappings.evaluate import evaluate
from parapipe.platform.co_run import Slowdown
from tests.cases.co_runs import timed_costs, with_law, with_random_law, work_error_s
from tests.cases.hand_built import GraphBuilder, platform, processor
from tests.cases.uncertain_mappings import random_in_turn, random_stages

DRAWS = {"a": Draw(1e9), "b": Draw(1e9)}
TABLE = SlowdownTable(
    (
        Slowdown(processor="a", busy=("b",), factor=1.5),
        Slowdown(processor="b", busy=("a",), factor=1.5),
    ),
    DRAWS,
)


def two_operators(moved_bytes=(0, 0), *, chained=True):
    """Two convolutions of 4 and 2 ms, one behind the other or beside it."""
    builder = GraphBuilder(x=(1, 8, 12, 12))
    first = builder.conv("x", 8)
    last = builder.conv(first if chained else "x", 8)
    graph = builder.graph(*([last] if chained else [first, last]))
    chip = platform(processor("a", cores=[0]), processor("b", cores=[1]))
    costs = build_cost_table(graph, chip, profiles=())
    return graph, timed_costs(costs, [(4e-3, 4e-3), (2e-3, 2e-3)], moved_bytes)


def taken(graph, costs, law, places, stages):
    costs = with_law(costs, law)
    mapping = mapping_of(graph, None, costs, Assignment(places, stages))
    return evaluate(mapping, graph, costs)


def test_two_stages_slow_each_other_down_while_both_work():
    # The second one is at work for 3 ms of each period, both at 2/3 of their speed. The first one
    # has done 2 of its 4 ms by then, and does the others alone.
    graph, costs = two_operators()
    found = taken(graph, costs, TABLE, (0, 1), ((0,), (1,)))
    assert found.period_s == pytest.approx(5e-3)
    assert found.sustained_period_s == pytest.approx(5e-3)
    assert found.latency_s == pytest.approx(5e-3 + 3e-3)
    assert [each.time_s for each in found.stages] == [4e-3, 2e-3]
    assert [each.contended_time_s for each in found.stages] == pytest.approx([5e-3, 3e-3])
    effect = found.co_run
    assert (effect.free_period_s, effect.free_latency_s) == pytest.approx((4e-3, 6e-3))


def test_contention_is_a_law_like_any_other():
    # Each moves 1 GB/s, which makes the other one 1.5 times as long: as above.
    graph, costs = two_operators((4_000_000, 2_000_000))
    found = taken(graph, costs, LinearContention(0.5 / 1e9), (0, 1), ((0,), (1,)))
    assert (found.period_s, found.latency_s) == pytest.approx((5e-3, 8e-3))
    assert [each.contended_time_s for each in found.stages] == pytest.approx([5e-3, 3e-3])


def test_two_branches_of_one_stage_slow_each_other_down_too():
    graph, costs = two_operators(chained=False)
    found = taken(graph, costs, TABLE, (0, 1), ((0, 1),))
    assert (found.period_s, found.latency_s) == pytest.approx((5e-3, 5e-3))


def test_one_frame_at_a_time_is_slowed_down_by_itself_only():
    # Two stages never work at the same time then: 6 ms, as alone. Two branches do, for 3 ms.
    for chained, stages, single_s in ((True, ((0,), (1,)), 6e-3), (False, ((0, 1),), 5e-3)):
        graph, costs = two_operators(chained=chained)
        costs = replace(costs, static_power_w=(1.0, 1.0), idle_power_w=2.0)
        found = taken(graph, costs, TABLE, (0, 1), stages)
        dynamic_j = sum(stage.dynamic_energy_j for stage in found.stages)
        static_s = single_s if chained else 2 * single_s
        assert found.sequential_energy_j == pytest.approx(dynamic_j + static_s)
        idle_j = found.sequential_board_energy_j - found.sequential_energy_j
        assert idle_j == pytest.approx(2 * single_s)


def test_one_processor_by_itself_is_not_slowed_down():
    graph, costs = two_operators()
    found = taken(graph, costs, TABLE, (0, 0), ((0, 1),))
    alone = taken(graph, costs, None, (0, 0), ((0, 1),))
    assert replace(found, co_run=None) == alone
    assert alone.co_run is None


def test_two_stages_that_are_bound_by_the_memory_take_turns_on_it():
    # 4 and 2 MB at 1 GB/s, alone at the full bandwidth: the period is the bytes over it.
    graph, costs = two_operators((4_000_000, 2_000_000))
    law = SharedMemoryLaw(1e9, DRAWS)
    found = taken(graph, costs, law, (0, 1), ((0,), (1,)))
    assert found.period_s == pytest.approx(6e-3)


def test_half_of_the_bandwidth_each_disturbs_nobody():
    graph, costs = two_operators((2_000_000, 1_000_000))
    law = SharedMemoryLaw(1e9, DRAWS)
    found = taken(graph, costs, law, (0, 1), ((0,), (1,)))
    assert (found.period_s, found.latency_s) == (4e-3, 6e-3)


def test_static_energy_counts_for_the_period_that_there_is():
    graph, costs = two_operators()
    alone, slowed = (taken(graph, costs, law, (0, 1), ((0,), (1,))) for law in (None, TABLE))
    watts = sum(costs.static_power_w)
    assert slowed.energy_j - alone.energy_j == pytest.approx(1e-3 * watts)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32), st.booleans())
def test_figures_lie_between_those_alone_and_those_with_all_others_busy(seed, stages):
    graph, costs, mapping = random_stages(seed) if stages else random_in_turn(seed)
    if mapping is None:
        return
    rng_costs = with_random_law(costs, seed)
    alone, found = (evaluate(mapping, graph, each) for each in (costs, rng_costs))
    assert found.period_s >= alone.period_s
    assert found.latency_s >= alone.latency_s
    assert found.sustained_period_s >= alone.sustained_period_s
    most = 3.0 if isinstance(rng_costs.co_run, SlowdownTable) else 1e3
    assert found.sustained_period_s <= alone.sustained_period_s * most * (1 + 1e-9)
    assert found.period_s >= found.sustained_period_s * (1 - 1e-9)
    effect = found.co_run
    assert effect.free_period_s == alone.period_s
    assert effect.free_latency_s == alone.latency_s
    assert effect.free_sustained_period_s == alone.sustained_period_s


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32), stages=st.booleans())
@example(seed=479, stages=True)  # saturated, replicas run away from each other
@example(seed=2172, stages=True)
def test_factors_of_one_change_nothing(seed, stages):
    graph, costs, mapping = random_stages(seed, occupying=False) if stages else random_in_turn(seed)
    if mapping is None:
        return
    law = SharedMemoryLaw(1e15, {name: Draw(1e12) for name in costs.processors})
    alone, found = (evaluate(mapping, graph, each) for each in (costs, with_law(costs, law)))
    assert found.period_s == pytest.approx(max(alone.period_s, alone.sustained_period_s))
    assert found.latency_s == pytest.approx(alone.latency_s, rel=1e-9)
    assert found.sustained_period_s == alone.sustained_period_s


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32))
def test_each_operator_has_done_its_work_when_it_ends(seed):
    """Rates over an interval add up to the time alone, whoever is at work beside it."""
    graph, costs, mapping = random_stages(seed)
    if mapping.replicated:
        return
    costs = with_random_law(costs, seed)
    frames = evaluate(mapping, graph, costs).co_run.frames
    if not frames.exact:
        return
    assert work_error_s(mapping, costs, frames) <= 1e-11 * (len(graph.operators) + 4)
