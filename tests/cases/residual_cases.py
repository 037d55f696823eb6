"""Networks with sums of a convolution and of what went around it."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

CHANNELS, SIDE = 4, 8


def network(*nodes, outputs=("y",), constants=None):
    """A model that reads an image x; `nodes` are (type, inputs, output, attributes).

    A tensor that is called `…_w` is the weights of a convolution of 3 x 3.
    """
    rng = np.random.default_rng(3)
    side = (CHANNELS, CHANNELS, 3, 3)
    read = sorted({name for _, inputs, _, _ in nodes for name in inputs if name.endswith("_w")})
    weights = {name: rng.normal(0, 0.2, side).astype(np.float32) for name in read}
    graph = helper.make_graph(
        [
            helper.make_node(kind, list(inputs), [output], name=output, **attributes)
            for kind, inputs, output, attributes in nodes
        ],
        "residuals",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, CHANNELS, SIDE, SIDE))],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        [numpy_helper.from_array(v, name) for name, v in (weights | (constants or {})).items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def conv(source, name):
    """A convolution that keeps the shape."""
    return ("Conv", (source, f"{name}_w"), name, {"pads": [1] * 4})


def block(source, name):
    """Two convolutions, the sum of the second one and of what both began with, and a Relu."""
    return (
        conv(source, f"{name}a"),
        ("Relu", (f"{name}a",), f"{name}r", {}),
        conv(f"{name}r", f"{name}b"),
        ("Add", (f"{name}b", source), f"{name}s", {}),
        ("Relu", (f"{name}s",), name, {}),
    )


def residual():
    """Three blocks, the last with a convolution on the way around and without a Relu."""
    return network(
        *block("x", "one"), *block("one", "two"), conv("two", "main"), conv("two", "side"),
        ("Add", ("side", "main"), "y", {}),
    )  # fmt: skip
