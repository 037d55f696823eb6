"""Small models for compilers of NPUs, each written into a folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

FLOAT, HALF, INT64, BOOL = (
    TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.INT64, TensorProto.BOOL,
)  # fmt: skip
Values = Sequence[tuple[str, int, Sequence[int | None]]]
IMAGE = (1, 8, 16, 16)
_X, _Y = ("x", FLOAT, IMAGE), ("y", FLOAT, IMAGE)


def weights(name: str, *shape: int, dtype: type = np.float32) -> TensorProto:
    values = np.random.default_rng(len(name) + sum(shape)).standard_normal(shape) * 0.1
    return numpy_helper.from_array(values.astype(dtype), name)


def constant(name: str, value: Any, dtype: type = np.float32) -> TensorProto:
    return numpy_helper.from_array(np.array(value, dtype), name)


def conv(read: str, output: str, name: str = "conv") -> NodeProto:
    return helper.make_node("Conv", [read, "w"], [output], name, pads=[1, 1, 1, 1])


def model(
    nodes: Sequence[NodeProto],
    inputs: Values = (_X,),
    outputs: Values = (_Y,),
    constants: Sequence[TensorProto] = (),
    opset: int = 17,
) -> ModelProto:
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info(*each) for each in inputs],
        [helper.make_tensor_value_info(*each) for each in outputs],
        constants,
    )
    opsets = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8 if opset < 21 else 10)


def left_to_the_cpu() -> ModelProto:
    """A convolution, and two operators that the RK3588's NPU does not have."""
    nodes = [
        conv("x", "a"),
        helper.make_node("LRN", ["a"], ["b"], "lrn", size=5),
        helper.make_node("Erf", ["b"], ["y"], "erf"),
    ]
    return model(nodes, constants=[weights("w", 8, 8, 3, 3)])


def refused() -> ModelProto:
    """A convolution, and an operator whose output has a shape that depends on values."""
    nodes = [conv("x", "a"), helper.make_node("NonZero", ["a"], ["y"], "nz")]
    outputs = [("y", INT64, (4, None))]
    return model(nodes, outputs=outputs, constants=[weights("w", 8, 8, 3, 3)])


def gelu(approximate: str = "none", opset: int = 20) -> ModelProto:
    """A product of matrices of three dimensions with Gelu, which older opsets do not have."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"], "matmul"),
        helper.make_node("Gelu", ["a"], ["y"], "gelu", approximate=approximate),
    ]
    values = [("x", FLOAT, (1, 16, 32))], [("y", FLOAT, (1, 16, 64))]
    return model(nodes, *values, [weights("w", 32, 64)], opset)


def attention() -> ModelProto:
    """A product of matrices and a Softmax, which not every NPU of Rockchip has."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"], "matmul"),
        helper.make_node("Softmax", ["a"], ["y"], "softmax"),
    ]
    values = [("x", FLOAT, (1, 16, 32))], [("y", FLOAT, (1, 16, 64))]
    return model(nodes, *values, [weights("w", 32, 64)])


def constant_queries() -> ModelProto:
    """Attention with learned queries, as in DETR: a rule of rknn-toolkit2 2.5.0 fails on it."""
    nodes = [
        helper.make_node("Transpose", ["k"], ["t"], "transpose", perm=[0, 1, 3, 2]),
        helper.make_node("MatMul", ["q", "t"], ["a"], "scores"),
        helper.make_node("Mul", ["a", "s"], ["b"], "scale"),
        helper.make_node("Softmax", ["b"], ["c"], "softmax", axis=-1),
        helper.make_node("MatMul", ["c", "v"], ["y"], "matmul"),
    ]
    inputs = [(name, FLOAT, (1, 2, 6, 8)) for name in ("k", "v")]
    constants = [weights("q", 1, 2, 4, 8), constant("s", 0.35)]
    return model(nodes, inputs, [("y", FLOAT, (1, 2, 4, 8))], constants)


def two_inputs() -> ModelProto:
    """Two inputs that stand in another order than they are read in, and two outputs."""
    nodes = [
        helper.make_node("Sub", ["second", "first"], ["s"], "sub"),
        conv("s", "y"),
        helper.make_node("GlobalAveragePool", ["y"], ["p"], "pool"),
        helper.make_node("Flatten", ["p"], ["q"], "flatten"),
    ]
    inputs = [("first", FLOAT, IMAGE), ("second", FLOAT, IMAGE)]
    outputs = [("q", FLOAT, (1, 8)), ("y", FLOAT, IMAGE)]
    return model(nodes, inputs, outputs, [weights("w", 8, 8, 3, 3)])


def normalised() -> ModelProto:
    """A LayerNormalization that leaves its epsilon and its axis at their defaults."""
    node = helper.make_node("LayerNormalization", ["x", "scale", "bias"], ["y"], "norm")
    values = [("x", FLOAT, (1, 16, 32))], [("y", FLOAT, (1, 16, 32))]
    return model([node], *values, [weights("scale", 32), weights("bias", 32)])


def quantised() -> ModelProto:
    """A convolution between QuantizeLinear and DequantizeLinear."""
    names = [("QuantizeLinear", "x", "xq", "xs"), ("DequantizeLinear", "xq", "xd", "xs"),
             ("DequantizeLinear", "wq", "w", "ws")]  # fmt: skip
    nodes = [helper.make_node(kind, [i, s, "z"], [o], f"of_{o}") for kind, i, o, s in names]
    nodes += [
        conv("xd", "a"),
        helper.make_node("QuantizeLinear", ["a", "ys", "z"], ["yq"], "of_yq"),
        helper.make_node("DequantizeLinear", ["yq", "ys", "z"], ["y"], "of_y"),
    ]
    scales = [constant("xs", 0.03), constant("ws", 0.002), constant("ys", 0.05)]
    integers = np.random.default_rng(0).integers(-127, 127, (8, 8, 3, 3))
    stored = [numpy_helper.from_array(integers.astype(np.int8), "wq"), constant("z", 0, np.int8)]
    return model(nodes, constants=[*scales, *stored])


def newer(opset: int) -> ModelProto:
    """Operators of which opsets beyond 19 have new versions with more types."""
    nodes = [
        conv("x", "a"),
        helper.make_node("Relu", ["a"], ["b"], "relu"),
        helper.make_node("Reshape", ["b", "sizes"], ["c"], "reshape"),
        helper.make_node("Transpose", ["c"], ["y"], "transpose", perm=[0, 2, 1]),
        helper.make_node("MaxPool", ["b"], ["z"], "pool", kernel_shape=[2, 2], strides=[2, 2]),
    ]
    outputs = [("y", FLOAT, (1, 256, 8)), ("z", FLOAT, (1, 8, 8, 8))]
    sizes = constant("sizes", [1, 8, 256], np.int64)
    return model(nodes, outputs=outputs, constants=[weights("w", 8, 8, 3, 3), sizes], opset=opset)


def compared() -> ModelProto:
    """Outputs of two types, one of them bool, with names as some exporters write them."""
    nodes = [
        helper.make_node("Greater", ["/in/x:0", "zero"], ["file"], "/a/Greater"),
        helper.make_node("Where", ["file", "/in/x:0", "zero"], ["y:0"], "/a/Where"),
    ]
    inputs = [("/in/x:0", FLOAT, IMAGE)]
    return model(nodes, inputs, [("y:0", FLOAT, IMAGE), ("file", BOOL, IMAGE)],
                 [constant("zero", 0.0)])  # fmt: skip


def half() -> ModelProto:
    """A convolution in float16."""
    inputs, outputs = [("x", HALF, IMAGE)], [("y", HALF, IMAGE)]
    return model([conv("x", "y")], inputs, outputs, [weights("w", 8, 8, 3, 3, dtype=np.float16)])


def sine() -> ModelProto:
    """An operator between two others that an Ethos-U does not have."""
    nodes = [
        conv("x", "a"),
        helper.make_node("Sin", ["a"], ["b"], "sin"),
        helper.make_node("Relu", ["b"], ["y"], "relu"),
    ]
    return model(nodes, constants=[weights("w", 8, 8, 3, 3)])


def saved(network: ModelProto, folder: Path, name: str = "segment", **options: Any) -> Path:
    """Write a model; return its path."""
    path = folder / f"{name}.onnx"
    onnx.save(network, path, **options)
    return path


def frame_for(network: ModelProto, seed: int = 0) -> dict[str, Any]:
    """A frame of random inputs."""
    random = np.random.default_rng(seed)
    return {
        each.name: random.standard_normal([d.dim_value for d in each.type.tensor_type.shape.dim])
        .astype(helper.tensor_dtype_to_np_dtype(each.type.tensor_type.elem_type))
        for each in network.graph.input
    }  # fmt: skip


def expected(network: ModelProto, frame: dict[str, Any]) -> dict[str, Any]:
    """Outputs of ONNX Runtime's own kernels by name."""
    session = ort.InferenceSession(network.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_outputs()]
    return dict(zip(names, session.run(names, frame), strict=True))


def cosine(one: Any, other: Any) -> float:
    first, second = one.astype(float).ravel(), other.astype(float).ravel()
    return float(first @ second / np.sqrt((first @ first) * (second @ second)))


MODELS = {
    "left to the CPU": left_to_the_cpu,
    "an operator of opset 20, three dimensions": gelu,
    "two inputs and outputs": two_inputs,
    "attention with constant queries": constant_queries,
    "an epsilon that is not there": normalised,
    "opset 22": lambda: newer(22),
    "outputs of bool, names of other exporters": compared,
    "float16": half,
    "scales of its own": quantised,
}
"""Models that compilers take, by what is special about them."""
