"""Rockchip's compiler itself: runs where PARAPIPE_COMPILER_RKNN names a Python that has it.

`make test-rknn` makes that environment.
"""

from __future__ import annotations

import json
import os

import numpy as np
import onnxruntime as ort
import pytest

import parapipe
from parapipe.cli.command_line import run
from parapipe.compilers.compile import compile_segment, simulate_frames, simulate_segment
from parapipe.compilers.contract import CompileError, CompileJob, RefusedNode
from tests.cases import compiler_models as models
from tests.cases.compiler_models import frame_for, saved

pytestmark = pytest.mark.skipif(
    "PARAPIPE_COMPILER_RKNN" not in os.environ,
    reason="Rockchip's compiler is not installed: make test-rknn",
)
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


def cosine(one, other) -> float:
    first, second = one.astype(float).ravel(), other.astype(float).ravel()
    return first @ second / np.sqrt((first @ first) * (second @ second))


def expected(network, frame):
    session = ort.InferenceSession(network.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_outputs()]
    return dict(zip(names, session.run(names, frame), strict=True))


@pytest.mark.parametrize("name", MODELS)
def test_outputs_are_those_of_onnx_in_name_shape_type_and_value(tmp_path, name) -> None:
    network = MODELS[name]()
    frame = frame_for(network)
    outputs = simulate_segment("rknn", CompileJob(saved(network, tmp_path), "rk3588"), frame)
    right = expected(network, frame)
    assert {each: (array.shape, array.dtype) for each, array in outputs.items()} == {
        each: (array.shape, array.dtype) for each, array in right.items()
    }
    assert all(cosine(outputs[each], right[each]) >= 0.99 for each in right)


def test_several_frames_have_outputs_of_their_own(tmp_path) -> None:
    network = models.two_inputs()
    frames = [frame_for(network, seed) for seed in range(3)]
    outputs = simulate_frames("rknn", CompileJob(saved(network, tmp_path), "rk3588"), frames)
    for frame, each in zip(frames, outputs, strict=True):
        right = expected(network, frame)
        assert all(cosine(each[name], right[name]) >= 0.99 for name in right)


def test_int8_with_samples_is_near_the_float_model(tmp_path) -> None:
    network = models.two_inputs()
    frames = [frame_for(network, seed) for seed in range(8)]
    stacks = {name: np.stack([frame[name] for frame in frames]) for name in frames[0]}
    np.savez(tmp_path / "samples.npz", **stacks)
    job = CompileJob(saved(network, tmp_path), "rk3588", "int8", tmp_path / "samples.npz")
    segment = compile_segment("rknn", job)
    assert segment.notes == ()
    assert {row.dtype for row in segment.rows} == {"INT8"}
    outputs, right = simulate_segment("rknn", job, frames[0]), expected(network, frames[0])
    assert cosine(outputs["y"], right["y"]) >= 0.99


def test_int8_without_samples_says_so(tmp_path) -> None:
    segment = compile_segment("rknn", CompileJob(saved(models.gelu(), tmp_path), "rk3588", "int8"))
    assert segment.notes == ("quantized with random samples, so its outputs mean nothing",)


def test_weights_in_another_file_are_compiled(tmp_path) -> None:
    options = {"save_as_external_data": True, "location": "w.bin", "size_threshold": 0}
    network = models.two_inputs()
    job = CompileJob(saved(models.two_inputs(), tmp_path, **options), "rk3588")
    frame = frame_for(network)
    outputs = simulate_segment("rknn", job, frame)
    assert cosine(outputs["y"], expected(network, frame)["y"]) >= 0.99


def test_rows_have_cycles_targets_and_nodes(tmp_path) -> None:
    segment = compile_segment("rknn", CompileJob(saved(models.gelu(), tmp_path), "rk3588"))
    (fused,) = (row for row in segment.rows if row.nodes)
    assert (fused.operator, fused.nodes, fused.matched) == (
        "ConvExGelu", ("matmul", "gelu"), "group",
    )  # fmt: skip
    assert fused.cycles
    assert segment.weight_bytes
    assert segment.internal_bytes
    assert segment.artefact.stat().st_size > 32 * 64 * 2


def test_what_is_left_to_the_cpu_is_listed(tmp_path) -> None:
    path = saved(models.left_to_the_cpu(), tmp_path)
    segment = compile_segment("rknn", CompileJob(path, "rk3588"))
    assert segment.on_cpu == (RefusedNode("lrn", "LRN", ""), RefusedNode("erf", "Erf", ""))
    assert [row.cycles for row in segment.rows[1:]] == [None, None]


def test_what_the_compiler_adds_on_the_cpu_is_noted(tmp_path) -> None:
    np.savez(tmp_path / "samples.npz", **frame_for(models.newer(17)))
    path = saved(models.newer(17), tmp_path)
    segment = compile_segment("rknn", CompileJob(path, "rk3588", "int8", tmp_path / "samples.npz"))
    added = [row for row in segment.rows if row.target == "CPU" and not row.nodes]
    assert [row.operator for row in added] == ["Reshape"]
    note = "the compiler adds a Reshape for 'transpose', which runs on the CPU"
    assert segment.notes == (note,)


def test_what_runs_on_the_npu_depends_on_the_chip(tmp_path) -> None:
    path = saved(models.attention(), tmp_path)
    on_cpu = {
        chip: [node.node for node in compile_segment("rknn", CompileJob(path, chip)).on_cpu]
        for chip in ("rk3588", "rk3566")
    }
    assert on_cpu == {"rk3588": [], "rk3566": ["softmax"]}


def test_a_refused_operator_is_named_in_the_compilers_words_and_kept(tmp_path) -> None:
    job = CompileJob(saved(models.refused(), tmp_path), "rk3588")
    messages = set()
    for _ in range(2):
        with pytest.raises(CompileError, match=r"NonZero\('nz'\) need to be constant") as raised:
            compile_segment("rknn", job)
        messages.add(str(raised.value))
        (node,) = raised.value.refused
        assert (raised.value.cause, node.node, node.operator_type) == ("refused", "nz", "NonZero")
    assert len(messages) == 1


def test_the_check_compiles_and_simulates() -> None:
    check = parapipe.check_compiler("rknn")
    assert check.target == "rk3588"
    assert check.cosine >= 0.99


def test_a_model_is_compiled_by_the_command(tmp_path, capsys) -> None:
    out = tmp_path / "squeezenet.rknn"
    words = ("compilers", "compile", "zoo:squeezenet", "--compiler", "rknn", "--target", "rk3588")
    assert run([*words, "--out", str(out)]) == 0
    text = capsys.readouterr().out
    assert "ConvRelu" in text
    assert f"wrote {out}" in text
    assert run([*words, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert len(document["rows"]) > 20
    assert out.stat().st_size > 1_000_000
