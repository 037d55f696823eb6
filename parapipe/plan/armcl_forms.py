"""The operators of an exported folder: what each reads, and which attributes it has.

Each is one function of ARM Compute Library. Attributes are complete: nothing is left to a default.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["integer", "number", "integers", "text"]


@dataclass(frozen=True, slots=True)
class Form:
    """What an operator of one type looks like.

    Parameters
    ----------
    activations
        Least and greatest number of inputs that are activations, or may be.
    constants
        Least and greatest number of constants that follow them.
    attributes
        Kind of each attribute, by name.
    """

    activations: tuple[int, int] = (1, 1)
    constants: tuple[int, int] = (0, 0)
    attributes: Mapping[str, Kind] = field(default_factory=dict)


_WINDOW: Mapping[str, Kind] = {"strides": "integers", "pads": "integers"}
_POOL: Mapping[str, Kind] = {"kernel_shape": "integers", **_WINDOW, "ceil_mode": "integer"}
_PLAIN = Form()
_BINARY = Form(activations=(2, 2))
_MANY = 1 << 30

ACTIVATIONS: Mapping[str, Form] = {
    **dict.fromkeys(
        ("Relu", "Sigmoid", "Tanh", "HardSwish", "Softplus", "Abs", "Sqrt"),
        _PLAIN,
    ),
    **dict.fromkeys(("LeakyRelu", "Elu"), Form(attributes={"alpha": "number"})),
    "Clip": Form(attributes={"min": "number", "max": "number"}),
}
"""Those that may also be applied to another operator's output."""

FORMS: Mapping[str, Form] = {
    "Conv": Form(
        constants=(1, 2), attributes={**_WINDOW, "dilations": "integers", "group": "integer"}
    ),
    "ConvTranspose": Form(constants=(1, 2), attributes=_WINDOW),
    "MaxPool": Form(attributes=_POOL),
    "AveragePool": Form(attributes={**_POOL, "count_include_pad": "integer"}),
    **dict.fromkeys(("GlobalAveragePool", "GlobalMaxPool"), _PLAIN),
    "Gemm": Form(constants=(1, 2), attributes={"transB": "integer"}),
    "MatMul": Form(constants=(1, 1)),
    **dict.fromkeys(("Add", "Sub", "Mul", "Div", "Max", "Min"), _BINARY),
    "Concat": Form(activations=(1, _MANY), attributes={"axis": "integer"}),
    "BatchNormalization": Form(constants=(4, 4), attributes={"epsilon": "number"}),
    "LRN": Form(
        attributes={"size": "integer", "alpha": "number", "beta": "number", "bias": "number"}
    ),
    **dict.fromkeys(("Softmax", "LogSoftmax"), _PLAIN),
    "PRelu": Form(constants=(1, 1)),
    "ReduceMean": Form(attributes={"axes": "integers", "keepdims": "integer"}),
    "Reshape": _PLAIN,
    "Transpose": Form(attributes={"perm": "integers"}),
    "Pad": Form(attributes={"mode": "text", "pads": "integers", "value": "number"}),
    "Slice": Form(attributes={"starts": "integers", "ends": "integers", "steps": "integers"}),
    "Resize": Form(attributes={"mode": "text", "coordinates": "text"}),
    **ACTIVATIONS,
    **dict.fromkeys(("Exp", "Log", "Neg"), _PLAIN),
}
"""Every type that a folder may hold."""


def fits(kind: Kind, value: object) -> bool:
    """Whether a value is of a kind."""
    if kind == "text":
        return isinstance(value, str)
    if kind == "integers":
        return isinstance(value, tuple) and all(type(item) is int for item in value)
    return type(value) is int or (kind == "number" and type(value) is float)
