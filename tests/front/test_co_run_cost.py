"""A front of processors that slow each other down, from the platform's file to the explanation."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest

import parapipe
from parapipe.cli.main import main
from tests.cases.soc_texts import spoil

LAW = """co_run:
  slowdowns:
    - {processor: cpu, busy: [gpu], factor: 1.5}
    - {processor: gpu, busy: [cpu], factor: 1.2}
  source: guess
sources:
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A front that was written to a folder."""
    place = tmp_path_factory.mktemp("co-run")
    file = place / "soc.yaml"
    file.write_text(spoil(("sources:\n", LAW)))
    front = parapipe.map(
        "zoo:squeezenet", file, objectives="latency-throughput", interleave="none", cache=False,
        mapper="heft",
    )  # fmt: skip
    front.write(place / "front")
    return place / "front"


def test_rows_say_what_they_would_take_without(folder):
    document = json.loads((folder / "front.json").read_text())
    several = [row for row in document["configurations"] if row["kind"] != "sequential"]
    assert several
    for row in document["configurations"]:
        free = row["co_run"]
        assert free["free_period_s"] <= row["period_s"]
        assert free["free_latency_s"] <= row["latency_s"]
    assert any(row["co_run"]["free_period_s"] < 0.95 * row["period_s"] for row in several)
    bounds = document["co_run"]
    assert bounds["latency_s"] <= min(row["latency_s"] for row in document["configurations"])
    assert 0 <= bounds["period_gap"] < 1


def test_plans_are_verified_and_simulated_as_predicted(folder):
    front = parapipe.load_front(folder)
    row = min(front, key=lambda each: each.period_s)
    plan = row.plan()
    plan.verify()
    run = plan.simulate(frames=100, saturate=True)
    assert run.document.period.observed_s == pytest.approx(plan.predicted.sustained_period_s)


def test_explain_says_what_it_costs(folder, capsys):
    front = parapipe.load_front(folder)
    row = min(front, key=lambda each: each.period_s)
    with suppress(SystemExit):
        main(["explain", str(folder), row.id])
    text = " ".join(capsys.readouterr().out.split())
    assert "Its processors slow each other down, which costs up to" in text
    with suppress(SystemExit):
        main(["explain", str(folder), "gpu-alone"])
    assert "slow each other down" not in capsys.readouterr().out


def test_a_processor_that_others_slow_down_sets_the_period(folder, capsys):
    front = parapipe.load_front(folder)
    row = max(front, key=lambda each: each.period_s / each.co_run.free_period_s)
    plan = row.plan()
    simulated = {
        each.name: each.observed_s for each in plan.simulate(frames=100).document.resources
    }
    name = max(simulated, key=simulated.__getitem__)
    with suppress(SystemExit):
        main(["explain", str(folder), row.id])
    text = " ".join(capsys.readouterr().out.split())
    assert f"Beside the others, {name} is the busiest: it computes for " in text
    for each in row.processors:
        assert f"{each.name} {simulated[each.name] / row.period_s:.0%}" in text


def test_simulated_times_are_compared_with_those_beside_the_others(folder):
    front = parapipe.load_front(folder)
    row = max(front, key=lambda each: each.period_s / each.co_run.free_period_s)
    run = row.plan().simulate(frames=100, saturate=True).document
    for each in run.resources:
        assert each.predicted_s == pytest.approx(each.observed_s, rel=0.01)
    longer = [task for task in run.tasks if task.predicted_s > sum(task.predicted_operators_s)]
    assert longer
    assert run.period.limit_s == pytest.approx(run.period.sustained_s, rel=0.01)


def test_evaluate_says_it_too(folder, tmp_path):
    order = tmp_path / "assignment.yaml"
    order.write_text(
        "schema: parapipe/assignment/1\ndefault: gpu\nsubgraphs: {1: cpu}\n"
        "stages: [{subgraphs: 1}, {subgraphs: 2-18}]\n"
    )
    model = parapipe.inspect("zoo:squeezenet", platform=folder.parent / "soc.yaml")
    count = model.subgraphs
    order.write_text(order.read_text().replace("2-18", f"2-{count}"))
    found = parapipe.evaluate("zoo:squeezenet", folder.parent / "soc.yaml", assignment=order)
    assert found.co_run.free_sustained_period_s < found.sustained_period_s
