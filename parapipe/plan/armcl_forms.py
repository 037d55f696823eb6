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
    inputs
        Least and greatest number of inputs.
    attributes
        Kind of each attribute, by name.
    """

    inputs: tuple[int, int] = (1, 1)
    attributes: Mapping[str, Kind] = field(default_factory=dict)


_WINDOW: Mapping[str, Kind] = {"strides": "integers", "pads": "integers"}
_POOL: Mapping[str, Kind] = {"kernel_shape": "integers", **_WINDOW, "ceil_mode": "integer"}
_PLAIN = Form()
_PAIR = Form((2, 2))
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
    "Conv": Form((2, 3), {**_WINDOW, "dilations": "integers", "group": "integer"}),
    "ConvTranspose": Form((2, 3), _WINDOW),
    "MaxPool": Form(attributes=_POOL),
    "AveragePool": Form(attributes={**_POOL, "count_include_pad": "integer"}),
    **dict.fromkeys(("GlobalAveragePool", "GlobalMaxPool"), _PLAIN),
    "Gemm": Form((2, 3), {"transB": "integer"}),
    **dict.fromkeys(("MatMul", "Add", "Sub", "Mul", "Div", "Max", "Min"), _PAIR),
    "Concat": Form((1, _MANY), {"axis": "integer"}),
    "BatchNormalization": Form((5, 5), {"epsilon": "number"}),
    "LRN": Form(
        attributes={"size": "integer", "alpha": "number", "beta": "number", "bias": "number"}
    ),
    **dict.fromkeys(("Softmax", "LogSoftmax"), _PLAIN),
    "PRelu": _PAIR,
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
