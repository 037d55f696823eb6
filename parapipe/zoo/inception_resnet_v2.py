"""Inception-ResNet-v2 as TensorFlow's slim library has it, with the measured network's layer names.

Source: Szegedy et al., "Inception-v4, Inception-ResNet and the Impact of Residual Connections on
Learning", 2016, figures 10 to 13; `inception_resnet_v2.py` of slim, from which the scales of the
residuals are, too.
"""

from __future__ import annotations

import onnx

from parapipe.zoo.emitter import Emitter
from parapipe.zoo.slim import CLASSES, STEM, Slim

_MIXED_5B: tuple[str, ...] = (
    "Conv2d_1x1 96",
    "Conv2d_0a_1x1 48, Conv2d_0b_5x5 64",
    "Conv2d_0a_1x1 64, Conv2d_0b_3x3 96, Conv2d_0c_3x3 96",
    "AvgPool_0a_3x3, Conv2d_0b_1x1 64",
)
_MIXED_6A: tuple[str, ...] = (
    "Conv2d_1a_3x3 384 /2",
    "Conv2d_0a_1x1 256, Conv2d_0b_3x3 256, Conv2d_1a_3x3 384 /2",
    "MaxPool_1a_3x3 /2",
)
_MIXED_7A: tuple[str, ...] = (
    "Conv2d_0a_1x1 256, Conv2d_1a_3x3 384 /2",
    "Conv2d_0a_1x1 256, Conv2d_1a_3x3 288 /2",
    "Conv2d_0a_1x1 256, Conv2d_0b_3x3 288, Conv2d_1a_3x3 320 /2",
    "MaxPool_1a_3x3 /2",
)
_BLOCK35: tuple[str, ...] = (
    "Conv2d_1x1 32",
    "Conv2d_0a_1x1 32, Conv2d_0b_3x3 32",
    "Conv2d_0a_1x1 32, Conv2d_0b_3x3 48, Conv2d_0c_3x3 64",
)
_BLOCK17: tuple[str, ...] = (
    "Conv2d_1x1 192",
    "Conv2d_0a_1x1 128, Conv2d_0b_1x7 160, Conv2d_0c_7x1 192",
)
_BLOCK8: tuple[str, ...] = (
    "Conv2d_1x1 192",
    "Conv2d_0a_1x1 192, Conv2d_0b_1x3 224, Conv2d_0c_3x1 256",
)


def build(*, weightless: bool = False) -> onnx.ModelProto:
    """Build Inception-ResNet-v2 for one image `[1, 3, 299, 299]` and 1001 classes."""
    net = Emitter("inception-resnet-v2", {"input": (1, 3, 299, 299)}, weightless=weightless)
    slim = Slim(net, renamed={
        "MaxPool_3a_3x3": "MaxPool_3a_3x3/MaxPool",
        "MaxPool_5a_3x3": "MaxPool_5a_3x3/MaxPool",
        "Mixed_5b/concat": "Mixed_5a/concat",
    })  # fmt: skip
    x = slim.layers("input", STEM)
    x = slim.mixed(x, "Mixed_5b", _MIXED_5B)
    for number in range(1, 11):
        x = _residual(slim, x, f"Repeat/block35_{number}", _BLOCK35, 0.17)
    x = slim.mixed(x, "Mixed_6a", _MIXED_6A)
    for number in range(1, 21):
        x = _residual(slim, x, f"Repeat_1/block17_{number}", _BLOCK17, 0.1)
    x = slim.mixed(x, "Mixed_7a", _MIXED_7A)
    for number in range(1, 10):
        x = _residual(slim, x, f"Repeat_2/block8_{number}", _BLOCK8, 0.2)
    x = net.add(x, _projected(slim, x, "Block8", _BLOCK8), "Block8/add")
    x = slim.layer(x, "Conv2d_7b_1x1 1536")
    x = slim.layer(x, "AvgPool_1a_8x8 valid", "Logits/")
    x = net.flatten(x, "Logits/Flatten")
    x = net.gemm(x, "Logits/Logits", CLASSES)
    return net.model([net.softmax(x, "Logits/Predictions")])


def _residual(slim: Slim, x: str, block: str, branches: tuple[str, ...], scale: float) -> str:
    change = slim.net.scale(_projected(slim, x, block, branches), f"{block}/mul", scale)
    return slim.net.relu(slim.net.add(x, change, f"{block}/add"), f"{block}/Relu")


def _projected(slim: Slim, x: str, block: str, branches: tuple[str, ...]) -> str:
    """Add the branches and a convolution to as many channels as `x` has."""
    joined = slim.mixed(x, block, branches)
    return slim.net.conv(joined, f"{block}/Conv2d_1x1/convolution", slim.net.shape(x)[1], 1)
