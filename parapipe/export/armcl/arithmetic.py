"""Arithmetic of two tensors, element by element, and what is made of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from parapipe.export.armcl.steps import Formula, Rule, Shape, Steps, integer, require
from parapipe.plan.armcl_plan import MOST_DIMENSIONS
from parapipe.plan.schema import Operator

_PAIR = 2


def _of_operands(kind: str, *, mean: bool = False) -> Callable[[Operator, Steps], None]:
    def lower(operator: Operator, into: Steps) -> None:
        first, *others = operator.inputs
        output, count = operator.outputs[0], len(operator.inputs)
        if not others:
            into.reshape(first, into.shape(output), output=output)
            return
        _check_dimensions(operator, into)
        made, shape = _operand(first, into), into.shape(first)
        for number, name in enumerate(others, start=_PAIR):
            shape = np.broadcast_shapes(shape, into.shape(name))
            last = output if number == count and not mean else None
            made = into.add(kind, (made, _operand(name, into)), shape, output=last)
        if mean:
            into.add("Mul", (made, into.number(1 / count)), shape, output=output)

    return lower


def _operand(name: str, into: Steps) -> str:
    return into.weight(name) if into.is_constant(name) else name


def _check_dimensions(operator: Operator, into: Steps) -> None:
    """Refuse to broadcast tensors of more than four dimensions, which are stored in fewer."""
    shapes = {into.shape(name) for name in operator.inputs if into.shape(name)}
    many = any(len(shape) > MOST_DIMENSIONS for shape in shapes)
    require(
        not many or len(shapes) == 1,
        "it broadcasts tensors of more than 4 dimensions, and the library has 4",
    )


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
    shape: Shape = into.shape(source)
    require(len(shape) >= _PAIR, "it has no channels")
    epsilon = operator.attributes.get("epsilon", 1e-5)
    into.add(
        "BatchNormalization",
        (source, *map(into.weight, constants)),
        shape,
        output=operator.outputs[0],
        epsilon=float(epsilon) if isinstance(epsilon, int | float) else 1e-5,
    )


_CONSTANTS = "constants may be among the operands"

RULES: Mapping[str, Rule] = {
    **{
        kind: Rule(_of_operands(kind), kind, _CONSTANTS, dimensions=True)
        for kind in ("Add", "Sub", "Mul", "Div")
    },
    **{
        kind: Rule(
            _of_operands(step), f"{step}, one for each further operand", _CONSTANTS, dimensions=True
        )
        for kind, step in (("Sum", "Add"), ("Max", "Max"), ("Min", "Min"))
    },
    "Mean": Rule(
        _of_operands("Add", mean=True),
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
