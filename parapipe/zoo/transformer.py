"""Operators on rows of tokens, and attention and feed-forward blocks as exporters write them.

Source: Vaswani et al., "Attention Is All You Need", 2017, section 3. Heads are split off and joined
again by Reshape and Transpose around plain products.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np

from parapipe.zoo.emitter import Emitter, Shape

_NORM_LIMIT = 0.05  # how far a norm's scales lie from 1 and its biases from 0


def project(net: Emitter, equation: str, x: str, name: str, shape: Shape) -> str:
    """Multiply a tensor with weights of a shape, scaled to keep its variance, by Einsum."""
    _, right, result = equation.replace("->", ",").split(",")
    summed = [length for axis, length in zip(right, shape, strict=True) if axis not in result]
    weight = net.weights(f"{name}/weight", shape, sqrt(3 / int(np.prod(summed))))
    return net.operator("Einsum", [x, weight], name, equation=equation)


def product(net: Emitter, x: str, y: str, name: str) -> str:
    """Multiply matrices, one for each index of the axes before the last two."""
    return net.operator("MatMul", [x, y], name)


def linear(net: Emitter, x: str, name: str, features: int) -> str:
    """Multiply rows with weights and add a bias, as two operators `name/product` and `name`."""
    columns = net.shape(x)[-1]
    weight = net.weights(f"{name}/weight", (columns, features), sqrt(3 / columns))
    bias = net.weights(f"{name}/bias", (features,), 0.05)
    rows = product(net, x, weight, f"{name}/product")
    return net.operator("Add", [rows, bias], name)


def layer_norm(net: Emitter, x: str, name: str) -> str:
    """Give each row zero mean and unit variance, then scale and shift its elements."""
    columns = net.shape(x)[-1:]
    scale = net.weights(f"{name}/scale", columns, _NORM_LIMIT, middle=1)
    bias = net.weights(f"{name}/bias", columns, _NORM_LIMIT)
    return net.operator("LayerNormalization", [x, scale, bias], name, axis=-1)


def gelu(net: Emitter, x: str, name: str) -> str:
    """Apply x·(1 + erf(x/√2))/2, in the five operators that exporters write before opset 20."""
    y = with_scalar(net, "Div", x, f"{name}/scaled", sqrt(2))
    y = net.operator("Erf", [y], f"{name}/erf")
    y = with_scalar(net, "Add", y, f"{name}/shifted", 1)
    y = net.operator("Mul", [x, y], f"{name}/product")
    return with_scalar(net, "Mul", y, name, 0.5)


def with_scalar(net: Emitter, operator_type: str, x: str, name: str, value: float) -> str:
    """Apply an operator to each element and a constant."""
    return net.operator(operator_type, [x, net.scalar(f"{name}/constant", value)], name)


def reshape(net: Emitter, x: str, name: str, shape: Shape) -> str:
    """Say a tensor's shape anew."""
    return net.operator("Reshape", [x, net.integers(f"{name}/shape", shape)], name)


def transpose(net: Emitter, x: str, name: str, order: Sequence[int]) -> str:
    """Reorder axes."""
    return net.operator("Transpose", [x], name, perm=list(order))


HEAD_WIDTH = 64
_ROWS = (0, 2, 1, 3)  # one matrix of tokens per head
_COLUMNS = (0, 2, 3, 1)  # the same, transposed


def attention(net: Emitter, x: str, name: str, *, mask: str = "") -> str:
    """Let every token attend to all others; `mask` is added to the scores."""
    batch, tokens, width = net.shape(x)
    split = (batch, tokens, width // HEAD_WIDTH, HEAD_WIDTH)
    query, key, value = (
        transpose(
            net,
            reshape(net, linear(net, x, f"{name}/{part}", width), f"{name}/{part}/split", split),
            f"{name}/{part}/heads",
            order,
        )
        for part, order in (("query", _ROWS), ("key", _COLUMNS), ("value", _ROWS))
    )
    scores = product(net, query, key, f"{name}/scores")
    scores = with_scalar(net, "Div", scores, f"{name}/scaled", sqrt(HEAD_WIDTH))
    if mask:
        scores = net.add(scores, mask, f"{name}/masked")
    mixed = product(net, net.softmax(scores, f"{name}/shares"), value, f"{name}/mixed")
    mixed = transpose(net, mixed, f"{name}/tokens", _ROWS)
    joined = reshape(net, mixed, f"{name}/joined", (batch, tokens, width))
    return linear(net, joined, f"{name}/output", width)


def feed_forward(net: Emitter, x: str, name: str) -> str:
    """Widen each token four times, apply GELU, and narrow it again."""
    width = net.shape(x)[-1]
    inner = gelu(net, linear(net, x, f"{name}/inner", 4 * width), f"{name}/gelu")
    return linear(net, inner, f"{name}/outer", width)


def pre_norm_layer(net: Emitter, x: str, name: str, *, mask: str = "") -> str:
    """Add attention, then a feed-forward block, each computed from normalised tokens."""
    change = attention(net, layer_norm(net, x, f"{name}/norm1"), f"{name}/attention", mask=mask)
    x = net.add(x, change, f"{name}/add1")
    change = feed_forward(net, layer_norm(net, x, f"{name}/norm2"), f"{name}/ffn")
    return net.add(x, change, f"{name}/add2")


def post_norm_layer(net: Emitter, x: str, name: str, *, mask: str = "") -> str:
    """Add attention, then a feed-forward block, and normalise the tokens behind each."""
    change = attention(net, x, f"{name}/attention", mask=mask)
    x = layer_norm(net, net.add(x, change, f"{name}/add1"), f"{name}/norm1")
    change = feed_forward(net, x, f"{name}/ffn")
    return layer_norm(net, net.add(x, change, f"{name}/add2"), f"{name}/norm2")
