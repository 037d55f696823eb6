"""Inception-v3 as TensorFlow's slim library has it, with the layer names of the measured network.

Source: Szegedy et al., "Rethinking the Inception Architecture for Computer Vision", 2016;
`inception_v3.py` of slim. The names are those under which ARM Compute Library's example runs it,
slips included: they are what measured times are found by, see profiles/SOURCES.md.
"""

from __future__ import annotations

import onnx

from parapipe.zoo.emitter import Emitter
from parapipe.zoo.slim import CLASSES, STEM, Slim


def _grid35(projection: int, reduce: str, five: str) -> tuple[str, ...]:
    return (
        "Conv2d_0a_1x1 64",
        f"{reduce} 48, {five} 64",
        "Conv2d_0a_1x1 64, Conv2d_0b_3x3 96, Conv2d_0c_3x3 96",
        f"AvgPool_0a_3x3, Conv2d_0b_1x1 {projection}",
    )


def _grid17(inner: int) -> tuple[str, ...]:
    return (
        "Conv2d_0a_1x1 192",
        f"Conv2d_0a_1x1 {inner}, Conv2d_0b_1x7 {inner}, Conv2d_0c_7x1 192",
        (
            f"Conv2d_0a_1x1 {inner}, Conv2d_0b_7x1 {inner}, Conv2d_0c_1x7 {inner}, "
            f"Conv2d_0d_7x1 {inner}, Conv2d_0e_1x7 192"
        ),
        "AvgPool_0a_3x3, Conv2d_0b_1x1 192",
    )


def _grid8(high: str) -> tuple[str, ...]:
    return (
        "Conv2d_0a_1x1 320",
        f"Conv2d_0a_1x1 384, Conv2d_0b_1x3 384 | {high} 384",
        "Conv2d_0a_1x1 448, Conv2d_0b_3x3 384, Conv2d_0c_1x3 384 | Conv2d_0d_3x1 384",
        "AvgPool_0a_3x3, Conv2d_0b_1x1 192",
    )


_BLOCKS: dict[str, tuple[str, ...]] = {
    "Mixed_5b": _grid35(32, "Conv2d_0a_1x1", "Conv2d2d_0b_5x5"),
    "Mixed_5c": _grid35(64, "Conv2d_0b_1x1", "Conv2d_1_0c_5x5"),
    "Mixed_5d": _grid35(64, "Conv2d_0a_1x1", "Conv2d2d_0b_5x5"),
    "Mixed_6a": (
        "Conv2d_1a_1x1 384 3x3 /2",
        "Conv2d_0a_1x1 64, Conv2d_0b_3x3 96, Conv2d_1a_1x1 96 3x3 /2",
        "MaxPool_1a_3x3 /2",
    ),
    "Mixed_6b": _grid17(128),
    "Mixed_6c": _grid17(160),
    "Mixed_6d": _grid17(160),
    "Mixed_6e": _grid17(192),
    "Mixed_7a": (
        "Conv2d_0a_1x1 192, Conv2d_1a_3x3 320 /2",
        "Conv2d_0a_1x1 192, Conv2d_0b_1x7 192, Conv2d_0c_7x1 192, Conv2d_1a_3x3 192 /2",
        "MaxPool_1a_3x3 /2",
    ),
    "Mixed_7b": _grid8("Conv2d_0b_3x1"),
    "Mixed_7c": _grid8("Conv2d_0c_3x1"),
}
_RENAMED = {
    f"Mixed_6{letter}/Branch_1/Conv2d_0c_7x1/Relu": f"Mixed_6{letter}/Branch_0/Conv2d_0c_7x1/Relu"
    for letter in "bcde"
} | {
    f"Mixed_5{letter}/Branch_2/Conv2d_0c_3x3/BatchNorm/batchnorm": (
        f"Mixed_5{letter}/Branch_2/Conv2d_0c_3x3/BatchNorm/batcnorm"
    )
    for letter in "bcd"
}


def build(*, weightless: bool = False) -> onnx.ModelProto:
    """Build Inception-v3 for one image `[1, 3, 299, 299]` and 1001 classes."""
    net = Emitter("inception-v3", {"input": (1, 3, 299, 299)}, weightless=weightless)
    slim = Slim(
        net,
        norm="/BatchNorm/batchnorm",
        max_pool="/MaxPool",
        average_pool="/AvgPool",
        renamed=_RENAMED,
    )
    x = slim.layers("input", STEM)
    for name, branches in _BLOCKS.items():
        x = slim.mixed(x, name, branches)
    x = slim.layer(x, "AvgPool_1a_8x8 valid", "Logits/")
    x = net.conv(x, "Logits/Conv2d_1c_1x1/convolution", CLASSES, 1)
    x = net.flatten(x, "Predictions/Reshape")
    return net.model([net.softmax(x, "Predictions/Softmax")])
