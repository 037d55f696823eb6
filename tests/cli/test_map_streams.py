"""A platform whose CPU has streams: from the command that maps to the plan that runs."""

from __future__ import annotations

import json
import os

import pytest

from parapipe.cli.command_line import run as command
from tests.cases.soc_texts import spoil

CORES = sorted(os.sched_getaffinity(0))[:2]
NAMES = {"cpu-1of2", "cpu-2of2"}


@pytest.fixture(scope="module")
def platform():
    """A single CPU of the first cores of this machine, run by ONNX Runtime."""
    text = spoil(
        ("cores: [0, 1]", f"""cores: {CORES}
    streams: {{slowdown: [1, 1.1], hand_over: {{latency_s: 1e-6}}, source: guess}}"""),
        ("backend: nominal", "backend: onnxruntime-cpu"),
        ("10e9,", "10e9, lower_bound: true,"),
    )  # fmt: skip
    gpu, sources = map(text.index, ("  - name: gpu", "sources:"))
    return text[:gpu] + text[sources:]


@pytest.fixture
def mapped(parapipe, small_model, tmp_path, platform):
    """Map a chain; return the folder, its front, and its plan with two stages."""
    soc, out = tmp_path / "soc.yaml", tmp_path / "out"
    soc.write_text(platform)
    model = small_model(*["Relu", "Sigmoid", "Tanh", "Exp"], shape=(1, 64, 128, 128))
    ended = parapipe(
        "map", model, "--platform", soc, "--mapper", "streams", "--out", out, "--quiet"
    )
    assert ended.code == 0, ended.err
    front = json.loads((out / "front.json").read_text())
    row = next(row for row in front["configurations"] if len(row["stages"]) == 2)
    return out, front, row, out / "plans" / f"{row['id']}.json"


def test_the_front_marks_streams_and_counts_the_law(mapped):
    _, front, row, plan = mapped
    assert row["divided"] == ["cpu 2 streams"]
    alone = next(each for each in front["configurations"] if "cpu-alone" in each["names"])
    assert row["latency_s"] == pytest.approx(1.1 * alone["latency_s"], rel=0.05)
    assert row["period_s"] < 0.7 * alone["period_s"]
    processors = json.loads(plan.read_text())["processors"]
    assert {each["name"] for each in processors} == NAMES
    assert all(each["cores"] == CORES for each in processors)
    assert all(each["stream"] == {"of": "cpu", "count": 2} for each in processors)


def test_a_plan_of_streams_is_verified_simulated_and_runs_on_shared_cores(
    parapipe, mapped, tmp_path
):
    *_, plan = mapped
    assert parapipe("verify", plan).code == 0
    soc, model = tmp_path / "soc.yaml", tmp_path / "small.onnx"
    how = ("--strategy", "streams", "--frames", 10, "--json")
    simulated = parapipe("simulate", plan, "--platform", soc, *how)
    assert simulated.code == 0, simulated.err
    for strategy in ("plan", "streams"):
        ran = parapipe("run", plan, "--strategy", strategy, "--frames", 10, "--json")
        assert ran.code == 0, ran.err
        assert json.loads(ran.out)["machine"]["cores"] == dict.fromkeys(sorted(NAMES), CORES)
    place = tmp_path / "session"
    assert parapipe("export", plan, place, "--to", "onnxruntime").code == 0
    threads = [
        each["threads"] for each in json.loads((place / "plan.json").read_text())["processors"]
    ]
    assert threads == [max(1, len(CORES) // 2)] * 2
    place = tmp_path / "armcl"
    assert parapipe("export", plan, place, "--to", "armcl").code == 0
    processors = json.loads((place / "plan.json").read_text())["processors"]
    assert [each["backend"] for each in processors] == ["neon"] * 2
    learned = tmp_path / "run.json"
    learned.write_text(parapipe("run", plan, "--frames", 10, "--json").out)
    assert parapipe("profile", model, "--platform", soc, "--from-run", learned).code == 0


def test_a_plan_that_misuses_streams_is_refused(parapipe, mapped):
    *_, plan = mapped
    document = json.loads(plan.read_text())
    one, other = document["processors"]
    for change, told in [
        ({"stream": {"of": "cpu", "count": 3}}, "'cpu' has 2 and 3 streams at once"),
        ({"stream": None}, "both have core"),
        ({"stream": {"of": one["name"], "count": 2}}, "is listed, and streams of it are, too"),
    ]:
        changed = {**document, "processors": [one, {**other, **change}]}
        plan.write_text(json.dumps(changed))
        ended = parapipe("verify", plan)
        assert ended.code == 1
        assert told in ended.err


def test_platforms_show_tells_the_law(parapipe, mapped, tmp_path):
    shown = parapipe("platforms", "show", tmp_path / "soc.yaml").out
    assert "cpu runs several operators at once, each so many times as long: 1: 1, 2: 1.1" in shown


def test_profile_measures_the_law_and_prints_a_section_that_the_platform_takes(
    parapipe, small_model, tmp_path, platform
):
    soc = tmp_path / "soc.yaml"
    soc.write_text(platform)
    given = ("profile", small_model(), "--platform", soc, "--streams", 2, "--quiet")
    (law,) = json.loads(parapipe(*given, "--json").out)["streams"]
    assert law["processor"] == "cpu"
    assert law["slowdown"][0] == 1 <= law["slowdown"][1]
    printed = parapipe(*given)
    assert printed.code == 0, printed.err
    lines = [line for line in printed.out.splitlines() if not line.startswith("#")]
    section, source = lines[: len(lines) - 3], lines[-3:]
    old = next(line for line in platform.splitlines() if line.startswith("    streams:"))
    text = platform.replace(old, "\n".join(f"    {line}" for line in section))
    soc.write_text(text + "".join(f"\n  {line}" for line in source) + "\n")
    assert parapipe("platforms", "check", soc).code == 0


@pytest.mark.parametrize(
    "others", [["--streams", 1], ["--streams", 2, "--parts"], ["--streams", 2, "--out", "p.csv"]]
)
def test_a_wrong_use_of_streams_has_exit_code_2(others):
    assert command(["profile", "m.onnx", "--platform", "p.yaml", *map(str, others)]) == 2
