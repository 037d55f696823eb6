"""A platform of a float32 CPU and a GPU that has float16 too, and a model of two branches on it."""

from __future__ import annotations

from pathlib import Path

import onnx
from onnx import TensorProto, helper

from parapipe.platform.load import read_platform
from parapipe.platform.platform import Platform
from tests.cases.soc_texts import spoil

ELEMENTS = 4 * 50 * 50
CPU, GPU = 0, 1
NO_HALF = ("float32: 32e9, float16: 64e9", "float32: 32e9"), ("[float32, float16]", "[float32]")
HALF_ONLY = ("float32: 32e9, float16: 64e9", "float16: 64e9"), ("[float32, float16]", "[float16]")
SINGLE_NEG = (
    "deny: [{type: Conv,",
    "deny: [{type: Neg, data_types: [float16], reason: it needs all digits}, {type: Conv,",
)


def soc(*changes: tuple[str, str]) -> Platform:
    """Return the platform, some of its text changed."""
    return read_platform(spoil(*changes), "soc.yaml")


def soc_file(folder: Path, *changes: tuple[str, str]) -> Path:
    """Write the same to a file."""
    path = folder / "soc.yaml"
    path.write_text(spoil(*changes), "utf-8")
    return path


def branches(path: Path) -> str:
    """Write a model: x to Abs, from there Neg and Exp side by side, and their sum."""
    nodes = [
        helper.make_node("Abs", ["x"], ["a"]),
        helper.make_node("Neg", ["a"], ["b"]),
        helper.make_node("Exp", ["b"], ["c"]),
        helper.make_node("Sqrt", ["a"], ["d"]),
        helper.make_node("Add", ["c", "d"], ["y"]),
    ]
    shape = (1, 4, 50, 50)
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n in ("x", "y")]
    graph = helper.make_graph(nodes, "branches", ends[:1], ends[1:])
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=9), path)
    return str(path)
