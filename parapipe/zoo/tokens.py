"""Operators on rows of tokens: matrix products of any rank, norms, changes of shape."""

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
