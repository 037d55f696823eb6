"""ResNet-50, version 1, with the layer names of the measured network.

Source: He et al., "Deep Residual Learning for Image Recognition", 2016, table 1; `resnet_v1.py` of
TensorFlow's slim library, in which the last unit of a block takes the stride, in its 3×3
convolution. The measured network gave some names twice; here each says what it is. Detection
networks take the paper's own form as their backbone, as its Caffe release has it: the first unit of
a block takes the stride, in its first convolution.
"""

from __future__ import annotations

import onnx

from parapipe.zoo.emitter import IMAGENET_CLASSES, Emitter, Shape, same

# Inner channels, units.
_BLOCKS = ((64, 3), (128, 4), (256, 6), (512, 3))
_WIDENING = 4
_BRANCH_SCALE = 0.25
"""Of the last batch-norm of each unit. At 1, sixteen sums would make activations hundreds of times
as large. Trainings begin at 0: Goyal et al., "Accurate, Large Minibatch SGD", 2017, section 5.1.
"""


def build(*, weightless: bool = False) -> onnx.ModelProto:
    """Build ResNet-50 for one image `[1, 3, 224, 224]` and 1000 classes."""
    net = Emitter("resnet-50", {"input": (1, 3, 224, 224)}, weightless=weightless)
    x = net.pool("AveragePool", backbone(net, "input"), "pool5", 7)
    x = net.conv(x, "logits/convolution", IMAGENET_CLASSES, 1)
    x = net.flatten(x, "predictions/Reshape")
    return net.model([net.softmax(x, "predictions/Softmax")])


def backbone(net: Emitter, images: str, *, stride_first: bool = False) -> str:
    """Add all before the pool and the classifier: `[N, 3, H, W]` to `[N, 2048, H/32, W/32]`.

    Parameters
    ----------
    stride_first
        Whether the first unit of each block but the first takes the stride; otherwise the last
        unit of each block but the last does.
    """
    x = _conv_norm(net, images, "conv1", 64, 7, stride=2)
    x = net.relu(x, "conv1/Relu")
    x = net.pool("MaxPool", x, "pool1/MaxPool", 3, stride=2, pads=(0, 0, 1, 1))
    for block, (inner, units) in enumerate(_BLOCKS, start=1):
        for unit in range(1, units + 1):
            name = f"block{block}/unit{unit}/bottleneck_v1"
            first = 2 if stride_first and block > 1 and unit == 1 else 1
            last = 2 if not stride_first and block < len(_BLOCKS) and unit == units else 1
            x = _bottleneck(net, x, name, inner, strides=(first, last))
    return x


def _bottleneck(net: Emitter, x: str, name: str, inner: int, *, strides: tuple[int, int]) -> str:
    """Add a unit; `strides` are those of its first two convolutions."""
    y = _conv_norm(net, x, f"{name}/conv1", inner, 1, stride=strides[0])
    y = net.relu(y, f"{name}/conv1/Relu")
    y = _conv_norm(net, y, f"{name}/conv2", inner, 3, stride=strides[1])
    y = net.relu(y, f"{name}/conv2/Relu")
    y = _conv_norm(net, y, f"{name}/conv3", _WIDENING * inner, 1, scale=_BRANCH_SCALE)
    shortcut = _shortcut(net, x, f"{name}/shortcut", net.shape(y))
    return net.relu(net.add(shortcut, y, f"{name}/add"), f"{name}/Relu")


def _shortcut(net: Emitter, x: str, name: str, shape: Shape) -> str:
    stride = net.shape(x)[2] // shape[2]
    if net.shape(x)[1] != shape[1]:
        return _conv_norm(net, x, name, shape[1], 1, stride=stride)
    if stride > 1:
        return net.pool("MaxPool", x, f"{name}/MaxPool", 1, stride=stride)
    return x


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
    x = net.conv(x, f"{name}/convolution", channels, kernel, stride=stride, pads=same(kernel))
    return net.batch_norm(x, f"{name}/BatchNorm", scale=scale)
