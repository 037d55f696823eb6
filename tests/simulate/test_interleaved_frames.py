"""Frames through plans whose processors work on several of them."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parapipe.pipeline.sustained import PICOSECONDS
from parapipe.simulate.simulation import simulate
from tests.cases.interleaved import DRAWN, plan_of, random_document, three_frames
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
