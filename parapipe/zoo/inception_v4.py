"""Inception-v4 as TensorFlow's slim library has it, with the layer names of the measured network.

Source: Szegedy et al., "Inception-v4, Inception-ResNet and the Impact of Residual Connections on
Learning", 2016, figures 3 to 9; `inception_v4.py` of slim.
"""

from __future__ import annotations

import onnx

from parapipe.zoo.emitter import Emitter
from parapipe.zoo.slim import CLASSES, STEM, Slim

_A: tuple[str, ...] = (
    "Conv2d_0a_1x1 96",
    "Conv2d_0a_1x1 64, Conv2d_0b_3x3 96",
    "Conv2d_0a_1x1 64, Conv2d_0b_3x3 96, Conv2d_0c_3x3 96",
    "AvgPool_0a_3x3, Conv2d_0b_1x1 96",
)
_B: tuple[str, ...] = (
    "Conv2d_0a_1x1 384",
    "Conv2d_0a_1x1 192, Conv2d_0b_1x7 224, Conv2d_0c_7x1 256",
    "Conv2d_0a_1x1 192, Conv2d_0b_7x1 192, Conv2d_0c_1x7 224, Conv2d_0d_7x1 224, Conv2d_0e_1x7 256",
    "AvgPool_0a_3x3, Conv2d_0b_1x1 128",
)
_C: tuple[str, ...] = (
    "Conv2d_0a_1x1 256",
    "Conv2d_0a_1x1 384, Conv2d_0b_1x3 256 | Conv2d_0c_3x1 256",
    (
        "Conv2d_0a_1x1 384, Conv2d_0b_3x1 448, Conv2d_0c_1x3 512, "
        "Conv2d_0d_1x3 256 | Conv2d_0e_3x1 256"
    ),
    "AvgPool_0a_3x3, Conv2d_0b_1x1 256",
)
_BLOCKS: dict[str, tuple[str, ...]] = {
    "Mixed_3a": ("MaxPool_0a_3x3 /2", "Conv2d_0a_3x3 96 /2"),
    "Mixed_4a": (
        "Conv2d_0a_1x1 64, Conv2d_1a_3x3 96 valid",
        "Conv2d_0a_1x1 64, Conv2d_0b_1x7 64, Conv2d_0c_7x1 64, Conv2d_1a_3x3 96 valid",
    ),
    "Mixed_5a": ("Conv2d_1a_3x3 192 /2", "MaxPool_1a_3x3 /2"),
    **{f"Mixed_5{letter}": _A for letter in "bcde"},
    "Mixed_6a": (
        "Conv2d_1a_3x3 384 /2",
        "Conv2d_0a_1x1 192, Conv2d_0b_3x3 224, Conv2d_1a_3x3 256 /2",
        "MaxPool_1a_3x3 /2",
    ),
    **{f"Mixed_6{letter}": _B for letter in "bcdefgh"},
    "Mixed_7a": (
        "Conv2d_0a_1x1 192, Conv2d_1a_3x3 192 /2",
        "Conv2d_0a_1x1 256, Conv2d_0b_1x7 256, Conv2d_0c_7x1 320, Conv2d_1a_3x3 320 /2",
        "MaxPool_1a_3x3 /2",
    ),
    **{f"Mixed_7{letter}": _C for letter in "bcd"},
}


def build(*, weightless: bool = False) -> onnx.ModelProto:
    """Build Inception-v4 for one image `[1, 3, 299, 299]` and 1001 classes."""
    net = Emitter("inception-v4", {"input": (1, 3, 299, 299)}, weightless=weightless)
    slim = Slim(net, convolution="/Conv2D", max_pool="/MaxPool", average_pool="/AvgPool")
    x = slim.layers("input", STEM[:3])
    for name, branches in _BLOCKS.items():
        x = slim.mixed(x, name, branches)
    x = net.pool("AveragePool", x, "Logits/AvgPool_1a/AvgPool", net.shape(x)[2])
    x = net.flatten(x, "Logits/Flatten")
    x = net.gemm(x, "Logits/MatMul", CLASSES)
    return net.model([net.softmax(x, "Logits/Predictions")])
