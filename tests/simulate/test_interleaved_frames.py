"""Frames through plans whose processors work on several of them."""

import random
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import parapipe
from parapipe.mappings.event_graph import PICOSECONDS
from parapipe.plan.mapped import mapping_view
from parapipe.simulate.simulation import simulate
from tests.cases.interleaved import (
    DRAWN,
    chain,
    interleaved,
    plan_of,
    random_document,
    three_frames,
)
from tests.cases.moving_networks import moving_graph
from tests.cases.plan_cases import random_case


def period_s(plan):
    found = simulate(plan, frames=60, saturate=True)
    assert found.steady is not None
    return found.steady.period_ps / PICOSECONDS


@pytest.mark.parametrize("case", DRAWN)
def test_the_simulated_period_is_that_of_the_plan(case):
    plan = plan_of(case())
    assert period_s(plan) == Fraction(plan.predicted.period_s)


@given(seed=st.integers(0, 10**9))
def test_it_is_so_whatever_the_assignment(seed):
    document = random_document(random_case(seed)[0], seed)
    if document is not None:
        plan = plan_of(document)
        assert period_s(plan) == Fraction(plan.predicted.period_s)


def test_a_processor_takes_turns_on_three_frames():
    found = simulate(plan_of(three_frames()), frames=6)
    turns = [(each.name, each.frame) for each in found.record.spans if each.resource == "big"]
    assert turns[6:12] == [("a", 3), ("c", 2), ("e", 1), ("a", 4), ("c", 3), ("e", 2)]


def test_frames_let_in_once_a_period_take_the_predicted_latency():
    plan = plan_of(three_frames())
    found = simulate(plan, frames=6)
    times_s = [frame.done_s - frame.admitted_s for frame in found.record.frames]
    # Work starts as soon as it can: d does not wait for its turn of the period.
    assert max(times_s) <= plan.predicted.latency_s


@settings(max_examples=60)
@given(seed=st.integers(0, 10**9))
def test_what_is_said_of_a_saturated_simulation_is_what_can_be_sustained(seed):
    rng = random.Random(seed)
    document = random_document(moving_graph(rng, rng.randint(2, 12)), seed)
    if document is None:
        return
    plan = plan_of(document)
    lags = max(at.lag for at in mapping_view(plan).placements.values()) + 2
    run = parapipe.simulate_plan(plan, frames=rng.randint(5 * lags, 30 * lags), saturate=True)
    period = run.document.period
    assert period.observed_s == period.sustained_s
    assert all(each.observed_utilisation <= 1 + 1e-9 for each in run.document.resources)


def in_turn(times_us):
    """A chain on two processors in turn, each operator a period behind the one before."""
    names = [f"t{i}" for i in range(len(times_us))]
    busy_us = [0, 0]
    orders: dict[str, list] = {"big": [], "little": []}
    for i, (name, took_us) in enumerate(zip(names, times_us, strict=True)):
        begin_us = busy_us[i % 2]
        busy_us[i % 2] += took_us
        times_s = begin_us / 1e6, busy_us[i % 2] / 1e6
        orders[("big", "little")[i % 2]].append((name, *times_s, i))
    return plan_of(interleaved(chain(names), [orders], max(busy_us) / 1e6))


@settings(max_examples=60)
@given(
    times_us=st.lists(st.integers(100, 900), min_size=4, max_size=9),
    less=st.integers(-3, 3),
    rounds=st.integers(50, 200),
)
def test_it_is_so_where_one_processor_is_hardly_faster_than_the_other(times_us, less, rounds):
    # For thousands of frames it uses up what the first ones have left in the queues.
    times_us[1] += max(0, sum(times_us[0::2]) - sum(times_us[1::2]) - less)
    plan = in_turn(times_us)
    frames = rounds * len(times_us) // 10
    period = parapipe.simulate_plan(plan, frames=frames, saturate=True).document.period
    assert period.observed_s == period.sustained_s
