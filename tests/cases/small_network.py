"""A small network with all that a unit can be: folded, fused, branched, flattened."""

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.cases.small_models import parsed


def small_network() -> onnx.ModelProto:
    draw = np.random.default_rng(1)
    weights = {
        "w1": (8, 3, 3, 3), "w2": (8, 8, 1, 1), "w3": (8, 8, 3, 3), "w4": (8, 8, 1, 1),
        "fc": (10, 16 * 16 * 16), "scale": (8,), "bias": (8,), "mean": (8,), "var": (8,),
    }  # fmt: skip
    node = helper.make_node
    nodes = [
        node("Conv", ["data", "w1"], ["c1"], name="conv1", kernel_shape=[3, 3], pads=[1] * 4),
        node("BatchNormalization", ["c1", "scale", "bias", "mean", "var"], ["b1"], name="norm"),
        node("Identity", ["b1"], ["i1"], name="nothing"),
        node("Relu", ["i1"], ["r1"], name="relu1"),
        node("Conv", ["r1", "w2"], ["c2"], name="left1", kernel_shape=[1, 1]),
        node("Relu", ["c2"], ["r2"], name="left2"),
        node("Conv", ["r2", "w3"], ["c3"], name="left3", kernel_shape=[3, 3], pads=[1] * 4),
        node("Conv", ["r1", "w4"], ["c4"], name="right1", kernel_shape=[1, 1]),
        node("Relu", ["c4"], ["r4"], name="right2"),
        node("Concat", ["c3", "r4"], ["cat"], name="join", axis=1),
        node("Flatten", ["cat"], ["flat"], name="flatten"),
        node("Gemm", ["flat", "fc"], ["logits"], name="fc", transB=1),
        node("Softmax", ["logits"], ["prob"], name="prob"),
    ]
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("data", TensorProto.FLOAT, (1, 3, 16, 16))],
        [helper.make_tensor_value_info("prob", TensorProto.FLOAT, (1, 10))],
        [
            numpy_helper.from_array(draw.uniform(0.1, 1, shape).astype(np.float32), name)
            for name, shape in weights.items()
        ],
    )
    opset = [helper.make_opsetid("", 14)]
    return helper.make_model(graph, opset_imports=opset, ir_version=8)


def saved(folder: Path, *, external: bool = False) -> Path:
    """Write the network; with its large weights in another file, which is then emptied."""
    path = folder / "small.onnx"
    onnx.save_model(
        small_network(), path, save_as_external_data=external, location="weights.bin",
        size_threshold=16_384,
    )  # fmt: skip
    if external:
        weights = folder / "weights.bin"
        weights.write_bytes(bytes(weights.stat().st_size))
    return path


def two_models(folder: Path) -> dict[str, Path]:
    """Write the small network and two operators, as models that run at the same time."""
    read = folder / "read.onnx"
    text = "agraph (float[1,8] x) => (float[1,8] y) { s = MatMul(x, w) y = Relu(s) }"
    weights = np.random.default_rng(0).random((8, 8), np.float32)
    read.write_bytes(parsed(text, opset=14, w=weights).SerializeToString())
    return {"detect": saved(folder), "read": read}
