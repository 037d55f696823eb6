"""Frames through a plan: what an executor with one thread per processor does."""

from __future__ import annotations

from itertools import pairwise
from statistics import fmean, stdev

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parapipe.mappings.event_graph import PICOSECONDS
from parapipe.plan.build import build_plan
from parapipe.simulate.simulation import simulate
from parapipe.simulate.variation import RandomFactors, jitter_factors
from tests.cases.plan_cases import drawn_plan, random_case

PLAN = drawn_plan()


def period_s(record, warm_up):
    first, last = record.frames[warm_up], record.frames[-1]
    return (last.done_s - first.done_s) / (last.index - first.index)


def test_a_frame_goes_through_the_drawn_plan_as_it_was_drawn():
    record = simulate(PLAN, frames=1).record
    assert record.resources == ("big", "little", "gpu")
    at = {span.name: (span.resource, span.start_s, span.end_s) for span in record.spans}
    # The stage of the gpu need not wait for the whole stage before it: d starts once b is there.
    assert at == {
        "a": ("big", 0.0, 1.0),
        "b": ("big", 1.0, 3.0),
        "c": ("little", 1.25, 2.25),
        "d": ("gpu", 3.25, 4.25),
        "e": ("gpu", 4.25, 5.25),
    }
    (frame,) = record.frames
    assert (frame.admitted_s, frame.done_s) == (0.0, 5.25)
    assert {(arrow.tensor, arrow.source, arrow.target) for arrow in record.arrows} == {
        ("a", "big", "little"), ("a", "big", "gpu"), ("b", "big", "gpu"), ("c", "little", "gpu"),
    }  # fmt: skip


@settings(max_examples=40)
@given(seed=st.integers(0, 10**9))
def test_paced_frames_take_no_longer_than_predicted_and_follow_at_the_period(seed):
    plan = build_plan(*random_case(seed))
    record = simulate(plan, frames=40).record
    latest_s = max(frame.done_s - frame.admitted_s for frame in record.frames)
    assert latest_s <= plan.predicted.latency_s + 1e-9
    assert period_s(record, 20) == pytest.approx(plan.predicted.period_s, rel=1e-9)


@settings(max_examples=40)
@given(seed=st.integers(0, 10**9))
def test_a_saturated_pipeline_sustains_what_the_plan_says(seed):
    plan = build_plan(*random_case(seed))
    found = simulate(plan, frames=300, saturate=True)
    assert found.steady is not None
    steady_s = float(found.steady.period_ps / PICOSECONDS)
    assert steady_s == pytest.approx(plan.predicted.sustained_period_s, rel=1e-12)


@settings(max_examples=40)
@given(seed=st.integers(0, 10**9), jitter=st.sampled_from([0.0, 0.2]))
def test_frames_stay_in_order_and_resources_do_one_thing_at_a_time(seed, jitter):
    plan = build_plan(*random_case(seed))
    record = simulate(plan, frames=12, saturate=True, luck=RandomFactors(jitter, seed=seed)).record
    for resource in record.resources:
        mine = [span for span in record.spans if span.resource == resource]
        assert all(a.end_s <= b.start_s for a, b in pairwise(mine))
    done = [frame.done_s for frame in record.frames]
    assert done == sorted(done)
    known = {(span.resource, span.name, span.frame): span for span in record.spans}
    assert len(known) == len(record.spans) == 12 * len(plan.operators)
    for arrow in record.arrows:
        for frame in range(12):
            made = known[arrow.source, arrow.producer, frame]
            assert made.end_s <= known[arrow.target, arrow.consumer, frame].start_s


@settings(max_examples=40)
@given(seed=st.integers(0, 10**9))
def test_longer_queues_never_make_a_frame_later_whatever_happens(seed):
    plan = build_plan(*random_case(seed))
    luck = RandomFactors(0.3, seed=seed)
    runs = [simulate(plan, frames=12, saturate=True, luck=luck, queue=k) for k in (1, 2, 3)]
    done_s = [[frame.done_s for frame in run.record.frames] for run in runs]
    for shorter, longer in pairwise(done_s):
        assert all(b <= a + 1e-9 for a, b in zip(shorter, longer, strict=True))


def test_the_same_seed_gives_the_same_run_and_another_one_another():
    runs = [
        simulate(PLAN, frames=5, luck=RandomFactors(0.1, seed=seed)).record for seed in (1, 1, 2)
    ]
    assert runs[0] == runs[1] != runs[2]


def test_only_what_is_without_chance_and_saturated_recurs():
    assert simulate(PLAN, frames=30, saturate=True).steady is not None
    assert simulate(PLAN, frames=30).steady is None
    assert simulate(PLAN, frames=30, saturate=True, luck=RandomFactors(0.01)).steady is None


@pytest.mark.parametrize("share", [0.05, 0.5])
def test_factors_have_mean_one_and_the_standard_deviation_asked_for(share):
    jitter = jitter_factors(share, 0, "conv")
    factors = [jitter.of_frame(frame) for frame in range(20_000)]
    assert min(factors) > 0
    assert fmean(factors) == pytest.approx(1, abs=0.02)
    assert stdev(factors) == pytest.approx(share, rel=0.05)


def test_factors_depend_on_seed_and_name_and_not_on_when_they_are_asked_for():
    def factors(seed, name, frames):
        jitter = jitter_factors(0.1, seed, name)
        return {frame: jitter.of_frame(frame) for frame in frames}

    assert factors(1, "conv", [3, 0, 2, 1]) == factors(1, "conv", [0, 1, 2, 3])
    assert factors(1, "conv", [0]) != factors(2, "conv", [0])
    assert factors(1, "conv", [0]) != factors(1, "pool", [0])
