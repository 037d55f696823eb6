"""The Inceptions of TensorFlow's slim library, written down in the words of its sources.

A layer is a line such as `Conv2d_0b_1x7 96`: its name, which ends in its kernel, and its output
channels (none: a pool). `/2` means stride 2, `valid` no padding; a stride has none either. A kernel
that the name does not tell stands by itself. A convolution is followed by batch-norm and ReLU.
A branch is a text of such lines: `, ` stands between layers one after the other, ` | ` between
layers side by side, whose results are joined.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import onnx

from parapipe.zoo.emitter import Emitter, same_pads

CLASSES = 1001  # ImageNet's, and one for the background
STEM = (
    *("Conv2d_1a_3x3 32 /2", "Conv2d_2a_3x3 32 valid", "Conv2d_2b_3x3 64", "MaxPool_3a_3x3 /2"),
    *("Conv2d_3b_1x1 80", "Conv2d_4a_3x3 192 valid", "MaxPool_5a_3x3 /2"),
)
"""The first layers of Inception-v3 and of Inception-ResNet-v2; Inception-v4 has the first three."""


@dataclass(frozen=True, slots=True)
class Slim:
    """Adds layers and blocks to a network.

    Parameters
    ----------
    convolution, norm, max_pool, average_pool
        What stands behind a layer's name in the names of its operators.
    renamed
        Names that depart from the rule.
    """

    net: Emitter
    convolution: str = "/convolution"
    norm: str = "/BatchNorm"
    max_pool: str = ""
    average_pool: str = ""
    renamed: Mapping[str, str] = field(default_factory=dict)

    def layers(self, x: str, lines: Sequence[str], inside: str = "") -> str:
        """Add layers one after the other; return the result."""
        for line in lines:
            x = self.layer(x, line, inside)
        return x

    def layer(self, x: str, line: str, inside: str = "") -> str:
        """Add one layer."""
        short, *words = line.split()
        name = inside + short
        sides = [short.rpartition("_")[2], *(word for word in words if "x" in word)][-1]
        rows, columns = map(int, sides.split("x"))
        kernel, stride = (rows, columns), 2 if "/2" in words else 1
        pads = same_pads(kernel if stride == 1 and "valid" not in words else 1)
        channels = [int(word) for word in words if word.isdecimal()]
        if not channels:
            highest = short.startswith("MaxPool")
            name = self._name(name + (self.max_pool if highest else self.average_pool))
            kind = "MaxPool" if highest else "AveragePool"
            return self.net.pool(kind, x, name, kernel, stride=stride, pads=pads)
        convolution = self._name(name + self.convolution)
        x = self.net.conv(x, convolution, channels[0], kernel, stride=stride, pads=pads)
        x = self.net.batch_norm(x, self._name(name + self.norm))
        return self.net.relu(x, self._name(f"{name}/Relu"))

    def mixed(self, x: str, block: str, branches: Sequence[str]) -> str:
        """Add branches `BLOCK/Branch_0/` and so on, and their join `BLOCK/concat`."""
        ends = [
            self._branch(x, f"{block}/Branch_{number}/", branch)
            for number, branch in enumerate(branches)
        ]
        return self.net.concat(ends, self._name(f"{block}/concat"))

    def _branch(self, x: str, inside: str, branch: str) -> str:
        for step in branch.split(", "):
            ends = [self.layer(x, line, inside) for line in step.split(" | ")]
            x = self.net.concat(ends, self._name(f"{inside}concat")) if ends[1:] else ends[0]
        return x

    def _name(self, name: str) -> str:
        return self.renamed.get(name, name)


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


_V3_BLOCKS: dict[str, tuple[str, ...]] = {
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
_V3_RENAMED = {
    f"Mixed_6{letter}/Branch_1/Conv2d_0c_7x1/Relu": f"Mixed_6{letter}/Branch_0/Conv2d_0c_7x1/Relu"
    for letter in "bcde"
} | {
    f"Mixed_5{letter}/Branch_2/Conv2d_0c_3x3/BatchNorm/batchnorm": (
        f"Mixed_5{letter}/Branch_2/Conv2d_0c_3x3/BatchNorm/batcnorm"
    )
    for letter in "bcd"
}


def inception_v3(*, weightless: bool = False) -> onnx.ModelProto:
    """Inception-v3 as TensorFlow's slim library has it, with the measured network's layer names.

    Source: Szegedy et al., "Rethinking the Inception Architecture for Computer Vision", 2016;
    `inception_v3.py` of slim. The names are those under which ARM Compute Library's example runs
    it, slips included: they are what measured times are found by, see profiles/SOURCES.md.

    For one image `[1, 3, 299, 299]` and 1001 classes.
    """
    net = Emitter("inception-v3", {"input": (1, 3, 299, 299)}, weightless=weightless)
    slim = Slim(
        net,
        norm="/BatchNorm/batchnorm",
        max_pool="/MaxPool",
        average_pool="/AvgPool",
        renamed=_V3_RENAMED,
    )
    x = slim.layers("input", STEM)
    for name, branches in _V3_BLOCKS.items():
        x = slim.mixed(x, name, branches)
    x = slim.layer(x, "AvgPool_1a_8x8 valid", "Logits/")
    x = net.conv(x, "Logits/Conv2d_1c_1x1/convolution", CLASSES, 1)
    x = net.flatten(x, "Predictions/Reshape")
    return net.model([net.softmax(x, "Predictions/Softmax")])


_V4_A: tuple[str, ...] = (
    "Conv2d_0a_1x1 96",
    "Conv2d_0a_1x1 64, Conv2d_0b_3x3 96",
    "Conv2d_0a_1x1 64, Conv2d_0b_3x3 96, Conv2d_0c_3x3 96",
    "AvgPool_0a_3x3, Conv2d_0b_1x1 96",
)
_V4_B: tuple[str, ...] = (
    "Conv2d_0a_1x1 384",
    "Conv2d_0a_1x1 192, Conv2d_0b_1x7 224, Conv2d_0c_7x1 256",
    "Conv2d_0a_1x1 192, Conv2d_0b_7x1 192, Conv2d_0c_1x7 224, Conv2d_0d_7x1 224, Conv2d_0e_1x7 256",
    "AvgPool_0a_3x3, Conv2d_0b_1x1 128",
)
_V4_C: tuple[str, ...] = (
    "Conv2d_0a_1x1 256",
    "Conv2d_0a_1x1 384, Conv2d_0b_1x3 256 | Conv2d_0c_3x1 256",
    (
        "Conv2d_0a_1x1 384, Conv2d_0b_3x1 448, Conv2d_0c_1x3 512, "
        "Conv2d_0d_1x3 256 | Conv2d_0e_3x1 256"
    ),
    "AvgPool_0a_3x3, Conv2d_0b_1x1 256",
)
_V4_BLOCKS: dict[str, tuple[str, ...]] = {
    "Mixed_3a": ("MaxPool_0a_3x3 /2", "Conv2d_0a_3x3 96 /2"),
    "Mixed_4a": (
        "Conv2d_0a_1x1 64, Conv2d_1a_3x3 96 valid",
        "Conv2d_0a_1x1 64, Conv2d_0b_1x7 64, Conv2d_0c_7x1 64, Conv2d_1a_3x3 96 valid",
    ),
    "Mixed_5a": ("Conv2d_1a_3x3 192 /2", "MaxPool_1a_3x3 /2"),
    **{f"Mixed_5{letter}": _V4_A for letter in "bcde"},
    "Mixed_6a": (
        "Conv2d_1a_3x3 384 /2",
        "Conv2d_0a_1x1 192, Conv2d_0b_3x3 224, Conv2d_1a_3x3 256 /2",
        "MaxPool_1a_3x3 /2",
    ),
    **{f"Mixed_6{letter}": _V4_B for letter in "bcdefgh"},
    "Mixed_7a": (
        "Conv2d_0a_1x1 192, Conv2d_1a_3x3 192 /2",
        "Conv2d_0a_1x1 256, Conv2d_0b_1x7 256, Conv2d_0c_7x1 320, Conv2d_1a_3x3 320 /2",
        "MaxPool_1a_3x3 /2",
    ),
    **{f"Mixed_7{letter}": _V4_C for letter in "bcd"},
}


def inception_v4(*, weightless: bool = False) -> onnx.ModelProto:
    """Inception-v4 as TensorFlow's slim library has it, with the measured network's layer names.

    Source: Szegedy et al., "Inception-v4, Inception-ResNet and the Impact of Residual Connections
    on Learning", 2016, figures 3 to 9; `inception_v4.py` of slim.

    For one image `[1, 3, 299, 299]` and 1001 classes.
    """
    net = Emitter("inception-v4", {"input": (1, 3, 299, 299)}, weightless=weightless)
    slim = Slim(net, convolution="/Conv2D", max_pool="/MaxPool", average_pool="/AvgPool")
    x = slim.layers("input", STEM[:3])
    for name, branches in _V4_BLOCKS.items():
        x = slim.mixed(x, name, branches)
    x = net.pool("AveragePool", x, "Logits/AvgPool_1a/AvgPool", net.shape(x)[2])
    x = net.flatten(x, "Logits/Flatten")
    x = net.gemm(x, "Logits/MatMul", CLASSES)
    return net.model([net.softmax(x, "Logits/Predictions")])


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


def inception_resnet_v2(*, weightless: bool = False) -> onnx.ModelProto:
    """Inception-ResNet-v2 of TensorFlow's slim library, with the measured network's layer names.

    Source: Szegedy et al., "Inception-v4, Inception-ResNet and the Impact of Residual Connections
    on Learning", 2016, figures 10 to 13; `inception_resnet_v2.py` of slim, from which the scales of
    the residuals are, too.

    For one image `[1, 3, 299, 299]` and 1001 classes.
    """
    net = Emitter("inception-resnet-v2", {"input": (1, 3, 299, 299)}, weightless=weightless)
    slim = Slim(net, renamed={
        "MaxPool_3a_3x3": "MaxPool_3a_3x3/MaxPool",
        "MaxPool_5a_3x3": "MaxPool_5a_3x3/MaxPool",
        "Mixed_5b/concat": "Mixed_5a/concat",
    })  # fmt: skip
    x = slim.layers("input", STEM)
    x = slim.mixed(x, "Mixed_5b", _MIXED_5B)
    for number in range(1, 11):
        x = _residual_block(slim, x, f"Repeat/block35_{number}", _BLOCK35, 0.17)
    x = slim.mixed(x, "Mixed_6a", _MIXED_6A)
    for number in range(1, 21):
        x = _residual_block(slim, x, f"Repeat_1/block17_{number}", _BLOCK17, 0.1)
    x = slim.mixed(x, "Mixed_7a", _MIXED_7A)
    for number in range(1, 10):
        x = _residual_block(slim, x, f"Repeat_2/block8_{number}", _BLOCK8, 0.2)
    x = net.add(x, _mix_and_project(slim, x, "Block8", _BLOCK8), "Block8/add")
    x = slim.layer(x, "Conv2d_7b_1x1 1536")
    x = slim.layer(x, "AvgPool_1a_8x8 valid", "Logits/")
    x = net.flatten(x, "Logits/Flatten")
    x = net.gemm(x, "Logits/Logits", CLASSES)
    return net.model([net.softmax(x, "Logits/Predictions")])


def _residual_block(slim: Slim, x: str, block: str, branches: tuple[str, ...], scale: float) -> str:
    change = slim.net.scale(_mix_and_project(slim, x, block, branches), f"{block}/mul", scale)
    return slim.net.relu(slim.net.add(x, change, f"{block}/add"), f"{block}/Relu")


def _mix_and_project(slim: Slim, x: str, block: str, branches: tuple[str, ...]) -> str:
    """Add the branches and a convolution to as many channels as `x` has."""
    joined = slim.mixed(x, block, branches)
    return slim.net.conv(joined, f"{block}/Conv2d_1x1/convolution", slim.net.shape(x)[1], 1)
