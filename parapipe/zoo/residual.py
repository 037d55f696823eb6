"""ResNet, and the MobileNets, whose depthwise convolutions stand in blocks like its own."""

from __future__ import annotations

import onnx

from parapipe.zoo.emitter import IMAGENET_CLASSES, Emitter, Pads, Shape, same_pads

# Inner channels, units.
_RESNET_BLOCKS = ((64, 3), (128, 4), (256, 6), (512, 3))
_WIDENING = 4
_BRANCH_SCALE = 0.25
"""Of the last batch-norm of each unit. At 1, sixteen sums would make activations hundreds of times
as large. Trainings begin at 0: Goyal et al., "Accurate, Large Minibatch SGD", 2017, section 5.1.
"""


def resnet_50(*, weightless: bool = False) -> onnx.ModelProto:
    """ResNet-50, version 1, with the layer names of the measured network.

    Source: He et al., "Deep Residual Learning for Image Recognition", 2016, table 1; `resnet_v1.py`
    of TensorFlow's slim library, in which the last unit of a block takes the stride, in its 3×3
    convolution. The measured network gave some names twice; here each says what it is. Detection
    networks take the paper's own form as their backbone, as its Caffe release has it: the first
    unit of a block takes the stride, in its first convolution.

    For one image `[1, 3, 224, 224]` and 1000 classes.
    """
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
    for block, (inner, units) in enumerate(_RESNET_BLOCKS, start=1):
        for unit in range(1, units + 1):
            name = f"block{block}/unit{unit}/bottleneck_v1"
            first = 2 if stride_first and block > 1 and unit == 1 else 1
            last = 2 if not stride_first and block < len(_RESNET_BLOCKS) and unit == units else 1
            x = _resnet_unit(net, x, name, inner, strides=(first, last))
    return x


def _resnet_unit(net: Emitter, x: str, name: str, inner: int, *, strides: tuple[int, int]) -> str:
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
    x = net.conv(x, f"{name}/convolution", channels, kernel, stride=stride, pads=same_pads(kernel))
    return net.batch_norm(x, f"{name}/BatchNorm", scale=scale)


_BEHIND: Pads = (0, 0, 1, 1)

# Stride of the depthwise, and output channels of the pointwise convolution.
_SEPARABLE_BLOCKS = (
    *((1, 64), (2, 128), (1, 128), (2, 256), (1, 256), (2, 512)),
    *((1, 512),) * 5,
    *((2, 1024), (1, 1024)),
)


def mobilenet_v1(*, weightless: bool = False) -> onnx.ModelProto:
    """MobileNet-v1 with width 1, with the layer names of the measured network.

    Source: Howard et al., "MobileNets: Efficient Convolutional Neural Networks for Mobile Vision
    Applications", 2017, table 1; `mobilenet_v1.py` of TensorFlow's slim library, which pads strided
    layers on the lower and right edge alone.

    For one image `[1, 3, 224, 224]` and 1000 classes.
    """
    net = Emitter("mobilenet-v1", {"input": (1, 3, 224, 224)}, weightless=weightless)
    x = net.conv("input", "Conv2d_0", 32, 3, stride=2, pads=_BEHIND)
    x = _norm_relu6(net, x, "Conv2d_0")
    for number, (stride, channels) in enumerate(_SEPARABLE_BLOCKS, start=1):
        x = _separable_block(net, x, f"Conv2d_{number}", stride, channels)
    x = net.pool("AveragePool", x, "Logits/AvgPool_1a", 7)
    x = net.conv(x, "Logits/Conv2d_1c_1x1", IMAGENET_CLASSES, 1)
    return net.model([net.softmax(net.flatten(x, "Reshape"), "Softmax")])


def _separable_block(net: Emitter, x: str, name: str, stride: int, channels: int) -> str:
    read = net.shape(x)[1]
    pads = same_pads(3) if stride == 1 else _BEHIND
    depthwise = f"{name}_depthwise/depthwise"
    x = net.conv(x, depthwise, read, 3, stride=stride, pads=pads, group=read)
    x = _norm_relu6(net, x, f"{name}_depthwise")
    x = net.conv(x, f"{name}_pointwise/Conv2D", channels, 1)
    return _norm_relu6(net, x, f"{name}_pointwise")


def _norm_relu6(net: Emitter, x: str, name: str) -> str:
    return net.relu6(net.batch_norm(x, f"{name}/BatchNorm"), f"{name}/Relu6")


# The columns t, c, n, s of the table: expansion, output channels, repetitions, first stride.
_INVERTED_BOTTLENECKS = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)


def mobilenet_v2(*, weightless: bool = False) -> onnx.ModelProto:
    """MobileNet-v2 with width 1.

    Source: Sandler et al., "MobileNetV2: Inverted Residuals and Linear Bottlenecks", 2018, table 2.
    Strided layers are padded on all edges, as PyTorch's torchvision does.

    For one image `[1, 3, 224, 224]` and 1000 classes.
    """
    net = Emitter("mobilenet-v2", {"input": (1, 3, 224, 224)}, weightless=weightless)
    x = _mobile_conv(net, "input", "conv_first", 32, 3, stride=2)
    x = net.relu6(x, "conv_first/relu6")
    number = 0
    for expansion, channels, repetitions, stride in _INVERTED_BOTTLENECKS:
        for repetition in range(repetitions):
            number += 1
            first = stride if repetition == 0 else 1
            x = _inverted_unit(net, x, f"bottleneck_{number}", expansion, channels, stride=first)
    x = net.relu6(_mobile_conv(net, x, "conv_last", 1280, 1), "conv_last/relu6")
    x = net.flatten(net.pool("AveragePool", x, "pool", net.shape(x)[2]), "flatten")
    return net.model([net.softmax(net.gemm(x, "classifier", IMAGENET_CLASSES), "softmax")])


def _inverted_unit(
    net: Emitter, x: str, name: str, expansion: int, channels: int, *, stride: int
) -> str:
    """Expand, filter each channel, project; add the input where the shapes are equal."""
    read = x
    wide = net.shape(x)[1] * expansion
    if expansion > 1:
        x = net.relu6(_mobile_conv(net, x, f"{name}/expand", wide, 1), f"{name}/expand/relu6")
    x = _mobile_conv(net, x, f"{name}/depthwise", wide, 3, stride=stride, group=wide)
    x = net.relu6(x, f"{name}/depthwise/relu6")
    x = _mobile_conv(net, x, f"{name}/project", channels, 1)
    return net.add(read, x, f"{name}/add") if net.shape(read) == net.shape(x) else x


def _mobile_conv(
    net: Emitter, x: str, name: str, channels: int, kernel: int, *, stride: int = 1, group: int = 1
) -> str:
    x = net.conv(x, name, channels, kernel, stride=stride, pads=same_pads(kernel), group=group)
    return net.batch_norm(x, f"{name}/norm")
