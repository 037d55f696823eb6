"""Processors that take turns on frames: results of ONNX Runtime, in the order of the frames."""

import json
import signal
import subprocess
import time

import pytest

from parapipe.plan.mapped import mapping_view
from parapipe.plan.verify import verify_plan
from tests.cases.armcl_cases import inception, separable, write_case
from tests.cases.replicated_plans import replicated
from tests.cases.residual_cases import residual
from tests.cases.runner import on_one_core_each, refused
from tests.runtimes.onednn.test_native_runs import assert_equal_to_onnx_runtime

COUNTS = [(2,), (3,), (1, 2), (2, 1), (1, 3, 1), (2, 3), (2, 2), (3, 2), (1, 2, 2)]
FRAMES = 50
DISTINCT = 7  # frames, so that one in the place of another is noticed


def write(folder, counts, *, model=inception, backend="onednn"):
    """Export a replicated plan with frames and their results."""
    plan = write_case(
        model(), folder, frames=DISTINCT, plan_of=replicated, counts=counts, backend=backend
    )
    on_one_core_each(folder)
    return plan


@pytest.mark.parametrize("backend", ["onednn", "plain", "xnnpack"])
@pytest.mark.parametrize("counts", COUNTS, ids=str)
@pytest.mark.parametrize("model", [inception, residual])
def test_each_frame_has_its_own_results(runner, tmp_path, model, counts, backend):
    folder = tmp_path / "case"
    plan = write(folder, counts, model=model, backend=backend)
    verify_plan(plan)
    report = runner.measured(
        folder, "--input", folder / "input.bin", "--check", folder / "expected.bin",
        "--frames", FRAMES, "--warmup", 0,
    )  # fmt: skip
    assert report["agrees"]


@pytest.mark.parametrize("counts", [(1, 3, 1), (2, 3)], ids=str)
def test_a_frame_is_run_by_the_processor_of_its_number(runner, tmp_path, counts):
    plan = write(tmp_path / "case", counts, model=separable)
    trace = tmp_path / "trace.json"
    runner.measured(tmp_path / "case", "--frames", 13, "--warmup", 0, "--trace", trace)
    view = mapping_view(plan)
    for each in json.loads(trace.read_text())["operators"]:
        names = view.replicas.get(each["processor"], (each["processor"],))
        assert each["processors"] == [names[frame % len(names)] for frame in range(13)]


@pytest.mark.parametrize("strategy", ["plan", "ready-pool", "steal", "streams"])
@pytest.mark.parametrize("counts", [(3,), (1, 2), (2, 2)], ids=str)
def test_the_command_gives_the_results_of_onnx_runtime(tmp_path, counts, strategy):
    path = tmp_path / "model.onnx"
    path.write_bytes(inception().SerializeToString())
    plan = replicated(path, counts)
    run = assert_equal_to_onnx_runtime(plan, tmp_path, strategy=strategy, frames=FRAMES)
    spans = [(span.name, span.frame) for span in run.record.spans]
    assert sorted(spans) == sorted((v.id, frame) for v in plan.operators for frame in range(FRAMES))
    names = {name for turns in mapping_view(plan).replicas.values() for name in turns}
    assert set(run.record.first_of) == names


def test_frames_that_come_at_a_pace_wait_for_their_turn(runner, tmp_path):
    folder = tmp_path / "case"
    write(folder, (1, 2, 1))
    report = runner.measured(
        folder, "--input", folder / "input.bin", "--check", folder / "expected.bin",
        "--frames", 20, "--period", 0.002,
    )  # fmt: skip
    assert report["agrees"]


def test_an_interrupt_ends_all_that_take_turns(runner, tmp_path):
    folder = tmp_path / "case"
    write(folder, (2, 3))
    words = [*runner.command, str(folder), "--json", "--frames", "100000000", "--period", "0.001"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        assert run.stderr.readline().startswith("running ")
        time.sleep(0.2)
        run.send_signal(signal.SIGINT)
        out, err = run.communicate(timeout=60)
    assert run.returncode == 130, err
    report = json.loads(out)
    assert report["interrupted"]
    assert report["frames"] > 0


def other_stage(document):
    first, second = (stage["processors"][0] for stage in document["stages"])
    first["replicas"] = [second["name"]]


def twice(document):
    document["stages"][1]["processors"][0]["replicas"] *= 2


def nobody(document):
    document["stages"][1]["processors"][0]["replicas"] = []


def shared(document):
    first, second = document["stages"]
    second["processors"] += first["processors"]
    document["stages"] = [second | {"index": 0}]


def lagging(document):
    at = document["stages"][1]["processors"][0]
    at["lags"] = [0] * (len(at["operators"]) - 1) + [1]


def different(document):
    document["processors"][-1]["backend"] = "plain"


def on_a_gpu(document):
    name = next(p["name"] for s in document["stages"] for p in s["processors"] if "replicas" in p)
    next(p for p in document["processors"] if p["name"] == name)["backend"] = "opencl"


@pytest.mark.parametrize(
    ("change", "mistake"),
    [
        (other_stage, "stands in a stage already"),
        (twice, "stands in a stage already"),
        (nobody, "should name a processor or more"),
        (shared, "has replicas, and shares its stage with"),
        (lagging, "has replicas, and operators of several lags"),
        (different, "is not identical to"),
        (on_a_gpu, "has replicas, and ARM Compute Library drives one GPU"),
    ],
)
def test_what_no_replica_can_be_is_refused(runner, tmp_path, change, mistake):
    folder = tmp_path / "case"
    write(folder, (1, 2))
    path = folder / "plan.json"
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))
    assert mistake in refused(runner.run(folder))
