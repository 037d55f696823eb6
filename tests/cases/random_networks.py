"""Random networks of images: layers in a row, with a way around them, or side by side."""

import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.cases.cut_cases import OPSET, floats


def network(rng):
    """A random network of three to seven layers and a Relu."""
    made = _Made(rng)
    first = (made.channels, made.side)
    x = "x"
    for _ in range(rng.randint(3, 7)):
        x = rng.choice(LAYERS)(made, x)
    last = made.add("Relu", [x])
    shape = [1, first[0], first[1], first[1]]
    graph = helper.make_graph(
        made.nodes,
        "network",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [onnx.ValueInfoProto(name=last)],
        made.stored,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
    return onnx.shape_inference.infer_shapes(model, strict_mode=True)


class _Made:
    """What is there so far, and the size of the last result."""

    def __init__(self, rng):
        self.rng, self.nodes, self.stored = rng, [], []
        self.channels, self.side = rng.choice([2, 4, 6]), rng.choice([12, 16, 17])

    def add(self, kind, reads, arrays=(), **said):
        name = f"n{len(self.nodes)}"
        given = [f"{name}_{position}" for position in range(len(arrays))]
        self.stored += map(numpy_helper.from_array, arrays, given)
        self.nodes.append(helper.make_node(kind, [*reads, *given], [name], name, **said))
        return name

    def convolution(self, x, made, size=3):
        weights = floats(self.rng, made, self.channels, size, size)
        return self.add("Conv", [x], [weights], pads=[size // 2] * 4)


def _conv(net, x):
    made = net.rng.choice([2, 4, 6])
    x = net.add("Relu", [net.convolution(x, made)])
    net.channels = made
    return x


def _norm(net, x):
    scales = [floats(net.rng, net.channels) + 2 for _ in range(4)]
    return net.add("BatchNormalization", [x], scales)


def _activation(net, x):
    return net.add(net.rng.choice(["Sigmoid", "Tanh", "HardSwish", "LeakyRelu"]), [x])


def _pool(net, x):
    if net.side < 4:
        return x
    net.side = (net.side + 1) // 2
    return net.add("MaxPool", [x], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)


def _around(net, x):
    return net.add("Add", [net.add("Relu", [net.convolution(x, net.channels)]), x])


def _beside(net, x):
    ways = [net.convolution(x, 2), net.convolution(x, 3, 1), x]
    net.channels += 5
    return net.add("Concat", ways, axis=1)


def _up(net, x):
    if net.side > 9:
        return x
    net.side *= 2
    weights = floats(net.rng, net.channels, net.channels, 2, 2)
    return net.add("ConvTranspose", [x], [weights], strides=[2, 2])


def _fold(net, x):
    if net.side % 2:
        return x
    net.side, net.channels = net.side // 2, 4 * net.channels
    return net.add("SpaceToDepth", [x], blocksize=2)


def _local_response(net, x):
    return net.add("LRN", [x], size=3, alpha=0.1)


LAYERS = (_conv, _norm, _activation, _pool, _around, _beside, _up, _fold, _local_response)
