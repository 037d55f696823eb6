"""Processors that slow each other down, within a power budget: all that prices a plan agrees."""

from __future__ import annotations

import json

import pytest

import parapipe
from parapipe.errors import VerificationError
from parapipe.plan.verify import verify_plan
from tests.cases.soc_texts import spoil

BUDGET_W = 2.0
LAW = """co_run:
  slowdowns:
    - {processor: cpu, busy: [gpu], factor: 1.5}
    - {processor: gpu, busy: [cpu], factor: 1.2}
  source: guess
"""
MORE = f"{LAW}state: sustained\npower_budget: {{sustained_w: {BUDGET_W}, source: guess}}\nlinks:\n"
OPTIONS = {
    "objectives": "latency-throughput", "interleave": "none", "cache": False, "mapper": "heft",
}  # fmt: skip


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    file = tmp_path_factory.mktemp("both") / "soc.yaml"
    file.write_text(spoil(("links:\n", MORE)))
    return file


@pytest.fixture(scope="module")
def front(file):
    return parapipe.map("zoo:squeezenet", file, **OPTIONS)


@pytest.fixture(scope="module")
def both(front):
    """The row of the most throughput: the budget sets its period, the law its latency."""
    return min(front, key=lambda each: each.period_s)


@pytest.mark.nightly
def test_a_saturated_simulation_says_that_it_does_not_keep_to_the_budget(front):
    told = 0
    for row in front:
        power = row.plan().predicted.power
        run = row.plan().simulate(frames=50, saturate=True)
        notes = [note for note in run.notes if "does not keep to the power budget of 2 W" in note]
        sooner = bool(power) and run.document.period.observed_s < power.period_s * 0.995
        assert bool(notes) == sooner
        told += sooner
        assert not row.plan().simulate(frames=50).notes
    assert told


def test_rows_are_slowed_by_either(front, both):
    by_law = by_budget = 0
    for row in front:
        plan = row.plan()
        power, free = plan.predicted.power, plan.co_run.free
        assert row.energy_j / row.period_s <= BUDGET_W * (1 + 1e-9)
        assert row.period_s >= (power.period_s if power else 0) * (1 - 1e-9)
        by_law += row.period_s > free.period_s * (1 + 1e-9)
        by_budget += bool(power) and row.period_s == pytest.approx(power.period_s, rel=1e-9)
    assert by_law
    assert by_budget
    free = both.plan().co_run.free
    assert both.period_s == pytest.approx(free.period_s, rel=1e-9)
    assert both.period_s == pytest.approx(both.plan().predicted.power.period_s, rel=1e-9)
    assert both.latency_s > free.latency_s * 1.01


def test_plans_are_verified(front, both):
    for row in front:
        verify_plan(row.plan())
    plan = both.plan()
    power = plan.predicted.power.model_copy(update={"budget_w": BUDGET_W * 0.9})
    predicted = plan.predicted.model_copy(update={"power": power})
    with pytest.raises(VerificationError, match=r"more than the budget of 1\.8 W"):
        verify_plan(plan.model_copy(update={"predicted": predicted}))


def test_a_simulation_takes_what_was_predicted(front):
    for row in front:
        run = parapipe.simulate_plan(row.plan(), frames=200).document
        assert run.pace_s == pytest.approx(row.period_s)
        assert run.period.median_s == pytest.approx(row.period_s)
        assert run.latency.most_s <= row.latency_s * (1 + 1e-6)


def test_evaluate_says_the_same(file, both, tmp_path):
    plan = both.plan()
    order = {
        "schema": "parapipe/assignment/1",
        "operators": {
            each.operator: processor.name
            for stage in plan.stages
            for processor in stage.processors
            for each in processor.operators
        },
        "stages": [
            {"operators": [e.operator for p in stage.processors for e in p.operators]}
            for stage in plan.stages
        ],
    }
    (tmp_path / "assignment.yaml").write_text(json.dumps(order))
    found = parapipe.evaluate("zoo:squeezenet", file, assignment=tmp_path / "assignment.yaml")
    assert found.period_s == pytest.approx(both.period_s)
    assert found.co_run.free_period_s == pytest.approx(plan.co_run.free.period_s)
    assert found.latency_s == pytest.approx(both.latency_s)
