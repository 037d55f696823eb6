"""Operators that only back ends with loops of the runner's own have: those of attention, mainly."""

from __future__ import annotations

from parapipe.plan.schema import Operator
from parapipe.targets.native.library_plan import MOST_DIMENSIONS
from parapipe.targets.native.steps import (
    Rule,
    Steps,
    axis_of,
    integer,
    require,
)

_FLOAT, _BOOL, _INTEGERS = 1, 9, (3, 5, 6, 7)  # ONNX's numbers of types


def gather(operator: Operator, into: Steps) -> None:
    """Add a pick along an axis, by indices that may be computed."""
    source, picked = operator.inputs[:2]
    shape = into.shape(source)
    axis = axis_of(operator, 0, len(shape))
    inputs = [into.weight(v) if into.is_constant(v) else v for v in (source, picked)]
    made = (*shape[:axis], *into.shape(picked), *shape[axis + 1 :])
    require(max(len(shape), len(made)) <= MOST_DIMENSIONS, "it has more than 4 dimensions")
    into.add("Gather", inputs, made, output=operator.outputs[0], axis=axis)


def cast(operator: Operator, into: Steps) -> None:
    """Add nothing: whole numbers and truth values are float32 already."""
    source, output = operator.inputs[0], operator.outputs[0]
    to = integer(operator, "to", _FLOAT)
    require(to in (_FLOAT, _BOOL, *_INTEGERS), "it makes a type that is not kept as float32")
    whole = into.dtype(source) != "float32"
    require(to == _FLOAT or (whole and to != _BOOL), "it rounds, or compares with 0")
    into.reshape(source, into.shape(output), output=output)


def where(operator: Operator, into: Steps) -> None:
    """Add a choice between two tensors, element by element."""
    shapes = [into.shape(name) for name in operator.inputs]
    require(max(map(len, shapes)) <= MOST_DIMENSIONS, "it has more than 4 dimensions")
    inputs = [into.weight(v) if into.is_constant(v) else v for v in operator.inputs]
    output = operator.outputs[0]
    into.add("Where", inputs, into.shape(output), output=output)


def error_function(operator: Operator, into: Steps) -> None:
    """Add the error function."""
    output = operator.outputs[0]
    into.add("Erf", operator.inputs[:1], into.shape(output), output=output)


RULES: dict[str, Rule] = {
    "Cast": Rule(cast, "Reshape", "to float32, or between whole numbers", integers=True),
    "Erf": Rule(error_function, "Erf"),
    "Gather": Rule(gather, "Gather", integers=True),
    "Where": Rule(where, "Where", integers=True),
}
