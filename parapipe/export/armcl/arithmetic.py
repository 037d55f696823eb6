"""Arithmetic of two tensors, element by element, and what is made of it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from parapipe.export.armcl.steps import Formula, Rule, Steps, integer, number, require
from parapipe.plan.armcl_plan import MOST_DIMENSIONS
from parapipe.plan.schema import Operator

_PAIR = 2
_STEPS = {"Sum": "Add", "Mean": "Add"}


def of_operands(operator: Operator, into: Steps) -> None:
    """Add a step for each operand after the first."""
    output, count = operator.outputs[0], len(operator.inputs)
    if count == 1:
        into.reshape(operator.inputs[0], into.shape(output), output=output)
        return
    # Tensors of more than four dimensions are stored in fewer.
    shapes = [into.shape(name) for name in operator.inputs]
    require(
        max(map(len, shapes)) <= MOST_DIMENSIONS or len(set(filter(None, shapes))) == 1,
        "it broadcasts tensors of more than 4 dimensions, and the library has 4",
    )
    made, *others = [into.weight(v) if into.is_constant(v) else v for v in operator.inputs]
    kind, mean = _STEPS.get(operator.type, operator.type), operator.type == "Mean"
    for position, name in enumerate(others, start=_PAIR):
        last = output if position == count and not mean else None
        shape = np.broadcast_shapes(*shapes[:position])
        made = into.add(kind, (made, name), shape, output=last)
    if mean:
        shape = np.broadcast_shapes(*shapes)
        into.add("Mul", (made, into.number(1 / count)), shape, output=output)


def pow_(operator: Operator, into: Steps) -> None:
    """Add a power with a constant exponent that the library has functions for."""
    base, exponent = operator.inputs[:2]
    require(into.is_constant(exponent), "its exponent is not constant")
    require(not into.is_constant(base), "its base is constant")
    values = set(into.values(exponent).reshape(-1).tolist())
    output, shape = operator.outputs[0], into.shape(operator.outputs[0])
    require(
        shape == into.shape(base) and len(values) == 1 and values <= {0.5, 1, 2, 3},
        "its exponent is none of 0.5, 1, 2 and 3",
    )
    square = ("Mul", base, base)
    formulas: dict[float, Formula] = {0.5: ("Sqrt", base), 2: square, 3: ("Mul", square, base)}
    (power,) = values
    if power == 1:
        into.reshape(base, shape, output=output)
    else:
        into.compute(formulas[power], shape, output=output)


def prelu(operator: Operator, into: Steps) -> None:
    """Add a leaky activation with a slope per channel."""
    source, slope = operator.inputs[:2]
    require(into.is_constant(slope), "its slope is not constant")
    shape = into.shape(operator.outputs[0])
    into.add("PRelu", (source, into.weight(slope)), shape, output=operator.outputs[0])


def batch_normalization(operator: Operator, into: Steps) -> None:
    """Add a batch-norm that stands by itself."""
    source, *constants = operator.inputs
    require(all(map(into.is_constant, constants)), "its parameters are not constant")
    require(not integer(operator, "training_mode", 0), "it is in training mode")
    require(bool(integer(operator, "spatial", 1)), "it has parameters per element, not per channel")
    shape = into.shape(source)
    require(len(shape) >= _PAIR, "it has no channels")
    into.add(
        "BatchNormalization",
        (source, *map(into.weight, constants)),
        shape,
        output=operator.outputs[0],
        epsilon=number(operator, "epsilon", 1e-5),
    )


_CONSTANTS = "constants may be among the operands"

RULES: Mapping[str, Rule] = {
    **{
        kind: Rule(of_operands, kind, _CONSTANTS, dimensions=True)
        for kind in ("Add", "Sub", "Mul", "Div")
    },
    **{
        kind: Rule(
            of_operands, f"{step}, one for each further operand", _CONSTANTS, dimensions=True
        )
        for kind, step in (("Sum", "Add"), ("Max", "Max"), ("Min", "Min"))
    },
    "Mean": Rule(
        of_operands,
        "Add, one for each further operand, and Mul",
        _CONSTANTS,
        dimensions=True,
    ),
    "Pow": Rule(pow_, "Sqrt, Reshape, Mul, or two Mul", "constant exponent 0.5, 1, 2 or 3"),
    "PRelu": Rule(prelu, "PRelu", "constant slope"),
    "BatchNormalization": Rule(
        batch_normalization,
        "BatchNormalization; into constants of a Conv, ConvTranspose or Gemm before it, if nothing "
        "else reads between",
        "constant parameters, inference",
    ),
}
