"""Activations and other functions of one element."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from parapipe.export.armcl.rule import Rule
from parapipe.export.armcl.steps import Steps, number, require, text
from parapipe.plan.armcl_plan import Attribute
from parapipe.plan.schema import Operator

_LARGEST = 3.4028234663852886e38  # of a float32

_ALPHA = {"LeakyRelu": 0.01, "Elu": 1.0}  # ONNX's defaults


def own_form(operator: Operator, into: Steps) -> tuple[str, Mapping[str, Attribute]] | None:
    """Return type and attributes of the one activation that an operator is; None if it is none."""
    if operator.type == "Clip":
        return "Clip", _bounds(operator, into)
    if operator.type in _ALPHA:
        return operator.type, {"alpha": number(operator, "alpha", _ALPHA[operator.type])}
    return (operator.type, {}) if operator.type in _PLAIN else None


def _bounds(operator: Operator, into: Steps) -> Mapping[str, Attribute]:
    found: dict[str, Attribute] = {}
    for position, (name, default) in enumerate((("min", -_LARGEST), ("max", _LARGEST)), start=1):
        given = operator.inputs[position] if position < len(operator.inputs) else ""
        require(not given or into.is_constant(given), f"its bound '{name}' is not constant")
        bound = number(operator, name, default)
        require(not math.isnan(bound), f"its bound '{name}' is no number")
        found[name] = min(max(bound, -_LARGEST), _LARGEST)
    return found


def lower_own(operator: Operator, into: Steps) -> None:
    """Add an operator that the library has a function for."""
    form = own_form(operator, into)
    kind, attributes = form if form is not None else (operator.type, {})
    output = operator.outputs[0]
    into.add(kind, operator.inputs[:1], into.shape(output), output=output, **attributes)


def hard_sigmoid(operator: Operator, into: Steps) -> None:
    """Add max(0, min(1, alpha · x + beta))."""
    made = _times(operator, into, operator.inputs[0], number(operator, "alpha", 0.2))
    shape = into.shape(operator.outputs[0])
    made = into.add("Add", (made, into.number(number(operator, "beta", 0.5))), shape)
    into.add("Clip", (made,), shape, output=operator.outputs[0], min=0.0, max=1.0)


def selu(operator: Operator, into: Steps) -> None:
    """Add gamma times an Elu."""
    shape = into.shape(operator.outputs[0])
    alpha = number(operator, "alpha", 1.67326319217681884765625)
    made = into.add("Elu", operator.inputs[:1], shape, alpha=alpha)
    gamma = number(operator, "gamma", 1.05070102214813232421875)
    into.add("Mul", (made, into.number(gamma)), shape, output=operator.outputs[0])


def celu(operator: Operator, into: Steps) -> None:
    """Add alpha times the Elu of x / alpha."""
    alpha = number(operator, "alpha", 1.0)
    shape = into.shape(operator.outputs[0])
    made = _times(operator, into, operator.inputs[0], 1 / alpha)
    made = into.add("Elu", (made,), shape, alpha=1.0)
    into.add("Mul", (made, into.number(alpha)), shape, output=operator.outputs[0])


def mish(operator: Operator, into: Steps) -> None:
    """Add x · tanh(softplus(x))."""
    source, shape = operator.inputs[0], into.shape(operator.outputs[0])
    made = into.add("Tanh", (into.add("Softplus", (source,), shape),), shape)
    into.add("Mul", (source, made), shape, output=operator.outputs[0])


def softsign(operator: Operator, into: Steps) -> None:
    """Add x / (1 + |x|)."""
    source, shape = operator.inputs[0], into.shape(operator.outputs[0])
    made = into.add("Add", (into.add("Abs", (source,), shape), into.number(1.0)), shape)
    into.add("Div", (source, made), shape, output=operator.outputs[0])


def gelu(operator: Operator, into: Steps) -> None:
    """Add 0.5 · x · (1 + tanh(√(2/π) · (x + 0.044715 · x³)))."""
    require(
        text(operator, "approximate", "none") == "tanh",
        "it needs the error function, which the library lacks; its approximation by tanh is fine",
    )
    source, shape = operator.inputs[0], into.shape(operator.outputs[0])
    square = into.add("Mul", (source, source), shape)
    slope = into.add("Mul", (square, into.number(0.044715)), shape)
    inner = into.add("Mul", (into.add("Add", (slope, into.number(1.0)), shape), source), shape)
    inner = into.add("Mul", (inner, into.number(math.sqrt(2 / math.pi))), shape)
    outer = into.add("Add", (into.add("Tanh", (inner,), shape), into.number(1.0)), shape)
    half = into.add("Mul", (source, into.number(0.5)), shape)
    into.add("Mul", (half, outer), shape, output=operator.outputs[0])


def _times(operator: Operator, into: Steps, source: str, factor: float) -> str:
    """Multiply by a number, unless it is 1."""
    if factor == 1:
        return source
    return into.add("Mul", (source, into.number(factor)), into.shape(operator.outputs[0]))


_PLAIN = frozenset({"Relu", "Sigmoid", "Tanh", "HardSwish", "Softplus", "Abs", "Sqrt"})
_COMPOSED: Mapping[str, tuple[Callable[[Operator, Steps], None], str, str]] = {
    "HardSigmoid": (hard_sigmoid, "Mul, Add, Clip", ""),
    "Selu": (selu, "Elu, Mul", ""),
    "Celu": (celu, "Mul, Elu, Mul", ""),
    "Mish": (mish, "Softplus, Tanh, Mul", ""),
    "Softsign": (softsign, "Abs, Add, Div", ""),
    "Gelu": (gelu, "Mul, Add, Tanh", '`approximate` is "tanh"'),
}
RULES: Mapping[str, Rule] = {
    **{
        kind: Rule(lower_own, kind, dimensions=True)
        for kind in sorted(_PLAIN | _ALPHA.keys() | {"Exp", "Log", "Neg"})
    },
    "Clip": Rule(lower_own, "Clip", "constant bounds", dimensions=True),
    **{
        kind: Rule(lower, becomes, condition, dimensions=True)
        for kind, (lower, becomes, condition) in _COMPOSED.items()
    },
}
