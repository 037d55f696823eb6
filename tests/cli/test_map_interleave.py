"""`parapipe map --interleave auto`: what it finds is marked, explained, simulated, and runs."""

from __future__ import annotations

import json

import pytest

MAP = ("map", "zoo:squeezenet", "--platform", "amlogic-a311d", "--no-cache")
TWO = ("--objectives", "latency-throughput", "--resolution", "0.05")


@pytest.fixture
def front(parapipe, tmp_path):
    ended = parapipe(*MAP, *TWO, "--interleave", "auto", "--out", tmp_path)
    assert (ended.code, ended.err) == (0, "")
    return tmp_path, ended.out


def test_interleaved_frames_have_more_throughput_than_stages_and_say_so(front) -> None:
    folder, told = front
    rows = json.loads((folder / "front.json").read_text())["configurations"]
    best = next(row for row in rows if "interleaved-T" in row["names"])
    stages = [row for row in rows if row["kind"] != "interleaved"]
    assert best["kind"] == "interleaved"
    assert best["throughput_fps"] > 1.05 * max(row["throughput_fps"] for row in stages)
    assert best["throughput_fps"] == max(row["throughput_fps"] for row in rows)
    assert 0 <= best["gap"] < 0.02
    assert "interleaved-T" in told


def test_its_plan_is_sound_and_a_simulation_has_its_period(front, parapipe) -> None:
    folder, _ = front
    rows = json.loads((folder / "front.json").read_text())["configurations"]
    best = next(row for row in rows if "interleaved-T" in row["names"])
    plan = folder / "plans" / f"{best['id']}.json"
    assert parapipe("verify", plan).code == 0
    period = json.loads(parapipe("simulate", plan, "--frames", 1200, "--json").out)["period"]
    assert period["limit_s"] == pytest.approx(best["period_s"], rel=1e-6)
    # frames that are under way at the end come out sooner, as no others follow them
    assert period["observed_s"] == pytest.approx(best["period_s"], rel=0.01)


def test_what_cannot_be_explained_yet_names_the_busiest_processor(front, parapipe) -> None:
    folder, _ = front
    ended = parapipe("explain", folder, "interleaved-T")
    assert ended.code == 1
    assert "its busiest processor is " in ended.err
    assert len(ended.err.splitlines()) == 1


def test_without_it_no_configuration_interleaves(parapipe, tmp_path) -> None:
    assert parapipe(*MAP, *TWO, "--out", tmp_path).code == 0
    rows = json.loads((tmp_path / "front.json").read_text())["configurations"]
    assert all(row["kind"] != "interleaved" for row in rows)
