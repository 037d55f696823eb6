"""A plan whose processors slow each other down is simulated as it was predicted."""

from __future__ import annotations

from math import ceil

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from parapipe.documents.build_run import run_document
from parapipe.mappings.event_graph import PICOSECONDS
from parapipe.mappings.steady_state import MOST_FRAMES
from parapipe.simulate.simulation import simulate
from tests.plan.test_co_run_rules import random_plan

PS = 1 / PICOSECONDS


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32), st.booleans())
@example(34, False)  # after 30 frames it still takes 6.9 ns longer
def test_the_simulated_state_is_the_predicted_one(seed, stages):
    plan = random_plan(seed, stages=stages)
    if plan is None or not plan.co_run.exact:
        return
    predicted = plan.predicted
    found = simulate(plan, frames=4, saturate=True)
    if found.steady:
        least_s = max(found.pace_s, plan.co_run.free.sustained_period_s)
        assert predicted.sustained_period_s == pytest.approx(least_s, abs=2 * PS)
    # Frames come once per predicted period. The first ones may take longer than was predicted, each
    # nearer to it than the one before; what is exact recurs after MOST_FRAMES at the latest. The
    # frames beside the one looked at are all there, too.
    frame, beside = MOST_FRAMES, ceil(predicted.latency_s / predicted.period_s)
    paced = simulate(plan, frames=frame + beside + 2, pace_s=predicted.period_s)
    spans = [each for each in paced.record.spans if each.frame == frame]
    operators = {each.id for each in plan.operators}
    own = [each for each in spans if each.name in operators]
    took_s = max(each.end_s for each in own) - min(each.start_s for each in own)
    assert took_s <= predicted.latency_s * (1 + 1e-6) + 1e-9


@pytest.mark.parametrize("seed", [35, 45, 46])
def test_no_saturated_simulation_is_faster_than_its_limit(seed):
    # In the first two, less runs beside the busiest processor than at the plan's longer period.
    plan = random_plan(seed, stages=True)
    run = simulate(plan, frames=60, saturate=True)
    period = run_document(
        plan, run.program, run.record, how="simulation", saturated=True, exact_s=run.pace_s
    ).period
    assert period.observed_s >= period.limit_s * (1 - 1e-6)
    assert period.limit_s >= plan.co_run.free.sustained_period_s * (1 - 1e-6)


def test_a_law_that_the_plan_states_counts_and_contention_takes_its_place():
    plan = next(
        each
        for each in map(random_plan, range(40))
        if each and each.predicted.sustained_period_s > 1.05 * each.co_run.free.sustained_period_s
    )
    slowed = simulate(plan, frames=4, saturate=True)
    assert slowed.pace_s == pytest.approx(plan.predicted.sustained_period_s)
    free = simulate(plan.model_copy(update={"co_run": None}), frames=4, saturate=True)
    assert free.pace_s == pytest.approx(plan.co_run.free.sustained_period_s)
