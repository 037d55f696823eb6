"""MobileNet-v1 with width 1, with the layer names of the measured network.

Source: Howard et al., "MobileNets: Efficient Convolutional Neural Networks for Mobile Vision
Applications", 2017, table 1; `mobilenet_v1.py` of TensorFlow's slim library, which pads strided
layers on the lower and right edge alone.
"""

from __future__ import annotations

import onnx

from parapipe.zoo.emitter import IMAGENET_CLASSES, Emitter, Pads, same

_BEHIND: Pads = (0, 0, 1, 1)

# Stride of the depthwise, and output channels of the pointwise convolution.
_BLOCKS = (
    *((1, 64), (2, 128), (1, 128), (2, 256), (1, 256), (2, 512)),
    *((1, 512),) * 5,
    *((2, 1024), (1, 1024)),
)


def build(*, weightless: bool = False) -> onnx.ModelProto:
    """Build MobileNet-v1 for one image `[1, 3, 224, 224]` and 1000 classes."""
    net = Emitter("mobilenet-v1", {"input": (1, 3, 224, 224)}, weightless=weightless)
    x = net.conv("input", "Conv2d_0", 32, 3, stride=2, pads=_BEHIND)
    x = _activated(net, x, "Conv2d_0")
    for number, (stride, channels) in enumerate(_BLOCKS, start=1):
        x = _block(net, x, f"Conv2d_{number}", stride, channels)
    x = net.pool("AveragePool", x, "Logits/AvgPool_1a", 7)
    x = net.conv(x, "Logits/Conv2d_1c_1x1", IMAGENET_CLASSES, 1)
    return net.model([net.softmax(net.flatten(x, "Reshape"), "Softmax")])


def _block(net: Emitter, x: str, name: str, stride: int, channels: int) -> str:
    read = net.shape(x)[1]
    pads = same(3) if stride == 1 else _BEHIND
    depthwise = f"{name}_depthwise/depthwise"
    x = net.conv(x, depthwise, read, 3, stride=stride, pads=pads, group=read)
    x = _activated(net, x, f"{name}_depthwise")
    x = net.conv(x, f"{name}_pointwise/Conv2D", channels, 1)
    return _activated(net, x, f"{name}_pointwise")


def _activated(net: Emitter, x: str, name: str) -> str:
    return net.relu6(net.batch_norm(x, f"{name}/BatchNorm"), f"{name}/Relu6")
