"""SqueezeNet 1.1, with the layer names of its prototxt.

Source: Iandola et al., "SqueezeNet: AlexNet-level accuracy with 50x fewer parameters and <0.5MB
model size", 2016; version 1.1 of the authors' repository, `SqueezeNet_v1.1`. Caffe rounds the
sizes of pooled maps up, which pads where a window would stick out.
"""

from __future__ import annotations

import onnx

from parapipe.zoo.emitter import IMAGENET_CLASSES, Emitter, same

# Channels of the squeeze and of each expand layer, by number of the module.
_FIRES = {
    2: (16, 64), 3: (16, 64), 4: (32, 128), 5: (32, 128),
    6: (48, 192), 7: (48, 192), 8: (64, 256), 9: (64, 256),
}  # fmt: skip
_POOLED_BEHIND = (3, 5)


def build(*, weightless: bool = False) -> onnx.ModelProto:
    """Build SqueezeNet 1.1 for one image `[1, 3, 227, 227]` and 1000 classes."""
    net = Emitter("squeezenet", {"data": (1, 3, 227, 227)}, weightless=weightless)
    x = net.relu(net.conv("data", "conv1", 64, 3, stride=2), "relu_conv1")
    x = net.pool("MaxPool", x, "pool1", 3, stride=2)
    for number, (squeeze, expand) in _FIRES.items():
        x = _fire(net, x, f"fire{number}", squeeze, expand)
        if number in _POOLED_BEHIND:
            x = _pool(net, x, f"pool{number}")
    x = net.relu(net.conv(x, "conv10", IMAGENET_CLASSES, 1), "relu_conv10")
    x = net.flatten(net.pool("AveragePool", x, "pool10", net.shape(x)[2]), "flatten")
    return net.model([net.softmax(x, "prob")])


def _fire(net: Emitter, x: str, name: str, squeeze: int, expand: int) -> str:
    x = net.relu(net.conv(x, f"{name}/squeeze1x1", squeeze, 1), f"{name}/relu_squeeze1x1")
    expanded = [
        net.relu(
            net.conv(x, f"{name}/expand{side}x{side}", expand, side, pads=same(side)),
            f"{name}/relu_expand{side}x{side}",
        )
        for side in (1, 3)
    ]
    return net.concat(expanded, f"{name}/concat")


def _pool(net: Emitter, x: str, name: str) -> str:
    missing = (net.shape(x)[2] - 3) % 2
    return net.pool("MaxPool", x, name, 3, stride=2, pads=(0, 0, missing, missing))
