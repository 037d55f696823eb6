"""GoogLeNet as BVLC released it for Caffe, with the layer names of its prototxt.

Source: Szegedy et al., "Going Deeper with Convolutions", 2015, table 1; layer names and pool
sizes from `bvlc_googlenet`. Caffe rounds the sizes of pooled maps up, hence the pads on the lower
and right edge. Dropout does nothing in inference and is left out.
"""

from __future__ import annotations

import onnx

from parapipe.zoo.emitter import IMAGENET_CLASSES, Emitter, same

_CEIL = (0, 0, 1, 1)

# Output channels: 1x1, 3x3 reduce, 3x3, 5x5 reduce, 5x5, pool projection.
_INCEPTIONS = {
    "3a": (64, 96, 128, 16, 32, 32),
    "3b": (128, 128, 192, 32, 96, 64),
    "4a": (192, 96, 208, 16, 48, 64),
    "4b": (160, 112, 224, 24, 64, 64),
    "4c": (128, 128, 256, 24, 64, 64),
    "4d": (112, 144, 288, 32, 64, 64),
    "4e": (256, 160, 320, 32, 128, 128),
    "5a": (256, 160, 320, 32, 128, 128),
    "5b": (384, 192, 384, 48, 128, 128),
}
_POOL_AFTER = {"3b": "pool3/3x3_s2", "4e": "pool4/3x3_s2"}


def build(*, weightless: bool = False) -> onnx.ModelProto:
    """Build GoogLeNet for one image `[1, 3, 224, 224]` and 1000 classes."""
    net = Emitter("googlenet", {"data": (1, 3, 224, 224)}, weightless=weightless)
    x = net.conv("data", "conv1/7x7_s2", 64, 7, stride=2, pads=same(7))
    x = net.relu(x, "conv1/relu_7x7")
    x = net.pool("MaxPool", x, "pool1/3x3_s2", 3, stride=2, pads=_CEIL)
    x = net.lrn(x, "pool1/norm1", size=5, alpha=1e-4, beta=0.75)
    x = _conv_relu(net, x, "conv2/3x3_reduce", 64, 1)
    x = _conv_relu(net, x, "conv2/3x3", 192, 3)
    x = net.lrn(x, "conv2/norm2", size=5, alpha=1e-4, beta=0.75)
    x = net.pool("MaxPool", x, "pool2/3x3_s2", 3, stride=2, pads=_CEIL)
    for name, channels in _INCEPTIONS.items():
        x = _inception(net, x, f"inception_{name}", channels)
        if name in _POOL_AFTER:
            x = net.pool("MaxPool", x, _POOL_AFTER[name], 3, stride=2, pads=_CEIL)
    x = net.pool("AveragePool", x, "pool5/7x7_s1", 7)
    x = net.flatten(x, "pool5/flatten")
    x = net.gemm(x, "loss3/classifier", IMAGENET_CLASSES)
    return net.model([net.softmax(x, "prob")])


def _inception(net: Emitter, x: str, block: str, channels: tuple[int, ...]) -> str:
    one, reduce_three, three, reduce_five, five, projection = channels
    branches = [_conv_relu(net, x, f"{block}/1x1", one, 1)]
    reduced = _conv_relu(net, x, f"{block}/3x3_reduce", reduce_three, 1)
    branches.append(_conv_relu(net, reduced, f"{block}/3x3", three, 3))
    reduced = _conv_relu(net, x, f"{block}/5x5_reduce", reduce_five, 1)
    branches.append(_conv_relu(net, reduced, f"{block}/5x5", five, 5))
    pooled = net.pool("MaxPool", x, f"{block}/pool", 3, pads=same(3))
    branches.append(_conv_relu(net, pooled, f"{block}/pool_proj", projection, 1))
    return net.concat(branches, f"{block}/concat")


def _conv_relu(net: Emitter, x: str, name: str, channels: int, kernel: int) -> str:
    block, _, layer = name.partition("/")
    x = net.conv(x, name, channels, kernel, pads=same(kernel))
    return net.relu(x, f"{block}/relu_{layer}")
