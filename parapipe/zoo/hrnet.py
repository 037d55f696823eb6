"""HRNet: branches of several resolutions side by side, which exchange what they find.

Source: Wang et al., "Deep High-Resolution Representation Learning for Visual Recognition", 2020.
"""

from __future__ import annotations

import numpy as np
import onnx

from parapipe.zoo.emitter import IMAGENET_CLASSES, Emitter, same_pads

_STEM, _INNER, _WIDENING, _UNITS = 64, 64, 4, 4
_WIDTH = 18  # channels of the highest resolution; each lower one has twice as many
_MODULES = {2: 1, 3: 4, 4: 3}  # of a stage, by its branches
_HEAD = (32, 64, 128, 256)  # inner channels of the classifier's bottlenecks
_LAST = 2048
_BRANCH_SCALE = 0.25  # of the last batch-norm of a unit: sums of many units stay small
_SHARE_SCALE = 0.5  # of what another resolution adds


def hrnet_w18(*, weightless: bool = False) -> onnx.ModelProto:
    """HRNet-W18 for classification: four resolutions side by side, 18 to 144 channels.

    Source: Wang et al., "Deep High-Resolution Representation Learning for Visual Recognition",
    2020, section 3 and, for the classifier, appendix: "HRNet-W18-C" of its code.

    For one image `[1, 3, 224, 224]` and 1000 classes.
    """
    net = Emitter("hrnet-w18", {"input": (1, 3, 224, 224)}, weightless=weightless)
    x = _conv_relu(net, "input", "stem/conv1", _STEM, 3, stride=2)
    x = _conv_relu(net, x, "stem/conv2", _STEM, 3, stride=2)
    for unit in range(_UNITS):
        x = _bottleneck(net, x, f"stage1/unit{unit}", _INNER)
    branches = [x]
    for count, modules in _MODULES.items():
        branches = _transition(net, branches, f"transition{count - 1}", count)
        for module in range(modules):
            branches = _module(net, branches, f"stage{count}/module{module}")
    x = _head(net, branches)
    x = net.flatten(net.operator("GlobalAveragePool", [x], "head/pool"), "head/flatten")
    return net.model([net.softmax(net.gemm(x, "head/classifier", IMAGENET_CLASSES), "softmax")])


def _transition(net: Emitter, branches: list[str], name: str, count: int) -> list[str]:
    """Give each branch its channels, and add one of half the resolution."""
    if len(branches) == 1:
        return [
            _conv_relu(net, branches[0], f"{name}/0", _WIDTH, 3),
            _conv_relu(net, branches[0], f"{name}/1", 2 * _WIDTH, 3, stride=2),
        ]
    channels = _WIDTH << (count - 1)
    lowest = _conv_relu(net, branches[-1], f"{name}/{count - 1}", channels, 3, stride=2)
    return [*branches, lowest]


def _module(net: Emitter, branches: list[str], name: str) -> list[str]:
    """Run four units on each branch, then give each branch the sum of all, in its resolution."""
    ends = [*branches]
    for unit in range(_UNITS):
        ends = [_basic(net, x, f"{name}/branch{b}/unit{unit}") for b, x in enumerate(ends)]
    return [_fused(net, ends, f"{name}/fuse{number}", number) for number in range(len(ends))]


def _fused(net: Emitter, ends: list[str], name: str, to: int) -> str:
    total = ""
    for number, x in enumerate(ends):
        share = _resized(net, x, f"{name}/from{number}", number, to)
        total = net.add(total, share, f"{name}/add{number}") if total else share
    return net.relu(total, f"{name}/relu")


def _resized(net: Emitter, x: str, name: str, source: int, to: int) -> str:
    """Bring a branch to another's resolution and channels."""
    channels = _WIDTH << to
    if source > to:
        x = _conv_norm(net, x, f"{name}/conv", channels, 1, scale=_SHARE_SCALE)
        factor = 1 << (source - to)
        scales = net.constant(f"{name}/scales", np.array([1, 1, factor, factor], np.float32))
        return net.operator(
            "Resize", [x, "", scales], f"{name}/resize", mode="nearest",
            coordinate_transformation_mode="asymmetric", nearest_mode="floor",
        )  # fmt: skip
    for step in range(source + 1, to):
        x = _conv_relu(net, x, f"{name}/conv{step}", _WIDTH << source, 3, stride=2)
    if source < to:
        x = _conv_norm(net, x, f"{name}/conv{to}", channels, 3, stride=2, scale=_SHARE_SCALE)
    return x


def _head(net: Emitter, branches: list[str]) -> str:
    """Widen each branch, add them from the highest resolution down, and widen the lowest."""
    wide = [
        _bottleneck(net, x, f"head/widen{number}", inner)
        for number, (x, inner) in enumerate(zip(branches, _HEAD, strict=True))
    ]
    x = wide[0]
    for number, each in enumerate(wide[1:], start=1):
        channels = net.shape(each)[1]
        x = _conv_relu(net, x, f"head/down{number}", channels, 3, stride=2)
        x = net.add(each, x, f"head/add{number}")
    return _conv_relu(net, x, "head/last", _LAST, 1)


def _basic(net: Emitter, x: str, name: str) -> str:
    """Two 3×3 convolutions beside a copy of the input."""
    channels = net.shape(x)[1]
    y = _conv_relu(net, x, f"{name}/conv1", channels, 3)
    y = _conv_norm(net, y, f"{name}/conv2", channels, 3, scale=_BRANCH_SCALE)
    return net.relu(net.add(y, x, f"{name}/add"), f"{name}/relu")


def _bottleneck(net: Emitter, x: str, name: str, inner: int) -> str:
    """Narrow, filter and widen, beside the input, projected where it has other channels."""
    channels = _WIDENING * inner
    y = _conv_relu(net, x, f"{name}/conv1", inner, 1)
    y = _conv_relu(net, y, f"{name}/conv2", inner, 3)
    y = _conv_norm(net, y, f"{name}/conv3", channels, 1, scale=_BRANCH_SCALE)
    if net.shape(x)[1] != channels:
        x = _conv_norm(net, x, f"{name}/shortcut", channels, 1)
    return net.relu(net.add(y, x, f"{name}/add"), f"{name}/relu")


def _conv_relu(
    net: Emitter, x: str, name: str, channels: int, kernel: int, *, stride: int = 1
) -> str:
    return net.relu(_conv_norm(net, x, name, channels, kernel, stride=stride), f"{name}/relu")


def _conv_norm(
    net: Emitter,
    x: str,
    name: str,
    channels: int,
    kernel: int,
    *,
    stride: int = 1,
    scale: float = 1,
) -> str:
    x = net.conv(x, name, channels, kernel, stride=stride, pads=same_pads(kernel))
    return net.batch_norm(x, f"{name}/norm", scale=scale)
