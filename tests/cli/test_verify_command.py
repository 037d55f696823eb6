"""`parapipe verify`."""

import json

import pytest


@pytest.fixture
def plan(parapipe, small_model, tmp_path):
    """Write the plans of a small model and return the first."""
    out = tmp_path / "out"
    assert parapipe("map", small_model(), "--platform", "amlogic-a311d", "--out", out).code == 0
    return out / "plans" / "c01.json"


def test_a_plan_that_map_wrote_keeps_every_rule(parapipe, plan) -> None:
    ended = parapipe("verify", plan)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.splitlines()[0] == f"{plan}: keeps every rule"
    summary = json.loads(parapipe("verify", plan, "--json").out)
    assert summary["platform"] == "amlogic-a311d"


def test_every_breach_of_a_plan_is_listed(parapipe, plan) -> None:
    document = json.loads(plan.read_text())
    document["predicted"]["latency_s"] *= 2
    operators = document["stages"][0]["processors"][0]["operators"]
    operators.append(operators[0])
    plan.write_text(json.dumps(document))
    ended = parapipe("verify", plan)
    assert (ended.code, ended.out) == (1, "")
    assert len(ended.err.splitlines()) >= 3


@pytest.mark.parametrize("text", ["", "not json", "[]", '{"schema": "parapipe/plan/999"}'])
def test_a_file_that_is_no_plan_is_named(parapipe, tmp_path, text) -> None:
    path = tmp_path / "plan.json"
    path.write_text(text)
    ended = parapipe("verify", path)
    assert (ended.code, ended.out) == (1, "")
    assert str(path) in ended.err.splitlines()[0]
    assert "Traceback" not in ended.err


def test_a_missing_plan_is_named(parapipe, tmp_path) -> None:
    assert "no.json" in parapipe("verify", tmp_path / "no.json").complaint
