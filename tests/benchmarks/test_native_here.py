"""The benchmark of the native runner computes what it says; nothing here measures time."""

import os
import sys
from types import SimpleNamespace

import pytest
import yaml

from benchmarks import native_disturbed, native_engine, native_here, native_runs
from benchmarks.native_engine import (
    CHAINS,
    LENGTH,
    Shares,
    chains_plan,
    figures,
    shares_by_frame,
    write_chains,
)
from benchmarks.native_runs import Times, between_ends, error, frames_for, openvino_times, ratio
from parapipe.runtime.record import Record, Span
from tests.cases.soc_texts import SOC


def recorded(*spans):
    return Record(("a", "b"), tuple(Span(*each) for each in spans), (), ())


PRODUCERS = {"in": (), "left": ("in",), "right": ("in",), "out": ("left", "right")}


def test_a_processor_waits_until_what_it_reads_is_made_and_the_engine_takes_the_rest():
    record = recorded(
        ("a", "in", 0, 0, 10, 10),
        ("a", "left", 0, 11, 20, 9),
        ("b", "in", 1, 0, 6, 6),
        ("b", "right", 0, 13, 30, 16),  # its other task waits for a; two operators, 1 s between
        ("a", "out", 0, 32, 40, 8),
    )
    (found,) = shares_by_frame(record, PRODUCERS, frozenset({"out"}))
    assert found == Shares(
        tasks=3, work_s=9 + 16 + 8, engine_s=1 + (3 + 1) + 2, waiting_s=4 + 10, frames_s=0
    )


def test_what_lies_beside_inputs_and_results_belongs_to_frames():
    record = recorded(
        ("a", "in", 0, 0, 10, 10),
        ("a", "in", 1, 13, 20, 7),
        ("b", "out", 0, 0, 5, 5),
        ("b", "left", 1, 26, 30, 4),
    )
    (found,) = shares_by_frame(record, PRODUCERS, frozenset({"out"}))
    assert found == Shares(tasks=2, work_s=11, engine_s=0, waiting_s=15, frames_s=3 + 6)


def test_shares_are_medians_of_frames():
    found = [Shares(2, 100e-6, 2e-6, 1e-6, 0), Shares(2, 100e-6, 4e-6, 0, 0)]
    assert figures([*found, Shares(2, 200e-6, 4e-6, 9e-6, 1e-6)]) == (
        *("50", "2.00"), *("2.0%", "1.0%", "0.0%")
    )  # fmt: skip


def test_chains_have_a_processor_each(tmp_path):
    write_chains(tmp_path / "chains.onnx", 5)
    platform = tmp_path / "soc.yaml"
    platform.write_text(SOC)
    plan = chains_plan(tmp_path / "chains.onnx", platform)
    counts = [len(each.operators) for stage in plan.stages for each in stage.processors]
    assert counts == [LENGTH] * CHAINS
    assert not plan.transfers


def test_chains_in_turn_hand_over_at_every_task(tmp_path):
    write_chains(tmp_path / "chains.onnx", 5)
    platform = tmp_path / "soc.yaml"
    platform.write_text(SOC)
    plan = chains_plan(tmp_path / "chains.onnx", platform, in_turn=True)
    counts = [len(each.operators) for stage in plan.stages for each in stage.processors]
    assert counts == [LENGTH] * CHAINS
    assert len(plan.transfers) == CHAINS * (LENGTH - 1)


def test_a_platform_of_the_runner_has_its_hand_overs(tmp_path, monkeypatch):
    platform = tmp_path / "soc.yaml"
    platform.write_text(
        yaml.safe_dump(
            yaml.safe_load(SOC) | {"memory": {"bandwidth_bytes_per_s": 5e9, "source": "x"}}
        )
    )
    monkeypatch.setattr(native_engine, "chains_plan", lambda *_, **__: None)
    monkeypatch.setattr(native_engine, "engine_shares", lambda *_: [Shares(4, 1.0, 8e-6, 0.0, 0.0)])
    content = yaml.safe_load(native_engine.native_platform(platform).read_text())
    assert {link["synchronisation"]["overhead_s"] for link in content["links"]} == {2e-6}
    assert {link["bandwidth_bytes_per_s"] for link in content["links"]} == {5e9}


def test_ratios_are_of_medians_and_of_the_fastest_tenth():
    slow, fast = Times([4.0, 2.0, 6.0]), Times([2.0, 1.0, 1.5])
    assert ratio(slow, fast) == "2.67 (2.00)"
    assert ratio(slow, None) == ""
    assert native_here.mean_ratio([(slow, fast), (fast, slow)]) == "1.00 (1.00)"


def test_an_error_is_how_much_longer_a_prediction_is():
    assert error(1.1, Times([1.0, 1.0, 5.0])) == "+10.0%"


def test_processors_that_end_together_share_the_time():
    assert between_ends([1.0, 1.1, 3.0, 3.1, 5.0], 2) == pytest.approx([1.0] * 3)


@pytest.mark.parametrize(("frame_s", "frames"), [(3.0, 3), (0.1, 10), (0.001, 60)])
def test_a_burst_lasts_about_a_second(frame_s, frames):
    assert frames_for(frame_s) == frames


def test_openvino_may_be_missing(tmp_path, monkeypatch):
    (tmp_path / "openvino.py").write_text("raise ImportError(\"No module named 'openvino'\")\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *sys.path]))
    assert openvino_times(tmp_path / "m.onnx", native_runs.CORES, 1) is None


def test_what_openvino_refuses_is_an_error(tmp_path, monkeypatch):
    (tmp_path / "openvino.py").write_text('raise RuntimeError("unknown")\n')
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *sys.path]))
    with pytest.raises(RuntimeError, match=r"OpenVINO on m\.onnx: .*unknown"):
        openvino_times(tmp_path / "m.onnx", native_runs.CORES, 1)


def test_a_disturbed_run_keeps_a_share_of_its_throughput(monkeypatch):
    def times(_plan, _file, _frames, strategy):
        count[strategy] = count.get(strategy, 0) + 1
        return [], [1.0 if count[strategy] % 2 else {"plan": 2.0}.get(strategy, 1.25)]

    count = {}
    monkeypatch.setattr(native_disturbed, "native_times", times)
    plan = SimpleNamespace(operators=[1, 2, 3], predicted=SimpleNamespace(latency_s=1.0))
    rows = list(native_disturbed._rows_of("halves", plan, "m.onnx", rounds=2))
    assert [(row[2], row[-1]) for row in rows] == [
        ("plan", "50%"), ("steal", "80%"), ("ready-pool", "80%")
    ]  # fmt: skip
    assert rows[0][:2] == ("halves", 3)


def test_a_page_has_every_table_and_says_when_it_was_measured():
    tables = {name: [[name, *head[1:]]] for name, head in native_here.HEADS.items()}
    text = native_here.page(tables, {"*engine*": "today"})
    lines = [line.split(" | ")[0] for line in text.splitlines() if line.startswith("| ")]
    assert sorted(lines[2::3]) == sorted(f"| {name}" for name in [*tables, "*engine*"])
    assert "| *engine* | today |" in text


def test_a_page_says_what_is_not_measured_yet():
    tables = {name: [[*head]] for name, head in native_here.HEADS.items() if name != "split"}
    assert native_here.page(tables, {"CPU": "some"}).count("Not measured.") == 1
