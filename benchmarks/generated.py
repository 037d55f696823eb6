"""Models of any size: chains, blocks of branches, layers of a transformer, and one wide fan."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from pathlib import Path

import onnx

from parapipe.zoo.emitter import Emitter, same_pads
from parapipe.zoo.transformer import gpt

CHANNELS = (32, 48, 64)  # of one convolution after the other
BLOCK = 9  # operators of an inception-like block
LAYER = 24  # operators of a transformer's layer


def chain(operators: int) -> onnx.ModelProto:
    """Return convolutions one behind the other."""
    net = Emitter("chain", {"image": (1, 32, 28, 28)}, weightless=True)
    x = "image"
    for i in range(operators):
        kernel = 3 if i % 2 else 1
        x = net.conv(x, f"conv{i}", CHANNELS[i % len(CHANNELS)], kernel, pads=same_pads(kernel))
    return net.model([x])


def inception_like(operators: int) -> onnx.ModelProto:
    """Return blocks of four branches, like those of GoogLeNet, one behind the other."""
    net = Emitter("inception", {"image": (1, 96, 28, 28)}, weightless=True)
    x = "image"
    for i in range(max(1, operators // BLOCK)):
        middle = net.conv(x, f"{i}/3x3/reduce", 48, 1)
        narrow = net.conv(x, f"{i}/5x5/reduce", 16, 1)
        pooled = net.pool("MaxPool", x, f"{i}/pool", 3, pads=same_pads(3))
        ends = [
            net.conv(x, f"{i}/1x1", 32, 1),
            net.conv(middle, f"{i}/3x3", 32, 3, pads=same_pads(3)),
            net.conv(narrow, f"{i}/5x5", 16, 5, pads=same_pads(5)),
            net.conv(pooled, f"{i}/projection", 16, 1),
        ]
        x = net.concat(ends, f"{i}/concat")
    return net.model([x])


def transformer_like(operators: int) -> onnx.ModelProto:
    """Return layers of a decoder, one behind the other."""
    return gpt(max(1, operators // LAYER), weightless=True)


def fan(branches: int) -> onnx.ModelProto:
    """Return branches of two convolutions, all side by side."""
    net = Emitter("fan", {"image": (1, 32, 28, 28)}, weightless=True)
    x, ends = net.conv("image", "stem", 32, 3, pads=same_pads(3)), []
    for i in range(branches):
        kernel = 3 if i % 2 else 1
        inner = net.conv(x, f"{i}/a", CHANNELS[i % len(CHANNELS)], 1)
        ends.append(net.conv(inner, f"{i}/b", 4 + i % 5, kernel, pads=same_pads(kernel)))
    return net.model([net.concat(ends, "concat")])


FAMILIES: dict[str, Callable[[int], onnx.ModelProto]] = {
    "chain": chain,
    "inception-like": inception_like,
    "transformer-like": transformer_like,
}


def write(model: onnx.ModelProto, path: Path) -> None:
    """Write a model as exporters write large ones: an operator a node, weights in a file beside it.

    The results of ConstantOfShape become weights in that file, where all begin at the first byte:
    so it is as large as the largest of them.
    """
    weights = path.with_suffix(".weights")
    graph, numbers = model.graph, onnx.numpy_helper
    shapes = {each.name: each for each in graph.initializer}
    made = [node for node in graph.node if node.op_type == "ConstantOfShape"]
    kept = [node for node in graph.node if node.op_type != "ConstantOfShape"]
    read = {name for node in kept for name in node.input}
    initializers = [each for each in graph.initializer if each.name in read]
    largest = 0
    for node in made:
        dims = numbers.to_array(shapes[node.input[0]]).tolist()
        outside = onnx.TensorProto(name=node.output[0], data_type=onnx.TensorProto.FLOAT, dims=dims)
        outside.data_location = onnx.TensorProto.EXTERNAL
        outside.external_data.add(key="location", value=weights.name)
        largest = max(largest, 4 * prod(dims))
        initializers.append(outside)
    for field, new in ((graph.node, kept), (graph.initializer, initializers)):
        del field[:]
        field.extend(new)
    path.write_bytes(model.SerializeToString())
    weights.write_bytes(bytes(largest))
