"""`parapipe simulate`."""

from __future__ import annotations

import json
import re

import pytest

import parapipe as api
from parapipe import load_plan
from parapipe.cli.figure_cells import plain_cells
from parapipe.documents.front_schema import FrontDocument
from parapipe.errors import FrontError
from parapipe.files.documents import read_document
from tests.cases.plan_cases import drawn_plan


@pytest.fixture
def plan(tmp_path):
    path = tmp_path / "plan.json"
    drawn_plan().save(path)
    return path


def test_it_prints_what_was_predicted_beside_what_was_simulated(parapipe, plan):
    ended = parapipe("simulate", plan, "--saturate")
    assert (ended.code, ended.err) == (0, "")
    words = [line.split() for line in ended.out.splitlines()]
    can = ["predicted", "to", "be", "sustainable"]
    assert ["period", "ms", "3000.00", "3000.00", "3000.00", *can] in words
    assert ["frames/s", "0.33", "0.33", "0.33", *can] in words
    assert "shortest period, predicted: 3000.00 ms, set by the busy time of big" in ended.out
    assert "the schedule repeats every frame: the period stays 3000.00 ms" in ended.out


def test_a_prediction_outside_of_its_interval_is_said_to_be_by_the_stated_costs(parapipe, tmp_path):
    (tmp_path / "board.yaml").write_text(api.new_platform(chip="rk3588").text, encoding="utf-8")
    front = api.map(
        "zoo:squeezenet",
        tmp_path / "board.yaml",
        interleave="none",
        cache=False,
        note=lambda _: None,
    )
    front.write(tmp_path / "front")
    row = max(front, key=lambda each: each.throughput_fps)
    assert row.throughput_fps > 1 / row.intervals.period_s[0]  # else nothing is tested
    stated = (row.throughput_fps, 1 / row.medians.period_s)
    fps, median = (plain_cells([each])[0] for each in stated)
    said = f"predicted throughput {fps} frames/s by the stated costs; in draws of the costs "
    plan = tmp_path / "front/plans" / f"{row.id}.json"
    for words in ((tmp_path / "front", row.id), (plan,)):
        ended = parapipe("simulate", *words)
        assert re.search(rf"^{re.escape(said)}[0-9.–]+, median {median}$", ended.out, re.MULTILINE)
    assert said not in parapipe("simulate", plan, "--json").out
    (tmp_path / "front/front.json").unlink()
    assert "by the stated costs" not in parapipe("simulate", plan).out


def test_json_is_one_document_of_its_schema(parapipe, plan):
    document = json.loads(
        parapipe("simulate", plan, "--frames", 30, "--jitter", "5%", "--seed", 3, "--json").out
    )
    assert document["schema"] == "parapipe/run/2"
    assert (document["frames"], document["warm_up"]) == (30, 6)
    assert document["simulation"] == {
        "unit": "operator", "queue": None, "jitter": 0.05, "seed": 3, "contention": None,
        "steady": None, "disturbed": None, "measured": None, "chosen": None,
    }  # fmt: skip


def test_a_trace_is_written_where_asked(parapipe, plan, tmp_path):
    trace = tmp_path / "trace.json"
    ended = parapipe("simulate", plan, "--frames", 3, "--trace", trace)
    assert f"trace: {trace}" in ended.out
    events = json.loads(trace.read_text())["traceEvents"]
    assert {event["args"]["frame"] for event in events if event["ph"] == "X"} == {0, 1, 2}


def test_frames_that_come_too_fast_are_told(parapipe, plan):
    ended = parapipe("simulate", plan, "--queue", 1)
    assert "frames arrive faster than the pipeline takes them" in ended.out
    assert "waiting for each other, with these queues and these segments or operators" in ended.out


def test_queues_that_still_fill_are_told(parapipe, tmp_path):
    """The first ones of a deep pipeline are done sooner than all later ones can be."""
    front = api.map("zoo:squeezenet", "amlogic-a311d", split="none", draws=0)
    rows = (each for each in front if each.kind == "interleaved")
    plan = tmp_path / "plan.json"
    min(rows, key=lambda each: each.period_s).plan().save(plan)
    told = "faster than they can be in the long run"
    for frames, fills in ((10, True), (60, False)):
        ended = parapipe("simulate", plan, "--saturate", "--frames", frames)
        assert (told in ended.out) == fills


def test_tasks_that_take_longer_are_named(parapipe, plan):
    ended = parapipe("simulate", plan, "--jitter", "30%", "--frames", 5)
    assert "than predicted" in ended.out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--jitter", "five"], "as in 5%"),
        (["--jitter", "100%"], "below 100 %"),
        (["--contention", "much"], "as in 0.3"),
        (["--contention", "0"], "not a positive number"),
        (["--platform", "amlogic-a311d"], "it needs --contention or --strategy"),
        (["--disturb", "big"], "as in big=50%"),
        (["--disturb", "big=100%"], "as in big=50%"),
        (["--strategy", "stael"], "did you mean 'steal'?"),
        (["--frames", "0"], "--frames"),
        (["--queue", "0"], "--queue"),
    ],
)
def test_wrong_usage_is_told(parapipe, plan, options, words):
    ended = parapipe("simulate", plan, *options)
    assert (ended.code, ended.out) == (2, "")
    assert words in ended.err


def test_a_share_may_be_given_without_per_cent(parapipe, plan):
    shown = parapipe("simulate", plan, "--jitter", "0.05", "--json").out
    assert json.loads(shown)["simulation"]["jitter"] == 0.05


def test_contention_rests_on_the_platform(parapipe, plan):
    for words in (["--contention"], ["--contention", "0.3"]):
        complaint = parapipe("simulate", plan, *words).complaint
        assert "contention and strategies need the platform 'board'" in complaint
        assert "by --platform" in complaint
    unknown = parapipe("simulate", plan, "--platform", "amlogic-a311d", "--contention")
    assert "does not say how much processors slow each other down" in unknown.complaint
    given = ["--contention", "0.5", "--platform", "amlogic-a311d", "--json"]
    ended = parapipe("simulate", plan, *given)
    differ = "the memory is that of platform 'amlogic-a311d', and the plan was made for 'board'"
    assert ended.err == f"parapipe: note: {differ}\n"
    document = json.loads(ended.out)
    assert document["simulation"]["contention"] == 0.5


def test_a_disturbed_processor_takes_longer(parapipe, plan):
    shown = parapipe("simulate", plan, "--disturb", "gpu=50%", "--frames", 50, "--json")
    document = json.loads(shown.out)
    assert document["simulation"]["disturbed"] == {"gpu": 0.5}
    took = {each["name"]: each["observed_s"] / each["predicted_s"] for each in document["tasks"]}
    assert took["a"] == pytest.approx(1)
    assert took["d"] == pytest.approx(took["e"])
    assert 1.2 < took["d"] < 1.8
    complaint = parapipe("simulate", plan, "--disturb", "npu=0.5").complaint
    assert "npu cannot be disturbed: the plan's processors are big, little, gpu" in complaint


def test_the_report_says_what_a_strategy_has_changed(parapipe, branchy_folder):
    found = sorted((branchy_folder / "plans").glob("*.json"))[0]
    ended = parapipe("simulate", found, "--strategy", "ready-pool", "--saturate")
    assert "strategy    ready-pool" in ended.out
    assert "of the jobs ran elsewhere than planned" in ended.out
    assert "shortest period of the plan, predicted: " in ended.out


def test_members_of_a_strategy_are_not_told_as_options(
    parapipe, branchy_folder, tmp_path, monkeypatch
):
    text = """
from parapipe.strategies.cut import stretches
from parapipe.strategies.steal import Steal


class NotCalled(Steal):
    cut = stretches
"""
    (tmp_path / "module_that_cuts.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    found = sorted((branchy_folder / "plans").glob("*.json"))[0]
    told = parapipe("simulate", found, "--strategy", "module_that_cuts:NotCalled").complaint
    assert "strategy 'module_that_cuts:NotCalled': 'cut' has failed: TypeError: " in told


def test_several_plans_are_simulated_together_without_options_for_one(parapipe, branchy_folder):
    found = sorted((branchy_folder / "plans").glob("*.json"))[0]
    ended = parapipe("simulate", found, found, "--strategy", "ready-pool", "--frames", "5")
    assert ended.code == 0, ended.err
    assert ended.out.count("strategy    ready-pool") == 2
    refused = parapipe("simulate", found, found, "--strategy", "ready-pool", "--random-arrivals")
    assert "--random-arrivals is for one plan, and several are given" in refused.err


def test_strategies_need_the_platform(parapipe, plan):
    complaint = parapipe("simulate", plan, "--strategy", "steal").complaint
    assert "contention and strategies need the platform 'board'" in complaint
    assert "by --platform" in complaint
    given = ["--strategy", "steal", "--platform", "amlogic-a311d", "--contention"]
    assert "with the strategy 'plan' only" in parapipe("simulate", plan, *given).complaint


def test_sizes_that_take_too_long_are_refused(parapipe, plan):
    complaint = parapipe("simulate", plan, "--frames", 10**7).complaint
    assert "too many to simulate; at most" in complaint


def test_a_plan_that_breaks_rules_is_not_simulated(parapipe, plan):
    document = json.loads(plan.read_text())
    document["predicted"]["latency_s"] = 1.0
    plan.write_text(json.dumps(document))
    ended = parapipe("simulate", plan)
    assert ended.code == 1
    assert "breaks a rule" in ended.err


def test_where_times_vary_95_and_99_percent_are_told(parapipe, plan):
    options = ("--jitter", "20%", "--frames", 200)
    assert "p99" in parapipe("simulate", plan, *options).out
    assert "p99" not in parapipe("simulate", plan).out
    document = json.loads(parapipe("simulate", plan, *options, "--json").out)
    for figures in (document["latency"], document["period"]):
        assert figures["median_s"] < figures["p95_s"] < figures["p99_s"]


def test_slots_are_chosen_for_a_p99_and_written(parapipe, plan, tmp_path):
    out = tmp_path / "chosen.json"
    options = ("--jitter", "30%", "--frames", 300, "--json", "--p99-latency")
    room = json.loads(parapipe("simulate", plan, *options, "100s").out)
    assert room["simulation"]["chosen"]["least"]
    enough = f"{room['latency']['p99_s'] + 1e-6}s"
    ended = parapipe("simulate", plan, *options[:-2], "--p99-latency", enough, "--out", out)
    assert "slots: those of the plan are enough" in ended.out
    assert load_plan(out) == load_plan(plan)
    complaint = parapipe("simulate", plan, *options, "5s").complaint
    assert "no slots keep the p99 that is asked for: with room for all frames it is" in complaint
    assert complaint.count("\n") == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--out", "plan.json"], "give --p99-latency or --p99-period with --out"),
        (["--p99-latency", "9s", "--queue", 3], "and so does --queue"),
        (["--p99-latency", "9s", "--saturate"], "latency holds queueing"),
        (["--jitter-from", "none.json"], "none.json: cannot be read"),
        (["--jitter-from", "none.json", "--jitter", "5%"], "hold jitter and contention already"),
    ],
)
def test_options_that_contradict_each_other_are_refused(parapipe, plan, options, words):
    assert words in parapipe("simulate", plan, *options).complaint


def test_a_plan_is_no_run_to_take_times_from(parapipe, plan):
    complaint = parapipe("simulate", plan, "--jitter-from", plan).complaint
    assert "is a plan, not a run; give what `parapipe run --json` printed" in complaint


def test_whatever_is_read_another_document_is_named(plan):
    """Of draws, only how to write them again is said."""
    for what in ("draws", "sweep", "run", "front"):
        with pytest.raises(FrontError, match=f"is a plan, not a {what}; (give|write) "):
            read_document(plan, FrontDocument, schema="", what=what, error=FrontError)


def test_a_simulation_is_no_run_to_take_times_from(parapipe, plan, tmp_path):
    made = tmp_path / "made.json"
    made.write_text(parapipe("simulate", plan, "--json").out)
    complaint = parapipe("simulate", plan, "--jitter-from", made).complaint
    assert "is a simulation: give what `parapipe run --json` prints" in complaint
