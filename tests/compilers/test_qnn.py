"""Qualcomm's compiler itself: runs where PARAPIPE_COMPILER_QNN names a Python that has it.

`make test-qnn` makes that environment.
"""

from __future__ import annotations

import os
import venv
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import helper

import parapipe
from parapipe.compilers.compile import (
    compile_segment,
    simulate_frames,
    simulate_segment,
    tool_version,
)
from parapipe.compilers.contract import CompileError, CompileJob, Environment, RefusedNode
from parapipe.compilers.qnn.compiler import QnnCompiler
from parapipe.platform.catalogue import catalogue
from tests.cases import compiler_models as models
from tests.cases.compiler_models import frame_for, saved

pytestmark = pytest.mark.skipif(
    "PARAPIPE_COMPILER_QNN" not in os.environ,
    reason="Qualcomm's compiler is not installed: make test-qnn",
)
CHIP = "sm8550"
MODELS = {
    "left to the CPU": models.left_to_the_cpu,
    "an operator of opset 20, three dimensions": models.gelu,
    "two inputs and outputs": models.two_inputs,
    "an epsilon that is not there": models.normalised,
    "opset 22": lambda: models.newer(22),
    "outputs of bool, names of other exporters": models.compared,
    "float16": models.half,
    "scales of its own": models.quantised,
}


def celus() -> onnx.ModelProto:
    """Two operators that the chip does not have."""
    nodes = [
        helper.make_node("Celu", ["x"], ["a"], "first"),
        helper.make_node("Celu", ["a"], ["y"], "second"),
    ]
    return models.model(nodes)


def cosine(one, other) -> float:
    first, second = one.astype(float).ravel(), other.astype(float).ravel()
    return first @ second / np.sqrt((first @ first) * (second @ second))


def expected(network, frame):
    session = ort.InferenceSession(network.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_outputs()]
    return dict(zip(names, session.run(names, frame), strict=True))


def with_samples(network, folder: Path) -> CompileJob:
    frames = [frame_for(network, seed) for seed in range(8)]
    stacks = {name: np.stack([frame[name] for frame in frames]) for name in frames[0]}
    np.savez(folder / "samples.npz", **stacks)
    return CompileJob(saved(network, folder), CHIP, "int8", folder / "samples.npz")


@pytest.mark.parametrize("name", MODELS)
def test_outputs_are_those_of_onnx_in_name_shape_type_and_value(tmp_path, name) -> None:
    network = MODELS[name]()
    frame = frame_for(network)
    outputs = simulate_segment("qnn", CompileJob(saved(network, tmp_path), CHIP), frame)
    right = expected(network, frame)
    assert {each: (array.shape, array.dtype) for each, array in outputs.items()} == {
        each: (array.shape, array.dtype) for each, array in right.items()
    }
    assert all(cosine(outputs[each], right[each]) >= 0.99 for each in right)


def test_several_frames_have_outputs_of_their_own(tmp_path) -> None:
    network = models.two_inputs()
    frames = [frame_for(network, seed) for seed in range(3)]
    outputs = simulate_frames("qnn", CompileJob(saved(network, tmp_path), CHIP), frames)
    for frame, each in zip(frames, outputs, strict=True):
        right = expected(network, frame)
        assert all(cosine(each[name], right[name]) >= 0.99 for name in right)


def test_rows_have_targets_types_and_nodes_but_no_cycles(tmp_path) -> None:
    segment = compile_segment("qnn", CompileJob(saved(models.gelu(), tmp_path), CHIP))
    (gelu,) = (row for row in segment.rows if "gelu" in row.nodes)
    assert (gelu.operator, gelu.target, gelu.dtype, gelu.cycles) == ("Gelu", "HTP", "float16", None)
    (product,) = (row for row in segment.rows if "matmul" in row.nodes)
    assert product.on_npu
    assert segment.on_cpu == ()
    assert "2.7.0 with onnxruntime 1.32.0" == segment.version == tool_version("qnn")


def test_the_artefact_is_one_file_whose_parts_are_compiled(tmp_path) -> None:
    segment = compile_segment("qnn", CompileJob(saved(models.left_to_the_cpu(), tmp_path), CHIP))
    types = {node.op_type for node in onnx.load(segment.artefact).graph.node}
    assert "EPContext" in types
    assert "Conv" not in types


def test_onnx_runtime_is_told_to_report_nothing(tmp_path) -> None:
    folder = tmp_path / "job"
    folder.mkdir()
    place = Environment(Path(os.environ["PARAPIPE_COMPILER_QNN"]))
    QnnCompiler().compile(CompileJob(saved(models.gelu(), tmp_path), CHIP), place, folder)
    assert (folder / "segment_ctx.onnx").is_file()
    assert not list(folder.glob("**/*.ses"))


def test_what_is_left_to_the_cpu_is_listed_with_the_compilers_reason(tmp_path) -> None:
    network = models.refused()
    segment = compile_segment("qnn", CompileJob(saved(network, tmp_path), CHIP))
    reason = "NonZero output shape must be static. Set shape to [rank, num_elements]."
    assert segment.on_cpu == (RefusedNode("nz", "NonZero", reason),)
    assert {row.nodes for row in segment.rows if not row.on_npu} == {("nz",)}


def test_a_segment_of_which_the_chip_takes_nothing_is_refused_with_reasons(tmp_path) -> None:
    job = CompileJob(saved(celus(), tmp_path), CHIP)
    with pytest.raises(CompileError, match=r"takes none of its nodes.*`Celu`") as raised:
        compile_segment("qnn", job)
    assert raised.value.cause == "refused"
    assert [node.node for node in raised.value.refused] == ["first", "second"]


def test_what_the_compiler_refuses_is_told_in_its_words(tmp_path) -> None:
    network = models.two_inputs()
    network.graph.node[1].op_type = "Convolution"
    with pytest.raises(CompileError, match=r"refuses it: .*Convolution") as raised:
        compile_segment("qnn", CompileJob(saved(network, tmp_path), CHIP))
    assert raised.value.cause == "refused"


def test_int8_with_samples_is_near_the_float_model(tmp_path) -> None:
    network = models.two_inputs()
    job = with_samples(network, tmp_path)
    segment = compile_segment("qnn", job)
    assert segment.notes == ("its inputs and outputs are quantized by the CPU",)
    assert {row.dtype for row in segment.rows if row.on_npu} == {"ufixed8"}
    assert segment.on_cpu == ()
    frame = frame_for(network, 1)
    outputs, right = simulate_segment("qnn", job, frame), expected(network, frame)
    assert cosine(outputs["y"], right["y"]) >= 0.99


def test_int8_keeps_a_normalization_on_the_chip(tmp_path) -> None:
    network = models.normalised()
    job = with_samples(network, tmp_path)
    segment = compile_segment("qnn", job)
    assert segment.on_cpu == ()
    frame = frame_for(network, 1)
    outputs, right = simulate_segment("qnn", job, frame), expected(network, frame)
    assert cosine(outputs["y"], right["y"]) >= 0.99


def test_int8_without_samples_says_so(tmp_path) -> None:
    segment = compile_segment("qnn", CompileJob(saved(models.gelu(), tmp_path), CHIP, "int8"))
    assert segment.notes[0] == "quantized with random samples, so its outputs mean nothing"


def test_a_model_keeps_scales_of_its_own(tmp_path) -> None:
    segment = compile_segment("qnn", CompileJob(saved(models.quantised(), tmp_path), CHIP, "int8"))
    (conv,) = (row for row in segment.rows if "conv" in row.nodes)
    assert conv.dtype == "sfixed8"
    assert {"of_xd", "of_w", "conv", "of_yq"} <= {*conv.nodes}
    reason = "QNN EP is configured to not take Q nodes that consume a graph input."
    assert segment.on_cpu == (RefusedNode("of_xq", "QuantizeLinear", reason),)


def test_a_chip_without_float16_takes_int8_only(tmp_path) -> None:
    path = saved(models.two_inputs(), tmp_path)
    with pytest.raises(CompileError, match="does not compute in float16; ask for int8"):
        compile_segment("qnn", CompileJob(path, "qcm6490"))
    segment = compile_segment("qnn", CompileJob(path, "qcm6490", "int8"))
    assert all(row.on_npu for row in segment.rows if row.nodes)


@pytest.mark.parametrize("chip", [each for each in catalogue().parts if "Hexagon" in each])
def test_a_part_of_the_catalogue_names_a_target(tmp_path, chip) -> None:
    compiler = catalogue().parts[chip].compiler
    path = saved(models.two_inputs(), tmp_path)
    assert compile_segment(compiler.name, CompileJob(path, compiler.target)).rows


def test_a_python_without_the_compiler_is_told(tmp_path, monkeypatch) -> None:
    venv.create(tmp_path / "empty")
    monkeypatch.setenv("PARAPIPE_COMPILER_QNN", str(tmp_path / "empty" / "bin" / "python"))
    with pytest.raises(CompileError, match="does not have all of onnxruntime-qnn") as raised:
        tool_version("qnn")
    assert raised.value.cause == "missing"


def test_the_check_compiles_and_simulates() -> None:
    check = parapipe.check_compiler("qnn")
    assert check.target == "sm8850"
    assert check.cosine >= 0.99
