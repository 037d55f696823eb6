"""ViT-B/16: an image as 196 patches and a class token, twelve layers of attention.

Source: Dosovitskiy et al., "An Image is Worth 16x16 Words", 2021, table 1, ViT-Base.
"""

from __future__ import annotations

import onnx

from parapipe.zoo.emitter import IMAGENET_CLASSES, Emitter
from parapipe.zoo.transformer import layer_norm, pre_norm_layer, reshape, transpose

_WIDTH = 768
_PATCH = 16


def build(*, weightless: bool = False, size: int = 224, layers: int = 12) -> onnx.ModelProto:
    """Build it for one image `[1, 3, size, size]` and 1000 classes."""
    net = Emitter("vit-b16", {"image": (1, 3, size, size)}, weightless=weightless)
    patches = (size // _PATCH) ** 2
    x = net.conv("image", "patches", _WIDTH, _PATCH, stride=_PATCH)
    x = reshape(net, x, "patches/rows", (1, _WIDTH, patches))
    x = transpose(net, x, "patches/tokens", (0, 2, 1))
    x = net.concat([net.weights("class_token", (1, 1, _WIDTH), 1), x], "tokens")
    x = net.add(x, net.weights("positions", net.shape(x), 1), "placed")
    for number in range(layers):
        x = pre_norm_layer(net, x, f"encoder/{number}")
    x = layer_norm(net, x, "norm")
    first = net.integers("class_token/index", 0)
    x = net.operator("Gather", [x, first], "class", axis=1)
    return net.model([net.gemm(x, "head", IMAGENET_CLASSES)])
