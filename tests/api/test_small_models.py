"""Models that are easily overlooked: what no output needs, and what takes no time."""

from __future__ import annotations

import re
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

import parapipe
from parapipe.errors import MappingError


def write(path, nodes, shape=(1, 4)):
    """Write a model from x to y, both of one shape."""
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n in ("x", "y")]
    graph = helper.make_graph(nodes, "small", ends[:1], ends[1:])
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=9), path)
    return str(path)


def test_an_operator_that_only_a_removed_one_read_is_left_out(tmp_path):
    # CastLike changes nothing here, so Sigmoid has nobody left to read it.
    nodes = [
        helper.make_node("Relu", ["x"], ["a"]),
        helper.make_node("Sigmoid", ["x"], ["b"]),
        helper.make_node("CastLike", ["a", "b"], ["c"]),
        helper.make_node("Neg", ["c"], ["y"]),
    ]
    found = parapipe.inspect(write(tmp_path / "dead.onnx", nodes))
    assert found.operator_types == {"Relu": 1, "Neg": 1}


def test_a_model_that_takes_no_time_is_refused_in_a_line(tmp_path):
    model = write(tmp_path / "same.onnx", [helper.make_node("Identity", ["x"], ["y"])])
    with pytest.raises(MappingError, match="has no operator that takes time"):
        parapipe.map(model, "amlogic-a311d")


def test_a_model_that_would_take_days_is_refused_in_a_line(tmp_path):
    nodes = [helper.make_node("Relu", ["x"], ["y"])]
    model = write(tmp_path / "vast.onnx", nodes, shape=(99999999, 3, 999999, 999999))
    with pytest.raises(MappingError, match=r"would take up to \S+ s for a frame: check the sizes"):
        parapipe.map(model, "amlogic-a311d")


def test_a_platform_that_draws_no_power_is_refused_in_a_line(tmp_path):
    shipped = Path(__file__).parents[2] / "platforms" / "bst-a1000.yaml"
    power = r"(alpha_w_per_v2_hz|beta_w_per_v): \S+"
    platform = tmp_path / "soc.yaml"
    platform.write_text(re.sub(power, r"\1: 0", shipped.read_text(encoding="utf-8")), "utf-8")
    model = write(tmp_path / "relu.onnx", [helper.make_node("Relu", ["x"], ["y"])])
    with pytest.raises(MappingError, match=r"would take no energy on dsp0, dsp1, npu: "):
        parapipe.map(model, platform, cache=False, jobs=1, note=lambda _: None)
