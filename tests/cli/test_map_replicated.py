"""A platform with two identical processors: from the command that maps to the plan that runs."""

from __future__ import annotations

import json
import os

import numpy as np
import onnxruntime
import pytest

from parapipe import load_plan
from tests.cases.soc_texts import SOC

CORES = sorted(os.sched_getaffinity(0))[:2]
TWO = pytest.mark.skipif(len(CORES) < 2, reason="needs two cores")
FRAMES = 12


@pytest.fixture(scope="module")
def platform():
    """Two CPUs of one core of this machine each, run by ONNX Runtime."""
    first, gpu, links, sources = map(
        SOC.index, ("  - name: cpu", "  - name: gpu", "links:", "sources:")
    )
    one = SOC[first:gpu].replace("backend: nominal", "backend: onnxruntime-cpu")
    both = (
        one.replace("name: cpu", f"name: cpu{i}").replace("cores: [0, 1]", f"cores: [{core}]")
        for i, core in enumerate(CORES)
    )
    apart = "links:\n  - {from: cpu0, to: cpu1, both_ways: true, latency_s: 1e-4, source: guess}\n"
    assert first < gpu < links < sources
    unlimited = SOC[:first].replace("10e9,", "10e9, lower_bound: true,")
    return unlimited + "".join(both) + apart + SOC[sources:]


@pytest.fixture
def mapped(parapipe, small_model, tmp_path, platform):
    """Map a chain of operators; return the folder and its front."""
    soc, out = tmp_path / "soc.yaml", tmp_path / "out"
    soc.write_text(platform)
    model = small_model(*["Relu", "Sigmoid", "Tanh", "Exp"], shape=(1, 64, 128, 128))
    ended = parapipe("map", model, "--platform", soc, "--out", out, "--quiet")
    assert ended.code == 0, ended.err
    return out, json.loads((out / "front.json").read_text()), ended.out


def fastest(front):
    return min(front["configurations"], key=lambda row: row["period_s"])


@TWO
def test_the_front_has_twice_the_throughput_at_the_latency_of_one_processor(mapped):
    _, front, table = mapped
    row = fastest(front)
    (alone,) = (each for each in front["configurations"] if "cpu0-alone" in each["names"])
    assert row["kind"] == "replicated"
    assert "replicated-T" in row["names"]
    assert row["latency_s"] == pytest.approx(alone["latency_s"])
    assert row["period_s"] == pytest.approx(alone["latency_s"] / 2)
    assert row["sustained_period_s"] == pytest.approx(row["period_s"])
    assert [stage["in_turn"] for stage in row["stages"]] == [True]
    assert row["drawing"].startswith("cpu0/cpu1[")
    assert "replicated-T" in table


@TWO
def test_where_hand_overs_are_work_whole_networks_take_turns_all_the_same(
    parapipe, small_model, tmp_path, platform
):
    soc, out = tmp_path / "soc.yaml", tmp_path / "out"
    free = "latency_s: 1e-4, source: guess}"
    soc.write_text(platform.replace(free, f"occupies: receiver, {free}"))
    model = small_model(*["Relu", "Sigmoid", "Tanh", "Exp"], shape=(1, 64, 128, 128))
    ended = parapipe("map", model, "--platform", soc, "--out", out, "--quiet")
    assert ended.code == 0, ended.err
    front = json.loads((out / "front.json").read_text())
    row = fastest(front)
    assert row["kind"] == "replicated"
    assert [stage["in_turn"] for stage in row["stages"]] == [True]
    assert parapipe("verify", out / "plans" / f"{row['id']}.json").code == 0


@TWO
def test_its_plan_is_verified_and_a_simulation_keeps_its_period(parapipe, mapped):
    out, front, _ = mapped
    row = fastest(front)
    plan = out / "plans" / f"{row['id']}.json"
    assert parapipe("verify", plan).code == 0
    ended = parapipe("simulate", plan, "--saturate", "--json")
    assert ended.code == 0, ended.err
    found = json.loads(ended.out)
    assert found["period"]["observed_s"] == pytest.approx(row["period_s"])
    assert [each["name"] for each in found["resources"]] == ["cpu0", "cpu1"]
    assert all(each["observed_utilisation"] == pytest.approx(1) for each in found["resources"])


@TWO
def test_its_plan_runs_on_both_cores(parapipe, mapped, tmp_path):
    out, front, _ = mapped
    plan = out / "plans" / f"{fastest(front)['id']}.json"
    trace = tmp_path / "trace.json"
    ran = parapipe("run", plan, "--frames", FRAMES, "--json", "--trace", trace)
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)
    assert found["machine"]["cores"] == {f"cpu{i}": [core] for i, core in enumerate(CORES)}
    events = json.loads(trace.read_text())["traceEvents"]
    names = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    where = {(names[e["tid"]], e["args"]["frame"]) for e in events if e["ph"] == "X"}
    assert where == {(f"cpu{n % 2}", n) for n in range(FRAMES)}


@TWO
def test_its_results_are_those_of_one_session(parapipe, small_model, mapped, tmp_path):
    out, front, _ = mapped
    plan = out / "plans" / f"{fastest(front)['id']}.json"
    model = small_model(*["Relu", "Sigmoid", "Tanh", "Exp"], shape=(1, 64, 128, 128))
    session = onnxruntime.InferenceSession(model)
    (given,), (made,) = session.get_inputs(), session.get_outputs()
    frames = np.random.default_rng(0).standard_normal((FRAMES, *given.shape), np.float32)
    np.savez(tmp_path / "frames.npz", **{given.name: frames})
    ran = parapipe(
        "run", plan, "--frames", FRAMES, "--input", tmp_path / "frames.npz", "--saturate",
        "--keep", tmp_path / "kept.npz",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    with np.load(tmp_path / "kept.npz") as kept:
        for frame, result in zip(frames, kept[made.name], strict=True):
            (wanted,) = session.run(None, {given.name: frame})
            np.testing.assert_allclose(result, wanted, rtol=1e-5)


@TWO
def test_replicas_are_exported_for_arm_compute_library(parapipe, mapped, tmp_path):
    out, front, _ = mapped
    plan = out / "plans" / f"{fastest(front)['id']}.json"
    ended = parapipe("export", plan, tmp_path / "there", "--to", "armcl")
    assert ended.code == 0, ended.err
    written = json.loads((tmp_path / "there" / "plan.json").read_text())
    turns = [each for stage in written["stages"] for each in stage["processors"]]
    assert [(each["name"], each["replicas"]) for each in turns] == [("cpu0", ["cpu1"])]


@TWO
@pytest.mark.parametrize("target", ["onnxruntime", "segments", "perfetto", "model-explorer"])
def test_the_others_take_them(parapipe, mapped, tmp_path, target):
    out, front, _ = mapped
    plan = out / "plans" / f"{fastest(front)['id']}.json"
    there = tmp_path / "there.json"
    ended = parapipe("export", plan, there, "--to", target)
    assert ended.code == 0, ended.err
    if target == "segments":
        segments = json.loads((there / "manifest.json").read_text())["segments"]
        assert [each["replicas"] for each in segments] == [["cpu1"]]


@TWO
def test_it_is_explained(parapipe, mapped):
    out, front, _ = mapped
    ended = parapipe("explain", out, fastest(front)["id"])
    assert ended.code == 0, ended.err
    document = json.loads(parapipe("explain", out, fastest(front)["id"], "--json").out)
    period = document["figures"]["period_s"]
    assert "processors in turn on stage 1" in period["rule"]
    assert period["value"] == pytest.approx(fastest(front)["period_s"])
    assert [each["name"] for each in document["processors"]] == ["cpu0", "cpu1"]


@TWO
def test_both_cores_are_named_wherever_its_stages_are(parapipe, mapped, tmp_path):
    out, front, _ = mapped
    plan = out / "plans" / f"{fastest(front)['id']}.json"
    assert "stages      cpu0/cpu1\n" in parapipe("verify", plan).out
    for command in ("simulate", "run"):
        assert parapipe(command, plan, "--frames", FRAMES).out.splitlines()[0].endswith("cpu0/cpu1")
    assert ", cpu0/cpu1: " in repr(load_plan(plan))
    for target, shares in (
        ("onnxruntime", "1: 1 on cpu0/cpu1"),
        ("segments", "1: 1 for cpu0/cpu1"),
    ):
        ended = parapipe("export", plan, tmp_path / target, "--to", target)
        assert f"segments    {shares}\n" in ended.out
        assert "with the stages cpu0/cpu1." in (tmp_path / target / "README.md").read_text()
