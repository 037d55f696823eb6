"""YOLOX-s: a backbone, a neck that aggregates paths (PAN), and heads at three strides."""

from __future__ import annotations

import numpy as np
import onnx

from parapipe.zoo.emitter import Emitter, same_pads
from parapipe.zoo.transformer import reshape, transpose

_CLASSES = 80
_HEAD = 128
_SPP_KERNELS = (5, 9, 13)


def yolo_pan(*, weightless: bool = False, size: int = 640) -> onnx.ModelProto:
    """YOLO with PAN neck: YOLOX-s, 80 classes.

    Source: Ge et al., "YOLOX: Exceeding YOLO Series in 2021", 2021, and Megvii-BaseDetection/YOLOX:
    `yolox/models/darknet.py`, `yolo_pafpn.py`, `yolo_head.py`, depth 0.33, width 0.5. SpaceToDepth
    does what its four slices do, in another order of channels; batch-norm is folded. A row of the
    result is a box, whether there is an object, and its classes, as the heads give them.

    For one image `[1, 3, size, size]`, size being a multiple of 32.
    """
    net = Emitter("yolo-pan", {"images": (1, 3, size, size)}, weightless=weightless)
    heads = [
        _head(net, x, f"head/{net.shape(x)[2]}") for x in _neck(net, *_backbone(net, "images"))
    ]
    return net.model([transpose(net, net.concat(heads, "rows", axis=2), "boxes", (0, 2, 1))])


def _conv(
    net: Emitter, x: str, name: str, channels: int, kernel: int = 1, *, stride: int = 1
) -> str:
    """Convolve, and multiply with its own sigmoid (SiLU)."""
    x = net.conv(x, name, channels, kernel, stride=stride, pads=same_pads(kernel))
    gate = net.operator("Sigmoid", [x], f"{name}/sigmoid")
    return net.operator("Mul", [x, gate], f"{name}/silu")


def _backbone(net: Emitter, images: str) -> tuple[str, str, str]:
    """Features at strides 8, 16 and 32."""
    x = net.operator("SpaceToDepth", [images], "focus", blocksize=2)
    x = _conv(net, x, "stem", 32, 3)
    features = []
    for name, channels, depth in (("dark2", 64, 1), ("dark3", 128, 3), ("dark4", 256, 3)):
        x = _conv(net, x, name, channels, 3, stride=2)
        x = _cross_stage(net, x, f"{name}/csp", channels, depth, shortcut=True)
        features.append(x)
    x = _pyramid_pooling(net, _conv(net, x, "dark5", 512, 3, stride=2), "dark5/spp", 512)
    return features[1], features[2], _cross_stage(net, x, "dark5/csp", 512, 1)


def _neck(net: Emitter, fine: str, middle: str, coarse: str) -> tuple[str, str, str]:
    """Path aggregation: from coarse to fine and back again."""
    top = _conv(net, coarse, "neck/lateral", 256)
    x = net.concat([_double_size(net, top, "neck/up1"), middle], "neck/concat1")
    side = _conv(net, _cross_stage(net, x, "neck/p4", 256, 1), "neck/reduce", 128)
    x = net.concat([_double_size(net, side, "neck/up2"), fine], "neck/concat2")
    out_fine = _cross_stage(net, x, "neck/p3", 128, 1)
    x = net.concat([_conv(net, out_fine, "neck/down1", 128, 3, stride=2), side], "neck/concat3")
    out_middle = _cross_stage(net, x, "neck/n3", 256, 1)
    x = net.concat([_conv(net, out_middle, "neck/down2", 256, 3, stride=2), top], "neck/concat4")
    return out_fine, out_middle, _cross_stage(net, x, "neck/n4", 512, 1)


def _cross_stage(
    net: Emitter, x: str, name: str, channels: int, depth: int, *, shortcut: bool = False
) -> str:
    """Send half of the channels through bottlenecks, the other half past them."""
    hidden = channels // 2
    y = _conv(net, x, f"{name}/main", hidden)
    past = _conv(net, x, f"{name}/past", hidden)
    for number in range(depth):
        block = f"{name}/{number}"
        z = _conv(net, _conv(net, y, f"{block}/conv1", hidden), f"{block}/conv2", hidden, 3)
        y = net.add(y, z, f"{block}/add") if shortcut else z
    return _conv(net, net.concat([y, past], f"{name}/concat"), f"{name}/join", channels)


def _pyramid_pooling(net: Emitter, x: str, name: str, channels: int) -> str:
    x = _conv(net, x, f"{name}/reduce", channels // 2)
    pools = [
        net.pool("MaxPool", x, f"{name}/pool{kernel}", kernel, pads=same_pads(kernel))
        for kernel in _SPP_KERNELS
    ]
    return _conv(net, net.concat([x, *pools], f"{name}/concat"), f"{name}/join", channels)


def _double_size(net: Emitter, x: str, name: str) -> str:
    """Double height and width by repeating pixels."""
    scales = net.constant(f"{name}/scales", np.array([1, 1, 2, 2], np.float32))
    return net.operator(
        "Resize",
        [x, "", scales],
        name,
        mode="nearest",
        coordinate_transformation_mode="asymmetric",
        nearest_mode="floor",
    )


def _head(net: Emitter, x: str, name: str) -> str:
    """Columns of 4 numbers of a box, 1 of an object and 80 of classes, one for each pixel."""
    x = _conv(net, x, f"{name}/stem", _HEAD)
    towers = {}
    for tower in ("class", "box"):
        y = x
        for number in range(2):
            y = _conv(net, y, f"{name}/{tower}{number}", _HEAD, 3)
        towers[tower] = y
    box = net.conv(towers["box"], f"{name}/box", 4, 1)
    thing = net.conv(towers["box"], f"{name}/object", 1, 1)
    classes = net.conv(towers["class"], f"{name}/classes", _CLASSES, 1)
    shares = [net.operator("Sigmoid", [y], f"{y}/sigmoid") for y in (thing, classes)]
    columns = net.concat([box, *shares], f"{name}/concat")
    batch, channels, height, width = net.shape(columns)
    return reshape(net, columns, f"{name}/columns", (batch, channels, height * width))
