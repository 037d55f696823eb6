"""Plans whose processors slow each other down: what is said of when all runs is checked."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parapipe.errors import VerificationError
from parapipe.mappings.evaluate import settle
from parapipe.plan.build import build_plan
from parapipe.plan.co_run_rules import _overlaps
from parapipe.plan.records import CoRunFactor
from parapipe.plan.schema import Plan
from parapipe.plan.verify import verify_plan
from tests.cases.co_runs import with_random_law
from tests.cases.uncertain_mappings import random_chip, random_in_turn, random_stages


def random_plan(seed, *, stages=True):
    """Return the plan of a random mapping with a random law, or None."""
    graph, costs, mapping = random_stages(seed) if stages else random_in_turn(seed)
    if mapping is None or (not stages and len(mapping.stages) == 1):
        return None
    if mapping.replicated and any(each.resource is not None for each in mapping.transfers):
        return None
    costs = with_random_law(costs, seed)
    chip = random_chip(seed, occupying=True if stages else bool(seed % 2))
    mapping, found = settle(mapping, graph, costs)
    return build_plan(graph, chip, costs, mapping, found=found)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32), st.booleans())
def test_every_plan_is_right_and_reads_back(seed, stages):
    plan = random_plan(seed, stages=stages)
    if plan is None:
        return
    verify_plan(plan)
    again = Plan.model_validate_json(plan.to_bytes())
    assert again == plan


@pytest.fixture(scope="module")
def plan():
    """A plan of several processors that slow each other down, whose frames recur."""
    plans = (random_plan(seed) for seed in range(100))
    return next(
        each
        for each in plans
        if each
        and each.co_run.spans_s
        and len(each.processors) > 1
        and not any(p.replicas for stage in each.stages for p in stage.processors)
        and each.predicted.period_s > each.co_run.free.period_s * 1.1
        and each.predicted.latency_s > each.co_run.free.latency_s * 1.05
    )


def changed(plan, **co_run):
    return plan.model_copy(update={"co_run": plan.co_run.model_copy(update=co_run)})


def broken(plan):
    with pytest.raises(VerificationError) as caught:
        verify_plan(plan)
    return "\n".join(caught.value.violations)


def test_an_operator_that_ends_too_early_is_told(plan):
    name = max(plan.co_run.spans_s, key=lambda v: plan.co_run.spans_s[v][0][1])
    spans = [(a, a + (b - a) * 0.9) for a, b in plan.co_run.spans_s[name]]
    text = broken(changed(plan, spans_s={**plan.co_run.spans_s, name: tuple(spans)}))
    assert f"operator '{name}' runs from" in text


def test_an_operator_that_starts_later_than_said_is_told(plan):
    name = min(plan.co_run.spans_s, key=lambda v: plan.co_run.spans_s[v][0][0])
    spans = [(a + (b - a) * 0.1, b) for a, b in plan.co_run.spans_s[name]]
    text = broken(changed(plan, spans_s={**plan.co_run.spans_s, name: tuple(spans)}))
    assert f"operator '{name}' runs from" in text


def test_a_latency_that_no_frame_has_is_told(plan):
    less = plan.predicted.model_copy(update={"latency_s": plan.co_run.free.latency_s})
    text = broken(plan.model_copy(update={"predicted": less}))
    assert "the latency is" in text
    assert "and a frame takes" in text


def test_a_shorter_period_is_told(plan):
    period_s = plan.predicted.period_s * 0.97
    less = {"period_s": period_s, "throughput_fps": 1 / period_s}
    predicted = plan.predicted.model_copy(update=less)
    assert broken(plan.model_copy(update={"predicted": predicted}))


def test_a_law_that_slows_down_less_is_told(plan):
    law = plan.co_run
    if law.slowdowns:
        rows = tuple(row.model_copy(update={"factor": 1.0}) for row in law.slowdowns)
        weaker = changed(plan, slowdowns=rows)
    else:
        weaker = changed(plan, bandwidth_bytes_per_s=law.bandwidth_bytes_per_s * 10)
    assert "in which it does what takes" in broken(weaker)


def test_a_row_of_an_unknown_processor_is_told(plan):
    names = [each.name for each in plan.processors]
    rows = [
        CoRunFactor.model_validate({"processor": who, "busy": (busy,), "factor": 1})
        for who, busy in ((names[0], "npu9"), ("npu9", names[0]))
    ]
    told = broken(changed(plan, slowdowns=(*plan.co_run.slowdowns, *rows)))
    first = len(plan.co_run.slowdowns)
    for row in (first, first + 1):
        assert f"co_run.slowdowns[{row}] names processor 'npu9', and the plan's are" in told


def test_times_of_other_operators_are_told(plan):
    spans = {f"{name}'": each for name, each in plan.co_run.spans_s.items()}
    assert "are not those of the plan's operators" in broken(changed(plan, spans_s=spans))


def test_figures_without_the_law_are_those_of_the_stages(plan):
    free = plan.co_run.free.model_copy(update={"period_s": plan.co_run.free.period_s * 0.9})
    assert "and the longest stage" in broken(changed(plan, free=free))


def test_spans_that_are_moved_by_chance_are_told(plan):
    rng, found = random.Random(0), 0
    names = sorted(plan.co_run.spans_s)
    for _ in range(20):
        name = rng.choice(names)
        by_s = rng.choice([-0.2, 0.2]) * plan.predicted.period_s
        spans = tuple(
            (max(0.0, a + by_s), max(0.0, b + by_s)) for a, b in plan.co_run.spans_s[name]
        )
        moved = changed(plan, spans_s={**plan.co_run.spans_s, name: spans})
        try:
            verify_plan(moved)
        except VerificationError:
            found += 1
    assert found == 20


@pytest.mark.parametrize(
    ("folded", "wrong"),
    [
        ([(0.0, 2.0, "a"), (2.0, 4.0, "b")], []),
        ([(0.0, 2.0, "a"), (1.9, 4.0, "b")], [("a", "b")]),
        ([(1.0, 2.0, "a"), (2.0, 5.1, "b")], [("b", "a")]),  # over the end of the circle
        # what takes no time at the end of one circle is at the beginning of the next
        ([(0.0, 2.0, "a"), (1e-18, 1e-18, "join"), (2.0, 4.0, "b")], []),
        ([(0.0, 2.0, "a"), (2.0, 2.0, "join"), (2.0, 4.0, "b")], []),
        ([(0.0, 2.0, "a"), (1.0, 1.0, "join"), (2.0, 4.0, "b")], [("a", "join")]),
        ([(0.5, 0.5, "join"), (2.0, 5.0, "b")], [("b", "join")]),
    ],
)
def test_a_processor_does_one_thing_at_a_time(folded, wrong):
    assert [*_overlaps(folded, 4.0, 1e-9)] == wrong
