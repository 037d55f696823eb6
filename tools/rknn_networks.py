"""Networks of Rockchip's published rates, with random weights, cut at their heads as there.

The rates are in `npu_rates.csv` beside the catalogue. Rockchip's model zoo cuts detectors before
boxes are decoded, takes batch-norm into convolutions, and writes YOLOX's Focus as a convolution and
its wide pools as chained ones ("optimize focus/SPPF block", airockchip/YOLOX, airockchip/yolov5).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil

import numpy as np
import onnx

from parapipe.zoo.emitter import IMAGENET_CLASSES, Emitter, same_pads
from parapipe.zoo.registry import build

_ROW = 255
"""Channels of a head of a YOLO: three boxes of 4 numbers, an object and 80 classes."""


class _Yolo:
    """An emitter with the convolutions of a YOLO, each with its activation."""

    def __init__(self, name: str, activation: str, size: int = 640) -> None:
        self.net = Emitter(name, {"images": (1, 3, size, size)})
        self.activation = activation
        self.count = 0

    def name(self, kind: str) -> str:
        self.count += 1
        return f"{self.count}/{kind}"

    def conv(self, x: str, channels: int, kernel: int = 1, stride: int = 1) -> str:
        name = self.name("conv")
        pads = (2, 2, 2, 2) if kernel == 6 else same_pads(kernel)
        x = self.net.conv(x, name, channels, kernel, stride=stride, pads=pads)
        if self.activation == "SiLU":
            gate = self.net.operator("Sigmoid", [x], f"{name}/sigmoid")
            return self.net.operator("Mul", [x, gate], f"{name}/silu")
        if self.activation == "LeakyRelu":
            return self.net.operator("LeakyRelu", [x], f"{name}/leaky", alpha=0.1)
        return self.net.operator(self.activation, [x], f"{name}/activation")

    def concat(self, *parts: str) -> str:
        return self.net.concat(parts, self.name("concat"))

    def pool(self, x: str, kernel: int, stride: int = 1) -> str:
        pads = same_pads(kernel) if stride == 1 else (0, 0, 0, 0)
        return self.net.pool("MaxPool", x, self.name("pool"), kernel, stride=stride, pads=pads)

    def up(self, x: str) -> str:
        return _double(self.net, x, self.name("up"))

    def cross_stage(self, x: str, channels: int, depth: int, *, shortcut: bool = True) -> str:
        """C3 of YOLOv5, the CSP layer of YOLOX."""
        hidden = channels // 2
        y = self.conv(x, hidden)
        for _ in range(depth):
            z = self.conv(self.conv(y, hidden), hidden, 3)
            y = self.net.add(y, z, self.name("add")) if shortcut else z
        return self.conv(self.concat(y, self.conv(x, hidden)), channels)

    def chained_pools(self, x: str) -> tuple[str, str, str]:
        first = self.pool(x, 5)
        second = self.pool(first, 5)
        return first, second, self.pool(second, 5)

    def heads(self, features: Sequence[str]) -> onnx.ModelProto:
        outputs = []
        for x in features:
            y = self.net.conv(x, self.name("head"), _ROW, 1)
            outputs.append(self.net.operator("Sigmoid", [y], f"{y}/sigmoid"))
        return self.net.model(outputs)


def _double(net: Emitter, x: str, name: str) -> str:
    scales = net.constant(f"{name}/scales", np.array([1, 1, 2, 2], np.float32))
    rule = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    return net.operator("Resize", [x, "", scales], name, mode="nearest", **rule)


def yolov5(name: str, depth: float, width: float, activation: str = "SiLU") -> onnx.ModelProto:
    """YOLOv5, release 6: `models/yolov5s.yaml` of ultralytics/yolov5."""
    y = _Yolo(name, activation)

    def c(channels: int) -> int:
        return ceil(channels * width / 8) * 8

    def n(units: int) -> int:
        return max(round(units * depth), 1)

    x = y.conv(y.conv("images", c(64), 6, 2), c(128), 3, 2)
    x = y.conv(y.cross_stage(x, c(128), n(3)), c(256), 3, 2)
    p3 = y.cross_stage(x, c(256), n(6))
    p4 = y.cross_stage(y.conv(p3, c(512), 3, 2), c(512), n(9))
    x = y.cross_stage(y.conv(p4, c(1024), 3, 2), c(1024), n(3))
    x = y.conv(x, c(512))
    x = y.conv(y.concat(x, *y.chained_pools(x)), c(1024))
    return y.heads(_path_aggregation(y, (p3, p4, x), c, n(3)))


def _path_aggregation(
    y: _Yolo, features: Sequence[str], c: Callable[[int], int], depth: int
) -> tuple[str, str, str]:
    """Coarse to fine and back, as in YOLOv5 and YOLOX."""
    p3, p4, p5 = features
    top = y.conv(p5, c(512))
    x = y.cross_stage(y.concat(y.up(top), p4), c(512), depth, shortcut=False)
    side = y.conv(x, c(256))
    fine = y.cross_stage(y.concat(y.up(side), p3), c(256), depth, shortcut=False)
    x = y.concat(y.conv(fine, c(256), 3, 2), side)
    middle = y.cross_stage(x, c(512), depth, shortcut=False)
    x = y.concat(y.conv(middle, c(512), 3, 2), top)
    return fine, middle, y.cross_stage(x, c(1024), depth, shortcut=False)


def yolox(name: str, depth: float, width: float) -> onnx.ModelProto:
    """YOLOX: `yolox/models/darknet.py`, `yolo_pafpn.py`, `yolo_head.py` of the project."""
    y = _Yolo(name, "SiLU")

    def c(channels: int) -> int:
        return int(channels * width)

    def n(units: int) -> int:
        return max(round(units * depth), 1)

    x = y.conv(y.net.conv("images", "focus", 12, 2, stride=2), c(64), 3)
    x = y.cross_stage(y.conv(x, c(128), 3, 2), c(128), n(3))
    p3 = y.cross_stage(y.conv(x, c(256), 3, 2), c(256), n(9))
    p4 = y.cross_stage(y.conv(p3, c(512), 3, 2), c(512), n(9))
    x = y.conv(y.conv(p4, c(1024), 3, 2), c(512))
    x = y.conv(y.concat(x, *y.chained_pools(x)), c(1024))
    p5 = y.cross_stage(x, c(1024), n(3), shortcut=False)
    outputs = [_decoupled_head(y, x, c(256)) for x in _path_aggregation(y, (p3, p4, p5), c, n(3))]
    return y.net.model(outputs)


def _decoupled_head(y: _Yolo, x: str, channels: int) -> str:
    x = y.conv(x, channels)
    classes = y.conv(y.conv(x, channels, 3), channels, 3)
    box = y.conv(y.conv(x, channels, 3), channels, 3)
    parts = [y.net.conv(box, y.name("box"), 4, 1)]
    for source, name, count in ((box, "object", 1), (classes, "classes", 80)):
        z = y.net.conv(source, y.name(name), count, 1)
        parts.append(y.net.operator("Sigmoid", [z], f"{z}/sigmoid"))
    return y.concat(*parts)


def yolov7_tiny() -> onnx.ModelProto:
    """YOLOv7-tiny: `cfg/deploy/yolov7-tiny.yaml` of WongKinYiu/yolov7."""
    y = _Yolo("yolov7-tiny", "LeakyRelu")

    def elan(x: str, hidden: int, channels: int) -> str:
        a, b = y.conv(x, hidden), y.conv(x, hidden)
        c = y.conv(b, hidden, 3)
        return y.conv(y.concat(y.conv(c, hidden, 3), c, b, a), channels)

    x = elan(y.conv(y.conv("images", 32, 3, 2), 64, 3, 2), 32, 64)
    p3 = elan(y.pool(x, 2, 2), 64, 128)
    p4 = elan(y.pool(p3, 2, 2), 128, 256)
    x = elan(y.pool(p4, 2, 2), 256, 512)
    past, z = y.conv(x, 256), y.conv(x, 256)
    z = y.conv(y.concat(*reversed(y.chained_pools(z)), z), 256)
    top = y.conv(y.concat(z, past), 256)
    x = elan(y.concat(y.conv(p4, 128), y.up(y.conv(top, 128))), 64, 128)
    fine = elan(y.concat(y.conv(p3, 64), y.up(y.conv(x, 64))), 32, 64)
    middle = elan(y.concat(y.conv(fine, 128, 3, 2), x), 64, 128)
    coarse = elan(y.concat(y.conv(middle, 256, 3, 2), top), 128, 256)
    pairs = ((fine, 128), (middle, 256), (coarse, 512))
    return y.heads([y.conv(x, channels, 3) for x, channels in pairs])


def yolov7() -> onnx.ModelProto:
    """YOLOv7: `cfg/deploy/yolov7.yaml` of WongKinYiu/yolov7, its RepConv as one convolution."""
    y = _Yolo("yolov7", "SiLU")

    def elan(x: str, hidden: int, inner: int, channels: int, *, every: bool = False) -> str:
        parts = [y.conv(x, hidden), y.conv(x, hidden)]
        for _ in range(4):
            parts.append(y.conv(parts[-1], inner, 3))
        read = parts if every else [parts[0], parts[1], parts[3], parts[5]]
        return y.conv(y.concat(*reversed(read)), channels)

    def halve(x: str, channels: int, *others: str) -> str:
        past = y.conv(y.pool(x, 2, 2), channels)
        return y.concat(y.conv(y.conv(x, channels), channels, 3, 2), past, *others)

    x = y.conv(y.conv(y.conv("images", 32, 3), 64, 3, 2), 64, 3)
    x = elan(y.conv(x, 128, 3, 2), 64, 64, 256)
    p3 = elan(halve(x, 128), 128, 128, 512)
    p4 = elan(halve(p3, 256), 256, 256, 1024)
    x = elan(halve(p4, 512), 256, 256, 1024)
    z = y.conv(y.conv(y.conv(x, 512), 512, 3), 512)
    z = y.conv(y.conv(y.concat(z, *y.chained_pools(z)), 512), 512, 3)
    top = y.conv(y.concat(z, y.conv(x, 512)), 512)
    x = elan(y.concat(y.conv(p4, 256), y.up(y.conv(top, 256))), 256, 128, 256, every=True)
    fine = elan(y.concat(y.conv(p3, 128), y.up(y.conv(x, 128))), 128, 64, 128, every=True)
    middle = elan(halve(fine, 128, x), 256, 128, 256, every=True)
    coarse = elan(halve(middle, 256, top), 512, 256, 512, every=True)
    pairs = ((fine, 256), (middle, 512), (coarse, 1024))
    return y.heads([y.conv(x, channels, 3) for x, channels in pairs])


def resnet50_v2() -> onnx.ModelProto:
    """`resnet50-v2-7.onnx` of ONNX's model zoo: norm and ReLU before each convolution.

    Source: He et al., "Identity Mappings in Deep Residual Networks", 2016, and Gluon's
    `BottleneckV2`.
    """
    net = Emitter("resnet50-v2", {"data": (1, 3, 224, 224)})

    def active(x: str, name: str) -> str:
        return net.relu(net.batch_norm(x, f"{name}/norm"), f"{name}/relu")

    x = net.conv(net.batch_norm("data", "norm"), "conv", 64, 7, stride=2, pads=same_pads(7))
    x = net.pool("MaxPool", active(x, "first"), "pool", 3, stride=2, pads=same_pads(3))
    for block, (inner, units) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3))):
        for unit in range(units):
            name, stride = f"{block}/{unit}", 2 if unit == 0 and block else 1
            y = active(x, f"{name}/in")
            past = net.conv(y, f"{name}/past", 4 * inner, 1, stride=stride) if unit == 0 else x
            y = active(net.conv(y, f"{name}/conv1", inner, 1), f"{name}/mid1")
            y = net.conv(y, f"{name}/conv2", inner, 3, stride=stride, pads=same_pads(3))
            y = net.conv(active(y, f"{name}/mid2"), f"{name}/conv3", 4 * inner, 1)
            x = net.add(y, past, f"{name}/add")
    x = net.operator("GlobalAveragePool", [active(x, "last")], "mean")
    return net.model([net.gemm(net.flatten(x, "flat"), "classes", IMAGENET_CLASSES)])


def retinaface(name: str) -> onnx.ModelProto:
    """RetinaFace at 320 pixels: `models/retinaface.py`, `net.py` of biubug6/Pytorch_Retinaface."""
    net = Emitter(name, {"images": (1, 3, 320, 320)})
    small = name == "retinaface-mobile"
    features = _mobile_quarter(net) if small else _resnet(net)
    channels = 64 if small else 256
    heads: dict[str, list[str]] = {"box": [], "class": [], "landmark": []}
    for number, merged in enumerate(_pyramid(net, features, channels, leaky=small)):
        x = _context(net, merged, f"context{number}", channels, leaky=small)
        for kind, numbers in (("box", 4), ("class", 2), ("landmark", 10)):
            y = net.conv(x, f"{kind}{number}", 2 * numbers, 1)
            y = net.operator("Transpose", [y], f"{y}/transpose", perm=[0, 2, 3, 1])
            shape = net.integers(f"{y}/shape", [1, -1, numbers])
            heads[kind].append(net.operator("Reshape", [y, shape], f"{y}/rows"))
    box, classes, landmark = (net.concat(rows, kind) for kind, rows in heads.items())
    return net.model([box, net.softmax(classes, "classes/softmax"), landmark])


def _activate(net: Emitter, x: str, *, leaky: bool) -> str:
    if leaky:
        return net.operator("LeakyRelu", [x], f"{x}/leaky", alpha=0.1)
    return net.relu(x, f"{x}/relu")


def _mobile_quarter(net: Emitter) -> list[str]:
    x = net.conv("images", "first", 8, 3, stride=2, pads=same_pads(3))
    x = _activate(net, x, leaky=True)
    features = []
    stages = (
        ((16, 1), (32, 2), (32, 1), (64, 2), (64, 1)),
        ((128, 2), *((128, 1),) * 5),
        ((256, 2), (256, 1)),
    )
    for stage, units in enumerate(stages):
        for unit, (channels, stride) in enumerate(units):
            name, read = f"stage{stage}/{unit}", net.shape(x)[1]
            x = net.conv(x, f"{name}/deep", read, 3, stride=stride, pads=same_pads(3), group=read)
            x = net.conv(_activate(net, x, leaky=True), f"{name}/point", channels, 1)
            x = _activate(net, x, leaky=True)
        features.append(x)
    return features


def _resnet(net: Emitter) -> list[str]:
    x = net.relu(net.conv("images", "first", 64, 7, stride=2, pads=same_pads(7)), "first/relu")
    x = net.pool("MaxPool", x, "pool", 3, stride=2, pads=same_pads(3))
    features = []
    for block, (inner, units) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3))):
        for unit in range(units):
            name, stride = f"block{block}/{unit}", 2 if unit == 0 and block else 1
            y = net.relu(net.conv(x, f"{name}/1", inner, 1), f"{name}/1/relu")
            y = net.conv(y, f"{name}/2", inner, 3, stride=stride, pads=same_pads(3))
            y = net.conv(net.relu(y, f"{name}/2/relu"), f"{name}/3", 4 * inner, 1)
            past = net.conv(x, f"{name}/past", 4 * inner, 1, stride=stride) if unit == 0 else x
            x = net.relu(net.add(y, past, f"{name}/add"), f"{name}/relu")
        features.append(x)
    return features[1:]


def _pyramid(net: Emitter, features: Sequence[str], channels: int, *, leaky: bool) -> list[str]:
    sides = [
        _activate(net, net.conv(x, f"side{number}", channels, 1), leaky=leaky)
        for number, x in enumerate(features)
    ]
    merged = [sides[2]]
    for number in (1, 0):
        x = net.add(sides[number], _double(net, merged[0], f"up{number}"), f"sum{number}")
        x = net.conv(x, f"merge{number}", channels, 3, pads=same_pads(3))
        merged.insert(0, _activate(net, x, leaky=leaky))
    return merged


def _context(net: Emitter, x: str, name: str, channels: int, *, leaky: bool) -> str:
    """SSH: kernels of 3, 5 and 7 as chained convolutions of 3."""

    def conv(y: str, part: str, count: int) -> str:
        return net.conv(y, f"{name}/{part}", count, 3, pads=same_pads(3))

    first = _activate(net, conv(x, "5a", channels // 4), leaky=leaky)
    second = _activate(net, conv(first, "7a", channels // 4), leaky=leaky)
    parts = [
        conv(x, "3", channels // 2),
        conv(first, "5b", channels // 4),
        conv(second, "7b", channels // 4),
    ]
    return net.relu(net.concat(parts, f"{name}/concat"), f"{name}/relu")


NETWORKS: dict[str, Callable[[], onnx.ModelProto]] = {
    "mobilenetv2-12": lambda: build("mobilenet-v2"),
    "resnet50-v2-7": resnet50_v2,
    "yolov5s_relu": lambda: yolov5("yolov5s_relu", 1 / 3, 0.5, "Relu"),
    "yolov5n": lambda: yolov5("yolov5n", 1 / 3, 0.25),
    "yolov5s": lambda: yolov5("yolov5s", 1 / 3, 0.5),
    "yolov5m": lambda: yolov5("yolov5m", 2 / 3, 0.75),
    "yolov7-tiny": yolov7_tiny,
    "yolov7": yolov7,
    "yolox_s": lambda: yolox("yolox_s", 1 / 3, 0.5),
    "yolox_m": lambda: yolox("yolox_m", 2 / 3, 0.75),
    "RetinaFace_mobile320": lambda: retinaface("retinaface-mobile"),
    "RetinaFace_resnet50_320": lambda: retinaface("retinaface-resnet50"),
}
"""What builds each, by its name in the table of rates."""
