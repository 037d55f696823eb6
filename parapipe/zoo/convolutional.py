"""Networks of convolutions in a row or in branches that are joined: AlexNet to U-Net."""

from __future__ import annotations

from math import sqrt

import onnx

from parapipe.zoo.emitter import IMAGENET_CLASSES, Emitter, same_pads


def alexnet(*, weightless: bool = False) -> onnx.ModelProto:
    """AlexNet as BVLC released it for Caffe, with the layer names of its prototxt.

    Source: Krizhevsky et al., "ImageNet Classification with Deep Convolutional Neural Networks",
    2012; `bvlc_alexnet`. The grouped convolutions stand as ARM Compute Library runs them: a Split,
    two convolutions and a Concat.

    For one image `[1, 3, 227, 227]` and 1000 classes.
    """
    net = Emitter("alexnet", {"data": (1, 3, 227, 227)}, weightless=weightless)
    x = net.conv("data", "conv1", 96, 11, stride=4)
    x = _norm_pool(net, net.relu(x, "relu1"), 1)
    x = _norm_pool(net, _grouped_conv(net, x, 2, 256, 5), 2)
    x = net.relu(net.conv(x, "conv3", 384, 3, pads=same_pads(3)), "relu3")
    x = _grouped_conv(net, x, 4, 384, 3)
    x = _grouped_conv(net, x, 5, 256, 3)
    x = net.pool("MaxPool", x, "pool5", 3, stride=2)
    x = net.flatten(x, "fc6/flatten")
    for number in (6, 7):
        x = net.relu(net.gemm(x, f"fc{number}", 4096), f"relu{number}")
    return net.model([net.softmax(net.gemm(x, "fc8", IMAGENET_CLASSES), "prob")])


def _norm_pool(net: Emitter, x: str, number: int) -> str:
    x = net.lrn(x, f"norm{number}", size=5, alpha=1e-4, beta=0.75)
    return net.pool("MaxPool", x, f"pool{number}", 3, stride=2)


def _grouped_conv(net: Emitter, x: str, number: int, channels: int, kernel: int) -> str:
    """Convolve each half of the channels by itself."""
    read = net.shape(x)[1]
    halves = net.split(x, f"conv{number}/split", [read // 2, read // 2], axis=1)
    parts = [
        net.conv(half, f"conv{number}_g{group}", channels // 2, kernel, pads=same_pads(kernel))
        for group, half in enumerate(halves)
    ]
    return net.relu(net.concat(parts, f"conv{number}"), f"relu{number}")


# Channels of the squeeze and of each expand layer, by number of the module.
_FIRES = {
    2: (16, 64), 3: (16, 64), 4: (32, 128), 5: (32, 128),
    6: (48, 192), 7: (48, 192), 8: (64, 256), 9: (64, 256),
}  # fmt: skip
_POOLED_BEHIND = (3, 5)


def squeezenet(*, weightless: bool = False) -> onnx.ModelProto:
    """SqueezeNet 1.1, with the layer names of its prototxt.

    Source: Iandola et al., "SqueezeNet: AlexNet-level accuracy with 50x fewer parameters and <0.5MB
    model size", 2016; version 1.1 of the authors' repository, `SqueezeNet_v1.1`. Caffe rounds the
    sizes of pooled maps up, which pads where a window would stick out.

    For one image `[1, 3, 227, 227]` and 1000 classes.
    """
    net = Emitter("squeezenet", {"data": (1, 3, 227, 227)}, weightless=weightless)
    x = net.relu(net.conv("data", "conv1", 64, 3, stride=2), "relu_conv1")
    x = net.pool("MaxPool", x, "pool1", 3, stride=2)
    for number, (squeeze, expand) in _FIRES.items():
        x = _fire_module(net, x, f"fire{number}", squeeze, expand)
        if number in _POOLED_BEHIND:
            x = _pool(net, x, f"pool{number}")
    x = net.relu(net.conv(x, "conv10", IMAGENET_CLASSES, 1), "relu_conv10")
    x = net.flatten(net.pool("AveragePool", x, "pool10", net.shape(x)[2]), "flatten")
    return net.model([net.softmax(x, "prob")])


def _fire_module(net: Emitter, x: str, name: str, squeeze: int, expand: int) -> str:
    x = net.relu(net.conv(x, f"{name}/squeeze1x1", squeeze, 1), f"{name}/relu_squeeze1x1")
    expanded = [
        net.relu(
            net.conv(x, f"{name}/expand{side}x{side}", expand, side, pads=same_pads(side)),
            f"{name}/relu_expand{side}x{side}",
        )
        for side in (1, 3)
    ]
    return net.concat(expanded, f"{name}/concat")


def _pool(net: Emitter, x: str, name: str) -> str:
    missing = (net.shape(x)[2] - 3) % 2
    return net.pool("MaxPool", x, name, 3, stride=2, pads=(0, 0, missing, missing))


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


def googlenet(*, weightless: bool = False) -> onnx.ModelProto:
    """GoogLeNet as BVLC released it for Caffe, with the layer names of its prototxt.

    Source: Szegedy et al., "Going Deeper with Convolutions", 2015, table 1; layer names and pool
    sizes from `bvlc_googlenet`. Caffe rounds the sizes of pooled maps up, hence the pads on the
    lower and right edge. Dropout does nothing in inference and is left out.

    For one image `[1, 3, 224, 224]` and 1000 classes.
    """
    net = Emitter("googlenet", {"data": (1, 3, 224, 224)}, weightless=weightless)
    x = net.conv("data", "conv1/7x7_s2", 64, 7, stride=2, pads=same_pads(7))
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
    pooled = net.pool("MaxPool", x, f"{block}/pool", 3, pads=same_pads(3))
    branches.append(_conv_relu(net, pooled, f"{block}/pool_proj", projection, 1))
    return net.concat(branches, f"{block}/concat")


def _conv_relu(net: Emitter, x: str, name: str, channels: int, kernel: int) -> str:
    block, _, layer = name.partition("/")
    x = net.conv(x, name, channels, kernel, pads=same_pads(kernel))
    return net.relu(x, f"{block}/relu_{layer}")


_GROWTH = 32
_LAYERS = (6, 12, 24, 16)


def densenet_121(*, weightless: bool = False) -> onnx.ModelProto:
    """DenseNet-121: growth rate 32, bottlenecks, compression by one half.

    Source: Huang et al., "Densely Connected Convolutional Networks", 2017, table 1. Each layer
    reads all before it: batch-norm and ReLU come before the convolutions.

    For one image `[1, 3, 224, 224]` and 1000 classes.
    """
    net = Emitter("densenet-121", {"input": (1, 3, 224, 224)}, weightless=weightless)
    x = net.conv("input", "conv0", 2 * _GROWTH, 7, stride=2, pads=same_pads(7))
    x = _norm_relu(net, x, "conv0")
    x = net.pool("MaxPool", x, "pool0", 3, stride=2, pads=same_pads(3))
    for block, layers in enumerate(_LAYERS, start=1):
        for layer in range(1, layers + 1):
            x = _dense_layer(net, x, f"block{block}/layer{layer}")
        if block < len(_LAYERS):
            x = _transition(net, x, f"transition{block}")
    x = _norm_relu(net, x, "last")
    x = net.flatten(net.pool("AveragePool", x, "pool", net.shape(x)[2]), "flatten")
    return net.model([net.softmax(net.gemm(x, "classifier", IMAGENET_CLASSES), "softmax")])


def _dense_layer(net: Emitter, x: str, name: str) -> str:
    y = _norm_relu(net, x, f"{name}/1")
    y = net.conv(y, f"{name}/conv1x1", 4 * _GROWTH, 1)
    y = _norm_relu(net, y, f"{name}/2")
    y = net.conv(y, f"{name}/conv3x3", _GROWTH, 3, pads=same_pads(3))
    return net.concat([x, y], f"{name}/concat")


def _transition(net: Emitter, x: str, name: str) -> str:
    x = net.conv(_norm_relu(net, x, name), f"{name}/conv1x1", net.shape(x)[1] // 2, 1)
    return net.pool("AveragePool", x, f"{name}/pool", 2, stride=2)


def _norm_relu(net: Emitter, x: str, name: str) -> str:
    return net.relu(net.batch_norm(x, f"{name}/norm"), f"{name}/relu")


_DEPTH = 4
_UNET_CLASSES = 2


def unet(*, weightless: bool = False, size: int = 572, width: int = 64) -> onnx.ModelProto:
    """U-Net as first published: convolutions without padding, cropped copies across.

    Source: Ronneberger et al., "U-Net: Convolutional Networks for Biomedical Image Segmentation",
    2015, figure 1: an image of 572x572 becomes a map of 388x388.

    For one grey image `[1, 1, size, size]`; size is 12 more than a multiple of 16.

    Parameters
    ----------
    width
        Channels that the first convolution makes; they double with each of the four pools.
    """
    net = Emitter("unet", {"image": (1, 1, size, size)}, weightless=weightless)
    x = "image"
    across = []
    for level in range(_DEPTH):
        across.append(_two_convs(net, x, f"down/{level}", width << level))
        x = net.pool("MaxPool", across[-1], f"down/{level}/pool", 2, stride=2)
    x = _two_convs(net, x, "bottom", width << _DEPTH)
    for level in reversed(range(_DEPTH)):
        name = f"up/{level}"
        x = _double_size(net, x, f"{name}/conv_transpose", width << level)
        copy = _crop_centre(net, across[level], f"{name}/crop", net.shape(x)[2])
        x = _two_convs(net, net.concat([copy, x], f"{name}/concat"), name, width << level)
    return net.model([net.conv(x, "classes", _UNET_CLASSES, 1)])


def _two_convs(net: Emitter, x: str, name: str, channels: int) -> str:
    for number in range(2):
        x = net.relu(net.conv(x, f"{name}/conv{number}", channels, 3), f"{name}/relu{number}")
    return x


def _double_size(net: Emitter, x: str, name: str, channels: int) -> str:
    """Double height and width by a transposed 2x2 convolution."""
    inner = net.shape(x)[1]
    weight = net.weights(f"{name}/weight", (inner, channels, 2, 2), sqrt(3 / inner))
    bias = net.weights(f"{name}/bias", (channels,), 0.05)
    return net.operator(
        "ConvTranspose", [x, weight, bias], name, kernel_shape=(2, 2), strides=(2, 2)
    )


def _crop_centre(net: Emitter, x: str, name: str, side: int) -> str:
    """Take a square out of the middle of an image."""
    begin = (net.shape(x)[2] - side) // 2
    starts = net.integers(f"{name}/starts", [begin, begin])
    ends = net.integers(f"{name}/ends", [begin + side, begin + side])
    axes = net.integers(f"{name}/axes", [2, 3])
    return net.operator("Slice", [x, starts, ends, axes], name)
