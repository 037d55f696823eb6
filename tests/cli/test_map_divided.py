"""A platform that divides its cluster: from the command that maps to the plan that runs."""

from __future__ import annotations

import json
import os

import pytest

from tests.cases.soc_texts import spoil

CORES = sorted(os.sched_getaffinity(0))[:2]
TWO = pytest.mark.skipif(len(CORES) < 2, reason="needs two cores")


@pytest.fixture(scope="module")
def platform():
    """A single CPU of the first two cores of this machine, run by ONNX Runtime."""
    text = spoil(
        ("cores: [0, 1]", f"""cores: {CORES}
    divisions:
      into: [[1, 1]]
      parallel_share: {{default: 0.3}}
      hand_over: {{latency_s: 50e-6}}
      source: guess"""),
        ("backend: nominal", "backend: onnxruntime-cpu"),
    )  # fmt: skip
    gpu, links, sources = map(text.index, ("  - name: gpu", "links:", "sources:"))
    assert gpu < links < sources
    return text[:gpu] + text[sources:]


@pytest.fixture
def mapped(parapipe, small_model, tmp_path, platform):
    """Map a chain of operators large enough to share; return the folder and its front."""
    soc, out = tmp_path / "soc.yaml", tmp_path / "out"
    soc.write_text(platform)
    model = small_model(*["Relu", "Sigmoid", "Tanh", "Exp"], shape=(1, 64, 128, 128))
    ended = parapipe("map", model, "--platform", soc, "--out", out, "--quiet")
    assert (ended.code, ended.err.count("mistake")) == (0, 0), ended.err
    return out, json.loads((out / "front.json").read_text()), ended.out


@TWO
def test_the_front_marks_what_is_divided_and_knows_the_parts(mapped):
    _, front, table = mapped
    one, other = (f"cpu-{core}" for core in CORES)
    assert [(p["name"], p["part_of"]) for p in front["processors"]] == [
        ("cpu", None), (one, "cpu"), (other, "cpu")
    ]  # fmt: skip
    assert front["dvfs"] is None
    for row in front["configurations"]:
        used = {p["name"] for stage in row["stages"] for p in stage["processors"]}
        assert row["divided"] == ([] if used == {"cpu"} else ["cpu 1+1"])
    assert "on undivided processors" in table
    assert not any(name.startswith("cpu-") for row in front["configurations"]
                   for name in row["names"] if name != "cpu-alone")  # fmt: skip
    assert not any(name.startswith(one) for name in front["absent"])


def two_stages(front):
    return next(row for row in front["configurations"] if len(row["stages"]) == 2)


@TWO
def test_front_csv_names_divisions(mapped):
    out, front, _ = mapped
    header, *rows = (out / "front.csv").read_text().splitlines()
    assert "divided" in header.split(",")
    assert any("cpu 1+1" in row for row in rows)
    assert len(rows) == len(front["configurations"])


@TWO
def test_a_plan_of_parts_is_verified_simulated_and_runs_on_their_cores(parapipe, mapped, tmp_path):
    out, front, _ = mapped
    row = two_stages(front)
    plan = out / "plans" / f"{row['id']}.json"
    assert parapipe("verify", plan).code == 0
    simulated = json.loads(parapipe("simulate", plan, "--json").out)
    assert simulated["schema"] == "parapipe/run/2"
    written = json.loads(plan.read_text())
    assert [each["cores"] for each in written["processors"]] == [[CORES[0]], [CORES[1]]]
    ran = parapipe("run", plan, "--frames", 10, "--json")
    assert ran.code == 0, ran.err
    cores = json.loads(ran.out)["machine"]["cores"]
    assert cores == {f"cpu-{core}": [core] for core in CORES}
    exported = parapipe("export", plan, tmp_path / "session", "--to", "onnxruntime")
    assert exported.code == 0, exported.err
    run, soc, model = tmp_path / "run.json", tmp_path / "soc.yaml", tmp_path / "small.onnx"
    run.write_text(ran.out)
    for _ in range(2):  # the second time, the profile holds rows of parts
        learned = parapipe("profile", model, "--platform", soc, "--from-run", run)
        assert learned.code == 0, learned.err
    again = parapipe("map", model, "--platform", soc, "--quiet")
    assert f"cpu 0 %, cpu-{CORES[0]} 100 %, cpu-{CORES[1]} 100 %" in again.out


@TWO
def test_each_number_of_a_part_is_explained_by_its_line(parapipe, mapped):
    out, front, _ = mapped
    ended = parapipe("explain", out, two_stages(front)["id"], "--json")
    assert ended.code == 0, ended.err
    document = json.loads(ended.out)
    lines = (out.parent / "soc.yaml").read_text().splitlines()
    (share,) = {
        (given["key"], given["line"])
        for operator in document["operators"]
        for part in operator["parts"]
        for given in part["time"]["givens"]
        if given["name"] == "parallel share"
    }
    assert share[0] == "processors[0].divisions.parallel_share.default"
    assert "parallel_share" in lines[share[1] - 1]
    for transfer in document["transfers"]:
        (latency,) = transfer["time"]["givens"]
        assert "hand_over" in lines[latency["line"] - 1]
    assert not any("cannot run" in reason["text"] for reason in document["reasons"])


@TWO
def test_an_assignment_may_name_parts(parapipe, mapped, tmp_path):
    out, front, _ = mapped
    row = two_stages(front)
    plan = json.loads((out / "plans" / f"{row['id']}.json").read_text())
    stages = [
        {at["operator"]: p["name"] for p in stage["processors"] for at in p["operators"]}
        for stage in plan["stages"]
    ]
    file = tmp_path / "assignment.json"
    file.write_text(json.dumps({
        "schema": "parapipe/assignment/1",
        "operators": stages[0] | stages[1],
        "stages": [{"operators": list(stage)} for stage in stages],
    }))  # fmt: skip
    soc = out.parent / "soc.yaml"
    ended = parapipe("evaluate", out.parent / "small.onnx", "--platform", soc,
                     "--assignment", file, "--json")  # fmt: skip
    assert ended.code == 0, ended.err
    found = json.loads(ended.out)
    for figure in ("latency_s", "energy_j"):
        assert found[figure] == pytest.approx(row[figure])
    both = {**stages[0], **dict.fromkeys(stages[1], "cpu")}
    file.write_text(json.dumps({"schema": "parapipe/assignment/1", "operators": both}))
    complaint = parapipe("evaluate", out.parent / "small.onnx", "--platform", soc,
                         "--assignment", file).complaint  # fmt: skip
    assert "cpu is divided into" in complaint
