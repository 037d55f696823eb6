"""Qualcomm's compiler itself: runs where PARAPIPE_COMPILER_QNN names a Python that has it.

`make test-qnn` makes that environment.
"""

from __future__ import annotations

import os

import numpy as np
import onnx
import pytest
from onnx import helper

import parapipe
from parapipe.compilers.compile import compile_segment, simulate_frames, simulate_segment
from parapipe.compilers.contract import CompileError, CompileJob, RefusedNode
from parapipe.compilers.qnn.compiler import QnnCompiler
from tests.cases import compiler_models as models
from tests.cases.compiler_models import INT64, MODELS, cosine, expected, frame_for, saved

pytestmark = pytest.mark.skipif(
    "PARAPIPE_COMPILER_QNN" not in os.environ,
    reason="Qualcomm's compiler is not installed: make test-qnn",
)


@pytest.mark.parametrize("name", MODELS)
def test_outputs_are_those_of_onnx_in_name_shape_type_and_value(tmp_path, name) -> None:
    network = MODELS[name]()
    frame = frame_for(network)
    outputs = simulate_segment("qnn", CompileJob(saved(network, tmp_path), "sm8550"), frame)
    right = expected(network, frame)
    assert {each: (array.shape, array.dtype) for each, array in outputs.items()} == {
        each: (array.shape, array.dtype) for each, array in right.items()
    }
    assert all(cosine(outputs[each], right[each]) >= 0.99 for each in right)


def test_int8_with_samples_is_near_the_float_model(tmp_path) -> None:
    network = models.two_inputs()
    frames = [frame_for(network, seed) for seed in range(8)]
    stacks = {name: np.stack([frame[name] for frame in frames]) for name in frames[0]}
    np.savez(tmp_path / "samples.npz", **stacks)
    job = CompileJob(saved(network, tmp_path), "sm8550", "int8", tmp_path / "samples.npz")
    assert compile_segment("qnn", job).notes == ()
    for frame, outputs in zip(frames, simulate_frames("qnn", job, frames), strict=True):
        right = expected(network, frame)
        assert cosine(outputs["y"], right["y"]) >= 0.99


def test_what_is_left_to_the_cpu_has_a_reason_and_stands_in_the_file(tmp_path) -> None:
    segment = compile_segment(
        "qnn", CompileJob(saved(models.left_to_the_cpu(), tmp_path), "sm8550")
    )
    reason = "Operators of type `Erf` are not supported by QNN EP."
    assert segment.on_cpu == (RefusedNode("erf", "Erf", reason),)
    nodes = onnx.load(segment.artefact).graph.node
    assert [node.op_type for node in nodes] == ["EPContext", "Erf", "EPContext"]
    assert {row.cycles for row in segment.rows} == {None}
    assert {node: row.target for row in segment.rows for node in row.nodes} == {
        "conv": "NPU", "lrn": "NPU", "erf": "CPU",
    }  # fmt: skip


def test_a_segment_of_which_nothing_runs_on_the_npu_is_refused(tmp_path) -> None:
    node = helper.make_node("NonZero", ["x"], ["y"], "nz")
    path = saved(models.model([node], outputs=[("y", INT64, (4, None))]), tmp_path)
    with pytest.raises(
        CompileError, match="runs none of it on the NPU of sm8550: NonZero output"
    ) as raised:
        compile_segment("qnn", CompileJob(path, "sm8550"))
    assert raised.value.cause == "refused"
    assert [each.node for each in raised.value.refused] == ["nz"]


@pytest.mark.parametrize("chip", QnnCompiler.targets)
def test_the_check_compiles_and_emulates_for_each_chip(chip) -> None:
    check = parapipe.check_compiler("qnn", target=chip)
    assert check.cosine >= 0.99
