"""AlexNet as BVLC released it for Caffe, with the layer names of its prototxt.

Source: Krizhevsky et al., "ImageNet Classification with Deep Convolutional Neural Networks", 2012;
`bvlc_alexnet`. The grouped convolutions stand as ARM Compute Library runs them: a Split, two
convolutions and a Concat.
"""

from __future__ import annotations

import onnx

from parapipe.zoo.emitter import IMAGENET_CLASSES, Emitter, same


def build(*, weightless: bool = False) -> onnx.ModelProto:
    """Build AlexNet for one image `[1, 3, 227, 227]` and 1000 classes."""
    net = Emitter("alexnet", {"data": (1, 3, 227, 227)}, weightless=weightless)
    x = net.conv("data", "conv1", 96, 11, stride=4)
    x = _norm_pool(net, net.relu(x, "relu1"), 1)
    x = _norm_pool(net, _grouped(net, x, 2, 256, 5), 2)
    x = net.relu(net.conv(x, "conv3", 384, 3, pads=same(3)), "relu3")
    x = _grouped(net, x, 4, 384, 3)
    x = _grouped(net, x, 5, 256, 3)
    x = net.pool("MaxPool", x, "pool5", 3, stride=2)
    x = net.flatten(x, "fc6/flatten")
    for number in (6, 7):
        x = net.relu(net.gemm(x, f"fc{number}", 4096), f"relu{number}")
    return net.model([net.softmax(net.gemm(x, "fc8", IMAGENET_CLASSES), "prob")])


def _norm_pool(net: Emitter, x: str, number: int) -> str:
    x = net.lrn(x, f"norm{number}", size=5, alpha=1e-4, beta=0.75)
    return net.pool("MaxPool", x, f"pool{number}", 3, stride=2)


def _grouped(net: Emitter, x: str, number: int, channels: int, kernel: int) -> str:
    """Convolve each half of the channels by itself."""
    read = net.shape(x)[1]
    halves = net.split(x, f"conv{number}/split", [read // 2, read // 2], axis=1)
    parts = [
        net.conv(half, f"conv{number}_g{group}", channels // 2, kernel, pads=same(kernel))
        for group, half in enumerate(halves)
    ]
    return net.relu(net.concat(parts, f"conv{number}"), f"relu{number}")
