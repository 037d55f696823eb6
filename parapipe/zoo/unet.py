"""U-Net as first published: convolutions without padding, cropped copies across.

Source: Ronneberger et al., "U-Net: Convolutional Networks for Biomedical Image Segmentation", 2015,
figure 1: an image of 572x572 becomes a map of 388x388.
"""

from __future__ import annotations

from math import sqrt

import onnx

from parapipe.zoo.emitter import Emitter

_DEPTH = 4
_CLASSES = 2


def build(*, weightless: bool = False, size: int = 572, width: int = 64) -> onnx.ModelProto:
    """Build it for one grey image `[1, 1, size, size]`; size is 12 more than a multiple of 16.

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
        x = _enlarged(net, x, f"{name}/conv_transpose", width << level)
        copy = _cropped(net, across[level], f"{name}/crop", net.shape(x)[2])
        x = _two_convs(net, net.concat([copy, x], f"{name}/concat"), name, width << level)
    return net.model([net.conv(x, "classes", _CLASSES, 1)])


def _two_convs(net: Emitter, x: str, name: str, channels: int) -> str:
    for number in range(2):
        x = net.relu(net.conv(x, f"{name}/conv{number}", channels, 3), f"{name}/relu{number}")
    return x


def _enlarged(net: Emitter, x: str, name: str, channels: int) -> str:
    """Double height and width by a transposed 2x2 convolution."""
    inner = net.shape(x)[1]
    weight = net.weights(f"{name}/weight", (inner, channels, 2, 2), sqrt(3 / inner))
    bias = net.weights(f"{name}/bias", (channels,), 0.05)
    return net.operator(
        "ConvTranspose",
        [x, weight, bias],
        name,
        kernel_shape=(2, 2),
        strides=(2, 2),
    )


def _cropped(net: Emitter, x: str, name: str, side: int) -> str:
    """Take a square out of the middle of an image."""
    begin = (net.shape(x)[2] - side) // 2
    starts = net.integers(f"{name}/starts", [begin, begin])
    ends = net.integers(f"{name}/ends", [begin + side, begin + side])
    axes = net.integers(f"{name}/axes", [2, 3])
    return net.operator("Slice", [x, starts, ends, axes], name)
