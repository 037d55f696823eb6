"""Which back end of the runner a processor gets, and what is exported to it."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import parapipe
from parapipe.errors import ExportError
from parapipe.plan.records import Stream
from parapipe.targets.native.backends import backend_of
from parapipe.targets.native.folder import write_library_folder
from parapipe.targets.native.runner import backend_here
from tests.cases.armcl_case import one
from tests.cases.armcl_cases import separable
from tests.cases.armcl_plans import plan_for
from tests.cases.replicated_plans import replicated


@pytest.fixture
def saved(tmp_path):
    def save(model):
        path = tmp_path / "model.onnx"
        path.write_bytes(model.SerializeToString())
        return path, plan_for(path)

    return save


def exported(plan, path, folder, **options):
    folder.mkdir()
    return write_library_folder(plan, path, folder, **options)


@pytest.mark.parametrize(
    ("kind", "named", "backend"),
    [
        ("cpu", "armcl-neon", "neon"),
        ("gpu", "armcl-opencl", "opencl"),
        ("cpu", "onednn-cpu", "onednn"),
        ("cpu", "xnnpack-cpu", "xnnpack"),
        ("cpu", "plain", "plain"),
        ("cpu", "onnxruntime-cpu", "neon"),
        ("gpu", "onednn-cpu", "opencl"),
        ("npu", "onednn-cpu", None),
    ],
)
def test_a_processor_names_its_back_end(saved, kind, named, backend):
    _, plan = saved(separable())
    processor = plan.processors[0].model_copy(update={"kind": kind, "backend": named})
    assert backend_of(processor) == backend


@pytest.mark.parametrize(
    ("named", "library", "notes"),
    [
        ("onnxruntime-cpu", "ARM Compute Library on a CPU", 1),
        ("onednn-cpu", "oneDNN", 0),
        ("armcl-neon", "ARM Compute Library on a CPU", 0),
    ],
)
def test_an_export_says_which_library_computes_where_the_platform_names_none(
    saved, tmp_path, named, library, notes
):
    _, plan = saved(separable())
    cpus = [each.model_copy(update={"kind": "cpu", "backend": named}) for each in plan.processors]
    plan.model_copy(update={"processors": tuple(cpus)}).save(tmp_path / "plan.json")
    for target in ("native", "cpp"):
        done = parapipe.export_plan(tmp_path / "plan.json", target, tmp_path / target)
        assert len(done.notes) == notes
        assert all(f"{cpus[0].name}: ARM Compute Library computes" in each for each in done.notes)
    readme = (tmp_path / "native" / "README.md").read_text(encoding="utf-8")
    assert f"the native runner with {library}. That" in " ".join(readme.split())


@pytest.mark.parametrize(
    ("machine", "named", "backend"),
    [
        ("x86_64", "onnxruntime-cpu", "onednn"),
        ("x86_64", "armcl-neon", "onednn"),  # which does not run here
        ("x86_64", "xnnpack-cpu", "xnnpack"),
        ("x86_64", "plain", "plain"),
        ("aarch64", "onnxruntime-cpu", "neon"),
        ("aarch64", "onednn-cpu", "neon"),
        ("aarch64", "xnnpack-cpu", "xnnpack"),
    ],
)
def test_a_run_here_takes_what_a_processor_names_if_it_runs_here(
    saved, monkeypatch, machine, named, backend
):
    _, plan = saved(separable())
    monkeypatch.setattr("platform.machine", lambda: machine)
    processor = plan.processors[0].model_copy(update={"kind": "gpu", "backend": named})
    assert backend_here(processor) == backend


def test_groups_are_divided_for_arm_compute_library_alone(saved, tmp_path):
    path, plan = saved(separable())
    groups = {
        backend: sorted(
            step.attributes["group"]
            for step in exported(plan, path, tmp_path / backend, backend=backend).operators
            if step.type == "Conv"
        )
        for backend in ("neon", "onednn")
    }
    assert groups["onednn"] == [1, 1, 1, 2, 10]
    assert groups["neon"] == [1, 1, 1, 1, 1, 10]


def test_two_activations_are_multiplied_by_back_ends_with_loops_alone(saved, tmp_path):
    path, plan = saved(one("pair", "MatMul", (2, 3, 5, 4), inputs={"z": (2, 3, 4, 6)}).model())
    document = exported(plan, path, tmp_path / "onednn", backend="onednn")
    assert [step.type for step in document.operators] == ["MatMul"]
    with pytest.raises(ExportError, match="multiplies two activations"):
        exported(plan, path, tmp_path / "neon")


def test_a_plan_in_another_order_has_no_arena(saved, tmp_path):
    path, plan = saved(separable())
    assert exported(plan, path, tmp_path / "plain", backend="plain").arena is None


def test_streams_are_for_cpus_whose_threads_may_share_cores(saved, tmp_path):
    path, plan = saved(separable())
    streams = tuple(
        each.model_copy(update={"stream": Stream(of="cpu", count=2), "cores": (0, 1, 2, 3)})
        for each in plan.processors
    )
    plan = plan.model_copy(update={"processors": streams})
    for backend in ("onednn", "neon"):
        document = exported(plan, path, tmp_path / backend, backend=backend)
        assert [(each.cores, each.threads) for each in document.processors] == [((0, 1, 2, 3), 2)]
    with pytest.raises(ExportError, match="drives a GPU by one queue, and the plan has streams"):
        exported(plan, path, tmp_path / "opencl", backend="opencl")


def test_whole_numbers_are_cut_and_joined_by_back_ends_with_loops_alone(saved, tmp_path):
    picked = helper.make_graph(
        [
            helper.make_node("Split", ["ids"], ["a", "b"], name="halves", axis=0, num_outputs=2),
            helper.make_node("Concat", ["b", "a"], ["turned"], name="join", axis=0),
            helper.make_node("Gather", ["words", "turned"], ["y"], name="pick"),
        ],
        "picked",
        [helper.make_tensor_value_info("ids", TensorProto.INT64, [4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4, 3])],
        [numpy_helper.from_array(np.ones((5, 3), np.float32), "words")],
    )
    opset = [helper.make_opsetid("", 18)]
    path, plan = saved(helper.make_model(picked, opset_imports=opset, ir_version=8))
    document = exported(plan, path, tmp_path / "onednn", backend="onednn")
    assert [step.type for step in document.operators] == ["Slice", "Slice", "Concat", "Gather"]
    with pytest.raises(ExportError, match=r"'halves' .*: it is of type int64"):
        exported(plan, path, tmp_path / "neon")


def test_replicas_are_for_cpus(saved, tmp_path):
    path, _ = saved(separable())
    plan = replicated(path, (1, 3))
    names = [each.name for each in plan.processors]
    for backend in ("onednn", "neon"):
        document = exported(plan, path, tmp_path / backend, backend=backend)
        placed = [(each.name, each.replicas) for s in document.stages for each in s.processors]
        assert placed == [(names[0], None), (names[1], tuple(names[2:]))]
        assert [each.name for each in document.processors] == names
    with pytest.raises(ExportError, match=f"one GPU, and others take turns with '{names[1]}'"):
        exported(plan, path, tmp_path / "opencl", backend="opencl")
