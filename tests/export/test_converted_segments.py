"""Segments of plans in float16: their types, weights, casts and results."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import parapipe
from parapipe.errors import ExportError
from tests.cases.precisions import HALF_ONLY, SINGLE_NEG, branches, soc_file

TOLERANCE = 0.01  # of the largest result: float16 has eleven binary digits, and errors add up
PER_LINK = ("to: gpu, latency_s: 1e-3, bandwidth_bytes_per_s: 1e9", "to: gpu, latency_s: 1e-6")


def front_of(model, folder, *changes, precision="float16"):
    platform = soc_file(folder, PER_LINK, *changes)
    return parapipe.map(
        model,
        platform,
        precision=precision,
        objectives="latency-throughput",
        cache=False,
        jobs=1,
        note=lambda _: None,
        interleave="none",
    )


def on_both(front):
    """Return a plan that uses both processors."""
    return next(plan for each in front if len((plan := each.plan()).processors) > 1)


def session(path):
    return onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])


def results(folder, feeds):
    """Run the segments of an exported folder one after the other."""
    document = json.loads((folder / "plan.json").read_bytes())
    known = dict(feeds)
    for segment in document["segments"]:
        path = folder / segment["file"]
        onnx.checker.check_model(path, full_check=True)
        made = session(path).run(segment["outputs"], {n: known[n] for n in segment["inputs"]})
        for name, value in zip(segment["outputs"], made, strict=True):
            assert value.dtype == document["tensors"].get(name, {"dtype": value.dtype})["dtype"]
            known[name] = value
    return [known[each["tensor"]] for each in document["outputs"]]


def check_close(found, expected):
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype
        assert np.abs(one - other).max() <= TOLERANCE * np.abs(other).max()


def weighted(path):
    """Write a model with weights, some beyond float16, a Resize and a product, on two branches."""
    rng = np.random.default_rng(0)
    weights = {
        "w": rng.standard_normal((8, 4, 3, 3)).astype(np.float32) / 6,
        "bound": np.array([-3e38], np.float32),
        "scales": np.array([1, 1, 2, 2], np.float32),
    }
    product = numpy_helper.from_array(rng.standard_normal((16, 16)).astype(np.float32) / 4, "m")
    nodes = [
        helper.make_node("Constant", [], ["m"], value=product),
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Max", ["c", "bound"], ["b"]),
        helper.make_node("Resize", ["b", "", "scales"], ["r"], mode="nearest"),
        helper.make_node("Exp", ["r"], ["e"]),
        helper.make_node("MatMul", ["r", "m"], ["p"]),
        helper.make_node("Add", ["e", "p"], ["y"]),
    ]
    ends = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 4, 8, 8)),
        helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 8, 16, 16)),
    ]
    held = [numpy_helper.from_array(value, name) for name, value in weights.items()]
    graph = helper.make_graph(nodes, "weighted", ends[:1], ends[1:], held)
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=9), path)
    return str(path)


@pytest.mark.parametrize("changes", [(), HALF_ONLY, (SINGLE_NEG,)], ids=["both", "half", "wider"])
@pytest.mark.parametrize("build", [branches, weighted])
def test_segments_in_float16_give_the_models_results_to_within_a_hundredth(
    tmp_path, build, changes
):
    model = build(tmp_path / "model.onnx")
    plan = on_both(front_of(model, tmp_path, *changes))
    parapipe.export_plan(plan, "onnxruntime", tmp_path / "out")
    whole = session(model)
    (end,) = whole.get_inputs()
    feeds = {"x": np.random.default_rng(1).standard_normal(end.shape).astype(np.float32)}
    expected = whole.run(None, feeds)
    check_close(results(tmp_path / "out", feeds), expected)
    check_close(session(tmp_path / "out" / "network.onnx").run(None, feeds), expected)


def test_weights_of_a_float16_processor_are_float16_and_only_scales_stay(tmp_path):
    model = weighted(tmp_path / "model.onnx")
    front = front_of(model, tmp_path, *HALF_ONLY)
    alone = next(
        each for each in front if each.processors[0].name == "gpu" and each.kind == "sequential"
    )
    parapipe.export_plan(alone.plan(), "onnxruntime", tmp_path / "out")
    graph = onnx.load(tmp_path / "out" / "00-gpu.onnx").graph
    types = {held.name: held.data_type for held in graph.initializer}
    assert types.pop("scales") == TensorProto.FLOAT
    assert set(types.values()) == {TensorProto.FLOAT16}
    bound = next(held for held in graph.initializer if held.name.startswith("bound"))
    assert numpy_helper.to_array(bound) == np.finfo(np.float16).min
    assert [value.type.tensor_type.elem_type for value in graph.output] == [TensorProto.FLOAT]


def test_segments_for_compilers_elsewhere_are_in_float16_too(tmp_path):
    model = weighted(tmp_path / "model.onnx")
    plan = on_both(front_of(model, tmp_path, *HALF_ONLY))
    parapipe.export_plan(plan, "segments", tmp_path / "out")
    document = json.loads((tmp_path / "out" / "manifest.json").read_bytes())
    whole = session(model)
    (end,) = whole.get_inputs()
    feeds = {"x": np.random.default_rng(1).standard_normal(end.shape).astype(np.float32)}
    known = dict(feeds)
    types = set()
    for segment in document["segments"]:
        outputs = [value["name"] for value in segment["outputs"]]
        opened = session(tmp_path / "out" / segment["file"])
        made = opened.run(outputs, {v["name"]: known[v["name"]] for v in segment["inputs"]})
        for value, array in zip(segment["outputs"], made, strict=True):
            assert str(array.dtype) == value["dtype"]
            types.add(value["dtype"])
            known[value["name"]] = array
    assert "float16" in types
    check_close([known[each["name"]] for each in document["outputs"]], whole.run(None, feeds))


def test_tensors_are_handed_over_in_the_types_that_the_plan_says(tmp_path):
    plan = on_both(front_of(branches(tmp_path / "model.onnx"), tmp_path, *HALF_ONLY))
    parapipe.export_plan(plan, "onnxruntime", tmp_path / "out")
    document = json.loads((tmp_path / "out" / "plan.json").read_bytes())
    moved = {(t.tensor, t.target) for t in plan.transfers}
    handed = {
        (channel["tensor"].removesuffix(".float16"), channel["processor"]): document["tensors"][
            channel["tensor"]
        ]["dtype"]
        for channel in document["channels"]
        if channel["kind"] in ("stage", "within-stage")
    }
    assert handed == dict.fromkeys(moved, "float16")


def test_a_plan_in_int8_is_written_in_the_models_types_and_the_export_says_so(tmp_path):
    model = weighted(tmp_path / "model.onnx")
    changes = ("float32: 32e9, float16: 64e9", "int8: 128e9"), ("[float32, float16]", "[int8]")
    plan = on_both(front_of(model, tmp_path, *changes, precision="int8"))
    exported = parapipe.export_plan(plan, "onnxruntime", tmp_path / "out")
    assert "for int8, quantise the model (QDQ), map it, and export that plan" in exported.notes[0]
    whole = session(model)
    feeds = {"x": np.ones((1, 4, 8, 8), np.float32)}
    for one, other in zip(results(tmp_path / "out", feeds), whole.run(None, feeds), strict=True):
        assert np.array_equal(one, other)


def test_a_run_of_a_float16_plan_ends_close_to_the_model(tmp_path):
    model = branches(tmp_path / "model.onnx")
    plan = on_both(front_of(model, tmp_path, ("cores: [0, 1]", "cores: [0]")))
    values = np.random.default_rng(2).standard_normal((2, 1, 4, 50, 50)).astype(np.float32)
    np.savez(tmp_path / "frames.npz", x=values)
    kept = tmp_path / "results.npz"
    parapipe.run_plan(plan, input=tmp_path / "frames.npz", keep=kept, warmup=0, saturate=True)
    expected = [session(model).run(None, {"x": frame})[0] for frame in values]
    check_close(list(np.load(kept)["y"]), expected)


@pytest.mark.parametrize("target", ["native", "arm-co-up"])
def test_a_target_of_the_models_types_refuses_a_plan_in_float16(tmp_path, target):
    plan = on_both(front_of(branches(tmp_path / "model.onnx"), tmp_path))
    with pytest.raises(ExportError, match=f"plan is for float16, and the target {target} writes"):
        parapipe.export_plan(plan, target, tmp_path / "out")
    assert not Path(tmp_path / "out").exists()
