"""MobileNet-v2 with width 1.

Source: Sandler et al., "MobileNetV2: Inverted Residuals and Linear Bottlenecks", 2018, table 2.
Strided layers are padded on all edges, as PyTorch's torchvision does.
"""

from __future__ import annotations

import onnx

from parapipe.zoo.emitter import IMAGENET_CLASSES, Emitter, same

# The columns t, c, n, s of the table: expansion, output channels, repetitions, first stride.
_BOTTLENECKS = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)


def build(*, weightless: bool = False) -> onnx.ModelProto:
    """Build MobileNet-v2 for one image `[1, 3, 224, 224]` and 1000 classes."""
    net = Emitter("mobilenet-v2", {"input": (1, 3, 224, 224)}, weightless=weightless)
    x = _conv(net, "input", "conv_first", 32, 3, stride=2)
    x = net.relu6(x, "conv_first/relu6")
    number = 0
    for expansion, channels, repetitions, stride in _BOTTLENECKS:
        for repetition in range(repetitions):
            number += 1
            first = stride if repetition == 0 else 1
            x = _bottleneck(net, x, f"bottleneck_{number}", expansion, channels, stride=first)
    x = net.relu6(_conv(net, x, "conv_last", 1280, 1), "conv_last/relu6")
    x = net.flatten(net.pool("AveragePool", x, "pool", net.shape(x)[2]), "flatten")
    return net.model([net.softmax(net.gemm(x, "classifier", IMAGENET_CLASSES), "softmax")])


def _bottleneck(
    net: Emitter, x: str, name: str, expansion: int, channels: int, *, stride: int
) -> str:
    """Expand, filter each channel, project; add the input where the shapes are equal."""
    read = x
    wide = net.shape(x)[1] * expansion
    if expansion > 1:
        x = net.relu6(_conv(net, x, f"{name}/expand", wide, 1), f"{name}/expand/relu6")
    x = _conv(net, x, f"{name}/depthwise", wide, 3, stride=stride, group=wide)
    x = net.relu6(x, f"{name}/depthwise/relu6")
    x = _conv(net, x, f"{name}/project", channels, 1)
    return net.add(read, x, f"{name}/add") if net.shape(read) == net.shape(x) else x


def _conv(
    net: Emitter, x: str, name: str, channels: int, kernel: int, *, stride: int = 1, group: int = 1
) -> str:
    x = net.conv(x, name, channels, kernel, stride=stride, pads=same(kernel), group=group)
    return net.batch_norm(x, f"{name}/norm")
