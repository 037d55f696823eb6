"""`parapipe run --runtime native`: results of ONNX Runtime, a report and a trace like any run's."""

import json
import os

import numpy as np
import pytest

from parapipe import build_zoo, profile_on_runtime, run_plan
from parapipe.cost.profile import read_profile
from parapipe.graph.onnx_import import import_model
from parapipe.plan.records import Stream
from tests.cases.armcl_cases import inception
from tests.cases.armcl_plans import ARRANGEMENTS, plan_for
from tests.cases.measuring import platform_of_parts
from tests.cases.nightly import nightly_from

CORES = sorted(os.sched_getaffinity(0))
NETWORKS = ("squeezenet", "mobilenet-v2", "gpt:1", "googlenet", "mobilenet-v1", "resnet-50")
STRATEGIES = ("ready-pool", "steal", "streams")
TOLERANCE = 1e-4  # of the largest number of the output


def here(plan):
    """Cores of this machine for the processors of a plan."""
    names = [each.name for each in plan.processors]
    return {name: [CORES[number % len(CORES)]] for number, name in enumerate(names)}


def results(path):
    with np.load(path) as file:
        return {name: file[name] for name in file.files}


def assert_equal_to_onnx_runtime(plan, tmp_path, cores=None, strategy="plan", frames=3):
    """Results of both runtimes on the same random frames; return the native run."""
    kept = {}
    for runtime in ("onnxruntime", "native"):
        path = tmp_path / f"{runtime}.npz"
        run = run_plan(
            plan, frames=frames, warmup=1, saturate=True, cores=cores or here(plan), keep=path,
            runtime=runtime, strategy=strategy if runtime == "native" else "plan",
        )  # fmt: skip
        kept[runtime] = results(path)
    assert kept["native"].keys() == kept["onnxruntime"].keys()
    for name, wanted in kept["onnxruntime"].items():
        made = kept["native"][name]
        assert (made.shape, made.dtype) == (wanted.shape, wanted.dtype)
        assert np.abs(made - wanted).max() <= TOLERANCE * np.abs(wanted).max()
    return run


@pytest.fixture
def small(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(inception().SerializeToString())
    return path


@pytest.mark.parametrize("arrangement", ARRANGEMENTS)
def test_results_are_those_of_onnx_runtime(small, tmp_path, arrangement):
    plan = plan_for(small, arrangement)
    run = assert_equal_to_onnx_runtime(plan, tmp_path)
    assert run.document.how == "run"
    assert run.document.frames == 3
    spans = {(span.name, span.frame) for span in run.record.spans}
    assert spans == {(each.id, frame) for each in plan.operators for frame in range(3)}
    assert all(0 <= span.start_s <= span.end_s for span in run.record.spans)
    assert {span.resource for span in run.record.spans} == {p.name for p in plan.processors}


@pytest.mark.parametrize(
    ("backend", "loops"),
    [
        ("onednn-cpu", None),
        ("xnnpack-cpu", "1 operator runs in a plain loop"),  # the LRN
        ("plain", "20 operators run in a plain loop"),  # 13 Conv, 4 pools, LRN, Gemm, Softmax
    ],
)
def test_processors_compute_with_the_back_ends_that_they_name(small, tmp_path, backend, loops):
    plan = plan_for(small, "pipe-only")
    named = tuple(each.model_copy(update={"backend": backend}) for each in plan.processors)
    plan = plan.model_copy(update={"processors": named})
    run = assert_equal_to_onnx_runtime(plan, tmp_path)
    told = [note.split(",")[0] for note in run.notes if "plain loop" in note]
    assert told == ([loops] if loops else [])


@pytest.mark.parametrize("name", nightly_from(3, NETWORKS))
def test_networks_of_the_zoo_give_the_results_of_onnx_runtime(name, tmp_path):
    path = tmp_path / "model.onnx"
    build_zoo(name, path)
    count = len(import_model(path).operators)
    assert count > 20
    assert_equal_to_onnx_runtime(plan_for(path, "para-only"), tmp_path)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("arrangement", ARRANGEMENTS)
def test_strategies_give_the_results_of_onnx_runtime(small, tmp_path, arrangement, strategy):
    plan = plan_for(small, arrangement)
    run = assert_equal_to_onnx_runtime(plan, tmp_path, strategy=strategy, frames=50)
    spans = {(span.name, span.frame) for span in run.record.spans}
    assert spans == {(each.id, frame) for each in plan.operators for frame in range(50)}
    assert {span.resource for span in run.record.spans} <= {p.name for p in plan.processors}


def test_a_pool_of_ready_operators_shares_the_work_of_a_lone_processor(small, tmp_path):
    plan = plan_for(small, "pipe-only")
    run = assert_equal_to_onnx_runtime(plan, tmp_path, strategy="ready-pool", frames=50)
    planned = {at.operator: p.name for s in plan.stages for p in s.processors for at in p.operators}
    assert any(span.resource != planned[span.name] for span in run.record.spans)


def test_two_streams_share_the_cores_of_a_processor(small, tmp_path):
    plan = plan_for(small, "para-only")
    streams = tuple(
        each.model_copy(update={"stream": Stream(of="cpu", count=2), "cores": tuple(CORES[:2])})
        for each in plan.processors
    )
    plan = plan.model_copy(update={"processors": streams})
    both = {each.name: CORES[:2] for each in streams}
    run = assert_equal_to_onnx_runtime(plan, tmp_path, cores=both)
    assert {span.resource for span in run.record.spans} == set(both)


def test_the_command_reports_and_writes_a_trace(parapipe, small, tmp_path):
    plan = plan_for(small, "pipe-only")
    plan.save(tmp_path / "plan.json")
    cores = [f"--cores={name}={core}" for name, (core,) in here(plan).items()]
    ended = parapipe(
        "run", tmp_path / "plan.json", "--runtime", "native", "--frames", 5, "--json", *cores,
        "--trace", tmp_path / "trace.json",
    )  # fmt: skip
    assert ended.code == 0, ended.err
    document = json.loads(ended.out)
    assert (document["schema"], document["frames"]) == ("parapipe/run/2", 5)
    assert len(document["tasks"]) == len(plan.operators)
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert {e["name"] for e in events if e["ph"] == "X"} == {each.id for each in plan.operators}


def test_a_core_that_is_not_there_is_one_clear_line(parapipe, small, tmp_path):
    plan_for(small, "pipe-only").save(tmp_path / "plan.json")
    ended = parapipe(
        "run", tmp_path / "plan.json", "--runtime", "native", "--cores", "big=4000",
        "--cores", "little=0",
    )  # fmt: skip
    assert "the native runner: " in ended.complaint
    assert "4000" in ended.complaint


@pytest.fixture
def platform(tmp_path):
    """This machine in identical processors of one core."""
    return platform_of_parts(tmp_path / "here.yaml")


def test_a_profile_has_a_row_for_every_operator(small, platform):
    report = profile_on_runtime(small, platform, "native")
    rows = read_profile(report.path).measurements
    assert report.path.name == "native.csv"
    assert report.measured == len(rows) > 10
    assert all(row.time_s > 0 for row in rows)
    assert {row.method for row in rows} == {"run"}


def test_a_profile_has_parts_too(small, platform):
    whole = profile_on_runtime(small, platform, "native").measured
    assert profile_on_runtime(small, platform, "native", parts=True).measured >= whole
