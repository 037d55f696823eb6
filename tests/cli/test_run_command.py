"""`parapipe run`."""

import json
import os
import re
import signal
import subprocess
import sys

import numpy as np
import pytest

from parapipe import load_plan, run_plan
from parapipe import map as map_model
from tests.cases.small_network import saved

EAGER = """
import sys
from parapipe.cli import main, progress
progress.LINE_EVERY_S = 0
main.main(sys.argv[1:])
"""
ONE = min(os.sched_getaffinity(0))


@pytest.fixture(scope="module")
def plan(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plan")
    front = map_model(saved(folder), "amlogic-a311d", cache=False, jobs=1, note=lambda _note: None)
    front["hybrid-T"].plan().save(folder / "plan.json")
    return folder / "plan.json"


@pytest.fixture(scope="module")
def cores(plan):
    return [
        word
        for processor in load_plan(plan).processors
        for word in ("--cores", f"{processor.name}={ONE}")
    ]


def test_it_prints_predicted_and_measured(parapipe, plan, cores):
    ended = parapipe("run", plan, "--frames", 20, *cores)
    assert ended.code == 0, ended.err
    words = ended.out.split()
    assert {"predicted", "measured", "latency", "period", "frames/s"} <= set(words)


def test_it_writes_results_trace_and_one_json_document(parapipe, plan, cores, tmp_path):
    data = np.random.default_rng(0).random((5, 1, 3, 16, 16), np.float32)
    np.savez(tmp_path / "in.npz", data=data)
    ended = parapipe(
        "run", plan, "--input", tmp_path / "in.npz", "--keep", tmp_path / "out.npz",
        "--trace", tmp_path / "trace.json", "--saturate", "--json", *cores,
    )  # fmt: skip
    document = json.loads(ended.out)
    assert (document["schema"], document["how"], document["frames"]) == ("parapipe/run/2", "run", 5)
    assert document["pace_s"] is None
    assert set(document["machine"]["cores"]) == {each.name for each in load_plan(plan).processors}
    share = document["machine"]["other_programs"]
    assert share is None or 0 <= share <= 1
    assert all(task["own"]["time_s"] > 0 for task in document["tasks"])
    assert document["model_sha256"] == load_plan(plan).model.sha256
    with np.load(tmp_path / "out.npz") as file:
        assert file["prob"].shape == (5, 1, 10)
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    resources = {each["args"]["name"] for each in events if each["name"] == "thread_name"}
    assert resources == {processor.name for processor in load_plan(plan).processors}


def test_what_is_predicted_and_what_is_measured_are_called_so(parapipe, plan, cores):
    ended = parapipe("run", plan, "--frames", 20, "--period", 0.01, *cores)
    assert ended.code == 0, ended.err
    said = ended.out
    assert said.count("predicted to be sustainable") == 2
    told = [line for line in said.splitlines() if "shortest period, " in line]
    assert [line.split(": ")[0].split(", ")[1] for line in told] == ["predicted", "measured"]


def test_several_plans_run_together_without_options_for_one(parapipe, plan, cores):
    together = ("run", plan, plan, "--strategy", "ready-pool", "--frames", 5, *cores)
    ended = parapipe(*together)
    assert ended.code == 0, ended.err
    assert ended.out.count("strategy    ready-pool") == 2
    for option in (("--random-arrivals",), ("--seed", "1"), ("--arena",)):
        assert (
            f"{option[0]} is for one plan, and several are given"
            in parapipe(*together, *option).err
        )


def test_cores_that_processors_share_are_a_note(parapipe, plan, cores):
    ended = parapipe("run", plan, "--frames", 2, *cores)
    assert f"run on core {ONE}: they take turns there" in ended.err


@pytest.mark.parametrize("option", ["--keep", "--trace"])
@pytest.mark.parametrize(
    ("place", "words"), [("..", "is a folder"), ("missing/file", "there is no folder missing")]
)
def test_a_place_for_a_file_is_looked_at_first(parapipe, plan, option, place, words):
    lacking = f"{load_plan(plan).processors[0].name}=4000"
    complaint = parapipe("run", plan, option, place, "--cores", lacking).complaint
    assert words in complaint  # and not that there is no core 4000


def test_a_file_without_frames_is_refused(parapipe, plan, cores, tmp_path):
    np.savez(tmp_path / "none.npz", data=np.zeros((0, 1, 3, 16, 16), np.float32))
    complaint = parapipe("run", plan, "--input", tmp_path / "none.npz", *cores).complaint
    assert "none.npz: holds no frames" in complaint


def test_cores_that_are_not_there_are_one_line(parapipe, plan):
    name = load_plan(plan).processors[0].name
    complaint = parapipe("run", plan, "--cores", f"{name}=4000").complaint
    assert f"processor '{name}' wants cores 4000" in complaint


@pytest.mark.parametrize(
    "words",
    [
        ["--cores", "big"],
        ["--cores", "big=0,0"],
        ["--cores", "big=0-2,1"],
        ["--cores", "big=1-0"],
        ["--cores", "big=0", "--cores", "big=1"],
        ["--queue", "1"],
        ["--saturate", "--period", "1"],
        ["--patience", "0"],
    ],
    ids=" ".join,
)
def test_wrong_options_are_usage_errors(parapipe, plan, words):
    assert parapipe("run", plan, *words).code == 2


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_a_run_and_leaves_the_results_there_are(plan, cores, tmp_path, number, code):
    kept = tmp_path / "out.npz"
    words = ["run", plan, "--frames", 10**7, "--keep", kept, *cores]
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-c", EAGER, *map(str, words)],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(scratch)},
    )
    assert process.stderr is not None
    assert process.stderr.readline().startswith("running frames: ")
    process.send_signal(number)
    assert process.wait(60) == code
    assert process.stderr.read().splitlines()[-1].startswith("parapipe: ")
    process.stderr.close()
    assert list(scratch.glob(".parapipe*")) == []
    with np.load(kept) as file:
        assert file["prob"].shape[0] >= 1


@pytest.fixture(scope="module")
def ran(plan, tmp_path_factory):
    """The document of a run on one core, as `run --json` prints it."""
    cores = {each.name: (ONE,) for each in load_plan(plan).processors}
    path = tmp_path_factory.mktemp("ran") / "run.json"
    path.write_text(json.dumps(run_plan(plan, frames=20, cores=cores, saturate=True).to_json()))
    return path


def test_a_run_is_compared_with_what_its_document_predicts(parapipe, ran, plan):
    ended = parapipe("compare", ran, "--json")
    document, run = json.loads(ended.out), json.loads(ran.read_text())
    pairs = {(pair["metric"], pair["part"]): pair for pair in document["pairs"]}
    period = pairs["period", ""]
    assert period["predicted"] == run["period"]["sustained_s"]
    assert period["measured"] == run["period"]["observed_s"]
    assert ("latency", "") not in pairs  # its frames queued
    assert "its frames queued for admission" in ended.err
    for resource in run["resources"]:
        pair = pairs["work of a processor", resource["name"]]
        assert pair["predicted"] == pytest.approx(resource["predicted_s"])
        own = [task["own"] for task in run["tasks"] if task["resource"] == resource["name"]]
        assert pair["measured"] == pytest.approx(sum(each["time_s"] for each in own))
    segments = [part for metric, part in pairs if metric == "work of a segment"]
    assert sorted(segments) == sorted(task["name"] for task in run["tasks"])
    by_plan = json.loads(parapipe("compare", plan, ran, "--json").out)
    for one, other in zip(by_plan["pairs"], document["pairs"], strict=True):
        assert one == {
            **other,
            "predicted": pytest.approx(other["predicted"]),
            "error": pytest.approx(other["error"]),
        }
    assert parapipe("compare", plan, ran).out.count("work of big ") == 1


def test_work_and_busy_are_two_things(parapipe, plan, ran) -> None:
    """`run` shows time from start to end, `compare` that without other programs."""
    shown, compared = parapipe("simulate", plan).out, parapipe("compare", ran).out
    assert "busy" in shown
    assert not re.search(r"^ *processor.*work", shown, re.MULTILINE)
    assert "busy" not in compared


def test_a_slower_admission_says_nothing_of_the_period_and_a_paced_one_has_a_latency(
    parapipe, ran, tmp_path
):
    run = json.loads(ran.read_text())
    pace_s = 10 * run["period"]["predicted_s"]
    run |= {"saturated": False, "pace_s": pace_s}
    run["period"]["observed_s"] = pace_s
    path = tmp_path / "slow.json"
    path.write_text(json.dumps(run))
    ended = parapipe("compare", path, "--json")
    metrics = {pair["metric"] for pair in json.loads(ended.out)["pairs"]}
    assert "latency" in metrics
    assert "period" not in metrics
    assert "its frames were admitted more slowly" in ended.err


def test_what_does_not_belong_together_is_not_compared(parapipe, ran, plan, tmp_path):
    def complaint(change, *files):
        path = tmp_path / "changed.json"
        document = json.loads(ran.read_text())
        change(document)
        path.write_text(json.dumps(document))
        return parapipe("compare", *files, path).complaint

    assert "is of another model" in complaint(lambda d: d.update(model_sha256="0" * 64), plan)
    assert "is for platform 'amlogic-a311d', and the run's plan for 'x'" in complaint(
        lambda d: d.update(platform="x"), plan
    )
    assert "and the run gpu" in complaint(lambda d: d.update(stages=[["gpu"]]), plan)
    moved = complaint(lambda d: d["tasks"][0].update(operators=["nowhere"]), plan)
    assert "places operators differently" in moved
    assert "is a simulation" in complaint(lambda d: d.update(how="simulation"))
    assert "decided by the strategy 'steal'" in complaint(lambda d: d.update(strategy="steal"))
    assert "write the run again with `parapipe run --json`" in complaint(lambda d: d.pop("tasks"))
    assert "no run is given" in parapipe("compare", plan).complaint


def test_a_run_that_others_disturbed_says_so_when_it_is_compared(parapipe, ran, tmp_path):
    document = json.loads(ran.read_text())
    document["machine"]["other_programs"] = 0.25
    path = tmp_path / "disturbed.json"
    path.write_text(json.dumps(document))
    assert "other programs used 25% of the machine in" in parapipe("compare", path).err


def test_a_simulation_takes_up_the_times_of_a_run(parapipe, plan, cores, tmp_path):
    made = tmp_path / "run.json"
    made.write_text(parapipe("run", plan, "--frames", 30, "--json", *cores).out)
    run = json.loads(made.read_text())
    assert {len(task["times_s"]) for task in run["tasks"]} == {30 - run["warm_up"]}
    slowest_s = sum(max(t["times_s"]) + max(t["handovers_s"]) for t in run["tasks"])
    ended = parapipe("simulate", plan, "--jitter-from", made, "--frames", 60, "--json")
    assert ended.code == 0, ended.err
    simulated = json.loads(ended.out)
    assert simulated["simulation"]["measured"] == str(made)
    assert simulated["simulation"]["unit"] == "segment"
    assert [t["operators"] for t in simulated["tasks"]] == [t["operators"] for t in run["tasks"]]
    for task, known in zip(simulated["tasks"], run["tasks"], strict=True):
        assert min(known["times_s"]) <= task["observed_s"] <= max(known["times_s"])
    if simulated["latency"]["most_s"] <= simulated["pace_s"]:  # then no frame waits for another
        assert simulated["latency"]["most_s"] <= slowest_s
