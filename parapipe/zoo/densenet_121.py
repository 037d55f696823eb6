"""DenseNet-121: growth rate 32, bottlenecks, compression by one half.

Source: Huang et al., "Densely Connected Convolutional Networks", 2017, table 1. Each layer reads
all before it: batch-norm and ReLU come before the convolutions.
"""

from __future__ import annotations

import onnx

from parapipe.zoo.emitter import IMAGENET_CLASSES, Emitter, same

_GROWTH = 32
_LAYERS = (6, 12, 24, 16)


def build(*, weightless: bool = False) -> onnx.ModelProto:
    """Build DenseNet-121 for one image `[1, 3, 224, 224]` and 1000 classes."""
    net = Emitter("densenet-121", {"input": (1, 3, 224, 224)}, weightless=weightless)
    x = net.conv("input", "conv0", 2 * _GROWTH, 7, stride=2, pads=same(7))
    x = _norm_relu(net, x, "conv0")
    x = net.pool("MaxPool", x, "pool0", 3, stride=2, pads=same(3))
    for block, layers in enumerate(_LAYERS, start=1):
        for layer in range(1, layers + 1):
            x = _dense(net, x, f"block{block}/layer{layer}")
        if block < len(_LAYERS):
            x = _transition(net, x, f"transition{block}")
    x = _norm_relu(net, x, "last")
    x = net.flatten(net.pool("AveragePool", x, "pool", net.shape(x)[2]), "flatten")
    return net.model([net.softmax(net.gemm(x, "classifier", IMAGENET_CLASSES), "softmax")])


def _dense(net: Emitter, x: str, name: str) -> str:
    y = _norm_relu(net, x, f"{name}/1")
    y = net.conv(y, f"{name}/conv1x1", 4 * _GROWTH, 1)
    y = _norm_relu(net, y, f"{name}/2")
    y = net.conv(y, f"{name}/conv3x3", _GROWTH, 3, pads=same(3))
    return net.concat([x, y], f"{name}/concat")


def _transition(net: Emitter, x: str, name: str) -> str:
    x = net.conv(_norm_relu(net, x, name), f"{name}/conv1x1", net.shape(x)[1] // 2, 1)
    return net.pool("AveragePool", x, f"{name}/pool", 2, stride=2)


def _norm_relu(net: Emitter, x: str, name: str) -> str:
    return net.relu(net.batch_norm(x, f"{name}/norm"), f"{name}/relu")
