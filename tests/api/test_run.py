"""Plans of every kind of configuration, run on the cores that are there."""

import os

import numpy as np
import pytest

import parapipe
from parapipe.errors import ArgumentError, ExecutionError, PlanError
from tests.cases.session_runs import assert_equal, session
from tests.cases.small_network import saved

LENT = sorted(os.sched_getaffinity(0))
CORES = {"big": (LENT[0],), "little": (LENT[-1],), "gpu": (LENT[-1],)}
KINDS = ("sequential", "pipe-only", "para-only", "hybrid")
FRAMES = 50


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return saved(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def plans(model, tmp_path_factory):
    front = parapipe.map(model, "amlogic-a311d", cache=False, jobs=1, note=lambda _note: None)
    folder = tmp_path_factory.mktemp("plans")
    found = {}
    for each in front.configurations:
        found.setdefault(each.kind, folder / f"{each.kind}.json")
        each.plan().save(folder / f"{each.kind}.json")
    return found


@pytest.fixture(scope="module")
def frames(tmp_path_factory):
    path = tmp_path_factory.mktemp("frames") / "in.npz"
    np.savez(path, data=np.random.default_rng(3).random((FRAMES, 1, 3, 16, 16), np.float32))
    return path


def cores_of(plan):
    names = {processor.name for processor in parapipe.load_plan(plan).processors}
    return {name: cores for name, cores in CORES.items() if name in names}


@pytest.mark.parametrize("kind", KINDS)
def test_50_frames_come_out_as_of_one_session_in_order(kind, plans, model, frames, tmp_path):
    kept = tmp_path / "out.npz"
    plan = plans[kind]
    run = parapipe.run_plan(plan, input=frames, cores=cores_of(plan), keep=kept, saturate=True)
    assert run.document.frames == FRAMES
    opened = session(model)
    with np.load(frames) as given, np.load(kept) as results:
        assert results["prob"].shape == (FRAMES, 1, 10)
        for data, prob in zip(given["data"], results["prob"], strict=True):
            (expected,) = opened.run(["prob"], {"data": data})
            assert_equal({"prob": prob}, {"prob": expected})


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_is_told_beside_its_prediction(kind, plans):
    plan = plans[kind]
    run = parapipe.run_plan(plan, frames=20, cores=cores_of(plan), period_s=2e-3)
    document = run.document
    predicted = parapipe.load_plan(plan).predicted
    assert (document.how, document.frames, document.pace_s) == ("run", 20, 2e-3)
    assert document.latency.predicted_s == predicted.latency_s
    assert document.period.predicted_s == predicted.period_s
    assert all(task.observed_s > 0 for task in document.tasks)
    assert all(resource.observed_utilisation > 0 for resource in document.resources)


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_in_step_says_how_much_it_handed_over(kind, plans):
    plan = plans[kind]
    run = parapipe.run_plan(plan, frames=20, cores=cores_of(plan), in_step=True, saturate=True)
    opened = parapipe.load_plan(plan)
    listed = (each for stage in opened.stages for p in stage.processors for each in p.operators)
    lags = {each.lag for each in listed}
    # every tensor in two slots of a queue, of each of the frames under way
    most = sum(each.size_bytes for each in opened.tensors.values()) * (1 + len(lags))
    assert run.document.frames == 20
    assert 1 * 3 * 16 * 16 * 4 < run.document.peak_tensor_bytes <= most


@pytest.mark.parametrize("unit", ["operator", "segment"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_run_with_arenas_says_what_lies_where(kind, unit, plans):
    plan = plans[kind]
    run = parapipe.run_plan(
        plan, frames=20, cores=cores_of(plan), arena=True, saturate=True, unit=unit
    )
    found, read = run.document.arenas, parapipe.load_plan(plan)
    assert found.size_bytes == {each.name: each.size_bytes for each in read.memory.arenas}
    assert found.inside_bytes > 0
    results = sum(read.tensors[name].size_bytes for name in read.outputs)
    assert [each.size_bytes for each in found.outside if "results" in each.why] == [results]
    assert results <= found.peak_outside_bytes < run.document.peak_tensor_bytes
    assert any("MB lie in an arena of" in note for note in run.notes)


def test_strategies_decide_by_themselves_and_take_no_arenas(plans):
    plan = plans["hybrid"]
    for order, told in (("arena", "with arenas"), ("in_step", "in step")):
        with pytest.raises(ExecutionError, match=f"{told}, the plan decides who begins when"):
            parapipe.run_plan(plan, cores=cores_of(plan), strategy="steal", **{order: True})


def test_in_step_with_other_queues_is_refused(plans):
    plan = plans["pipe-only"]
    with pytest.raises(ExecutionError, match="queues have the slots that the plan says"):
        parapipe.run_plan(plan, cores=cores_of(plan), in_step=True, queue=3)


def test_cores_that_this_machine_lacks_are_told_with_the_way_out(plans):
    lacking = {"big": (4000, 4001)}
    with pytest.raises(ExecutionError, match=r"'big' wants cores 4000, 4001.*: this .* `cores` "):
        parapipe.run_plan(plans["hybrid"], cores=lacking)


def test_a_processor_that_the_plan_does_not_use_cannot_be_moved(plans):
    with pytest.raises(ExecutionError, match=r"given for npu, and the plan's processors are "):
        parapipe.run_plan(plans["sequential"], cores={"npu": (0,)})


def test_another_model_than_the_plans_is_refused(plans, tmp_path):
    other = tmp_path / "other.onnx"
    parapipe.build_zoo("squeezenet", other)
    with pytest.raises(PlanError, match="SHA-256"):
        parapipe.run_plan(plans["sequential"], model=other)


def test_wrong_arguments_are_told_at_once(plans):
    with pytest.raises(ArgumentError) as caught:
        parapipe.run_plan(plans["sequential"], frames=0, cores={"big": ()}, patience_s=0)
    assert str(caught.value).startswith("run: frames must be a whole number of at least 1")
    assert "cores must be" in str(caught.value)
    assert "patience_s must be" in str(caught.value)


def test_frames_that_do_not_fit_are_told(plans, tmp_path):
    np.savez(tmp_path / "in.npz", data=np.zeros((1, 3, 8, 8), np.float32))
    plan = plans["sequential"]
    with pytest.raises(ExecutionError, match=r"input 'data' is float32\[1,3,8,8\] and should be"):
        parapipe.run_plan(plan, input=tmp_path / "in.npz", cores=cores_of(plan))


def test_the_report_calls_segments_as_trace_and_errors_do(plans):
    plan = plans["hybrid"]
    run = parapipe.run_plan(plan, frames=3, cores=cores_of(plan))
    assert {task.name for task in run.document.tasks} == {span.name for span in run.record.spans}
