"""ResNet-50, version 1, with the layer names of the measured network.

Source: He et al., "Deep Residual Learning for Image Recognition", 2016, table 1; `resnet_v1.py` of
TensorFlow's slim library, in which the last unit of a block takes the stride, in its 3×3
convolution. The measured network gave some names twice; here each says what it is.
"""

from __future__ import annotations

import onnx

from parapipe.zoo.emitter import Emitter, Shape, same

_CLASSES = 1000

# Inner channels, units, stride of the last unit.
_BLOCKS = ((64, 3, 2), (128, 4, 2), (256, 6, 2), (512, 3, 1))
_WIDENING = 4


def build(*, weightless: bool = False) -> onnx.ModelProto:
    """Build ResNet-50 for one image `[1, 3, 224, 224]` and 1000 classes."""
    net = Emitter("resnet-50", {"input": (1, 3, 224, 224)}, weightless=weightless)
    x = net.pool("AveragePool", backbone(net, "input"), "pool5", 7)
    x = net.conv(x, "logits/convolution", _CLASSES, 1)
    x = net.flatten(x, "predictions/Reshape")
    return net.model([net.softmax(x, "predictions/Softmax")])


def backbone(net: Emitter, images: str) -> str:
    """Add all before the pool and the classifier: `[N, 3, H, W]` to `[N, 2048, H/32, W/32]`."""
    x = _conv_norm(net, images, "conv1", 64, 7, stride=2)
    x = net.relu(x, "conv1/Relu")
    x = net.pool("MaxPool", x, "pool1/MaxPool", 3, stride=2, pads=(0, 0, 1, 1))
    for block, (inner, units, stride) in enumerate(_BLOCKS, start=1):
        for unit in range(1, units + 1):
            name = f"block{block}/unit{unit}/bottleneck_v1"
            x = _bottleneck(net, x, name, inner, stride=stride if unit == units else 1)
    return x


def _bottleneck(net: Emitter, x: str, name: str, inner: int, *, stride: int) -> str:
    y = net.relu(_conv_norm(net, x, f"{name}/conv1", inner, 1), f"{name}/conv1/Relu")
    y = _conv_norm(net, y, f"{name}/conv2", inner, 3, stride=stride)
    y = net.relu(y, f"{name}/conv2/Relu")
    y = _conv_norm(net, y, f"{name}/conv3", _WIDENING * inner, 1)
    shortcut = _shortcut(net, x, f"{name}/shortcut", net.shape(y))
    return net.relu(net.add(shortcut, y, f"{name}/add"), f"{name}/Relu")


def _shortcut(net: Emitter, x: str, name: str, wanted: Shape) -> str:
    if net.shape(x)[1] != wanted[1]:
        return _conv_norm(net, x, name, wanted[1], 1)
    if net.shape(x) != wanted:
        return net.pool("MaxPool", x, f"{name}/MaxPool", 1, stride=2)
    return x


def _conv_norm(
    net: Emitter, x: str, name: str, channels: int, kernel: int, *, stride: int = 1
) -> str:
    x = net.conv(x, f"{name}/convolution", channels, kernel, stride=stride, pads=same(kernel))
    return net.batch_norm(x, f"{name}/BatchNorm")
