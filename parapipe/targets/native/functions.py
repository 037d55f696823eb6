"""Functions of each element, of one tensor or several, reductions and normalisations."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from math import prod

import numpy as np

from parapipe.plan.schema import Operator
from parapipe.targets.native.layout import permute
from parapipe.targets.native.library_plan import MOST_DIMENSIONS, Attribute
from parapipe.targets.native.steps import (
    Formula,
    Rule,
    Shape,
    Steps,
    axis_of,
    integer,
    integers,
    number,
    require,
    text,
)
from parapipe.targets.native.windows import image_read, pool_image

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
    require(_are_broadcastable(shapes), "the shapes of its operands do not fit together")
    result, *others = [into.weight(v) if into.is_constant(v) else v for v in operator.inputs]
    kind, mean = _STEPS.get(operator.type, operator.type), operator.type == "Mean"
    for position, name in enumerate(others, start=_PAIR):
        last = output if position == count and not mean else None
        shape = np.broadcast_shapes(*shapes[:position])
        result = into.add(kind, (result, name), shape, output=last)
    if mean:
        shape = np.broadcast_shapes(*shapes)
        into.add("Mul", (result, into.number(1 / count)), shape, output=output)


def _are_broadcastable(shapes: Sequence[tuple[int, ...]]) -> bool:
    """Whether shapes broadcast: a plan that was edited may say what no model has."""
    with suppress(ValueError):
        np.broadcast_shapes(*shapes)
        return True
    return False


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


_LARGEST = 3.4028234663852886e38  # of a float32

_ALPHA = {"LeakyRelu": 0.01, "Elu": 1.0}  # ONNX's defaults


def own_form(operator: Operator, into: Steps) -> tuple[str, Mapping[str, Attribute]] | None:
    """Return type and attributes of the one activation that an operator is; None if it is none."""
    if operator.type == "Clip":
        return "Clip", _clip_bounds(operator, into)
    if operator.type in _ALPHA:
        return operator.type, {"alpha": number(operator, "alpha", _ALPHA[operator.type])}
    return (operator.type, {}) if operator.type in _PLAIN else None


def _clip_bounds(operator: Operator, into: Steps) -> Mapping[str, Attribute]:
    bounds: dict[str, Attribute] = {}
    for position, (name, default) in enumerate((("min", -_LARGEST), ("max", _LARGEST)), start=1):
        bound_input = operator.inputs[position] if position < len(operator.inputs) else ""
        require(
            not bound_input or into.is_constant(bound_input), f"its bound '{name}' is not constant"
        )
        bound = number(operator, name, default)
        require(not math.isnan(bound), f"its bound '{name}' is no number")
        bounds[name] = min(max(bound, -_LARGEST), _LARGEST)
    return bounds


def lower_own(operator: Operator, into: Steps) -> None:
    """Add an operator that the library has a function for."""
    form = own_form(operator, into)
    kind, attributes = form if form is not None else (operator.type, {})
    output = operator.outputs[0]
    into.add(kind, operator.inputs[:1], into.shape(output), output=output, **attributes)


def _times(source: str, factor: float) -> Formula:
    """Multiply by a number, unless it is 1."""
    return source if factor == 1 else ("Mul", source, factor)


def _hard_sigmoid(operator: Operator, x: str, _: Steps) -> Formula:
    """Return max(0, min(1, alpha · x + beta))."""
    above = ("Add", _times(x, number(operator, "alpha", 0.2)), number(operator, "beta", 0.5))
    return ("Clip", above, {"min": 0.0, "max": 1.0})


def _selu(operator: Operator, x: str, _: Steps) -> Formula:
    """Return gamma times an Elu."""
    alpha = number(operator, "alpha", 1.67326319217681884765625)
    gamma = number(operator, "gamma", 1.05070102214813232421875)
    return ("Mul", ("Elu", x, {"alpha": alpha}), gamma)


def _celu(operator: Operator, x: str, _: Steps) -> Formula:
    """Return alpha times the Elu of x / alpha."""
    alpha = number(operator, "alpha", 1.0)
    return ("Mul", ("Elu", _times(x, 1 / alpha), {"alpha": 1.0}), alpha)


def _gelu(operator: Operator, x: str, into: Steps) -> Formula:
    """Return 0.5 · x · (1 + tanh(√(2/π) · (x + 0.044715 · x³)))."""
    if into.complete and text(operator, "approximate", "none") == "none":
        root = ("Mul", x, 1 / math.sqrt(2))
        return ("Mul", ("Mul", x, 0.5), ("Add", ("Erf", root), 1.0))
    require(
        text(operator, "approximate", "none") == "tanh",
        "it needs the error function, which the library lacks; its approximation by tanh is fine",
    )
    slope = ("Add", ("Mul", ("Mul", x, x), 0.044715), 1.0)
    inner = ("Mul", ("Mul", slope, x), math.sqrt(2 / math.pi))
    return ("Mul", ("Mul", x, 0.5), ("Add", ("Tanh", inner), 1.0))


def lower_by_formula(operator: Operator, into: Steps) -> None:
    """Add an operator that is made of others."""
    formula, output = _FORMULAS[operator.type][0], operator.outputs[0]
    into.compute(formula(operator, operator.inputs[0], into), into.shape(output), output=output)


_PLAIN = frozenset({"Relu", "Sigmoid", "Tanh", "HardSwish", "Softplus", "Abs", "Sqrt"})
_FORMULAS: Mapping[str, tuple[Callable[[Operator, str, Steps], Formula], str, str]] = {
    "HardSigmoid": (_hard_sigmoid, "Mul, Add, Clip", ""),
    "Selu": (_selu, "Elu, Mul", ""),
    "Celu": (_celu, "Mul, Elu, Mul", ""),
    "Mish": (lambda _, x, __: ("Mul", x, ("Tanh", ("Softplus", x))), "Softplus, Tanh, Mul", ""),
    "Softsign": (lambda _, x, __: ("Div", x, ("Add", ("Abs", x), 1.0)), "Abs, Add, Div", ""),
    "Gelu": (_gelu, "Mul, Add, Tanh", '`approximate` is "tanh"'),
    "Reciprocal": (lambda _, x, __: ("Div", 1.0, x), "Div", ""),
}


_SOFTMAX_BY_AXIS = 13
_IMAGE = (2, 3)


def softmax(operator: Operator, into: Steps) -> None:
    """Add a Softmax or LogSoftmax; the axes that it runs over are brought to the end."""
    source, output = operator.inputs[0], operator.outputs[0]
    shape = into.shape(source)
    by_axis = into.opset >= _SOFTMAX_BY_AXIS
    axis = axis_of(operator, -1 if by_axis else 1, len(shape))
    ends = axis + 1 if by_axis else len(shape)
    outside, inside, behind = prod(shape[:axis]), prod(shape[axis:ends]), prod(shape[ends:])
    if len(shape) <= 4 and ends == axis + 1 == len(shape):
        into.add(operator.type, (source,), shape, output=output)
        return
    if behind == 1:
        turned = into.reshape(source, (outside, inside))
    else:
        turned = into.reshape(source, (outside, inside, behind))
        turned = into.add("Transpose", (turned,), (outside, behind, inside), perm=(0, 2, 1))
    result = into.add(operator.type, (turned,), into.shape(turned))
    permute(into, result, (outside, behind, inside), (0, 2, 1), written=shape, output=output)


def lrn(operator: Operator, into: Steps) -> None:
    """Add a local response normalisation across channels."""
    size = integer(operator, "size", 1)
    require(size % 2 == 1, "its size is even")
    source, shape = image_read(operator, into)
    into.add(
        "LRN",
        (source,),
        shape,
        output=operator.outputs[0],
        size=size,
        alpha=number(operator, "alpha", 1e-4),
        beta=number(operator, "beta", 0.75),
        bias=number(operator, "bias", 1.0),
    )


def reduce_mean(operator: Operator, into: Steps) -> None:
    """Add the mean over axes; over a whole image it is a global pool."""
    source, output = operator.inputs[0], operator.outputs[0]
    axes = _reduced_axes(operator, into)
    if not axes:
        into.reshape(source, into.shape(output), output=output)
        return
    shape = into.shape(source)
    if axes == _IMAGE and len(shape) == 4:
        pool_image(operator, into, "GlobalAveragePool", source, shape)
        return
    _add_mean(into, source, axes, into.shape(output), output)


def reduce_sum(operator: Operator, into: Steps) -> None:
    """Add the sum over axes: the mean, times their extent."""
    source, output = operator.inputs[0], operator.outputs[0]
    axes, written = _reduced_axes(operator, into), into.shape(output)
    if not axes:
        into.reshape(source, written, output=output)
        return
    mean = _add_mean(into, source, axes, written, None)
    count = prod(into.shape(source)[axis] for axis in axes)
    into.add("Mul", (mean, into.number(float(count))), written, output=output)


def reduce_max(operator: Operator, into: Steps) -> None:
    """Add the maximum over a whole image."""
    shape = into.shape(operator.inputs[0])
    image = _reduced_axes(operator, into) == _IMAGE and len(shape) == 4
    require(image, "it is not over height and width of an image")
    pool_image(operator, into, "GlobalMaxPool", operator.inputs[0], shape)


def _add_mean(into: Steps, source: str, axes: Shape, written: Shape, output: str | None) -> str:
    """Add a mean; axes that are to go stay at first, for the library cannot drop all of them."""
    shape = into.shape(source)
    reduced = tuple(1 if axis in axes else extent for axis, extent in enumerate(shape))
    mean = into.add("ReduceMean", (source,), reduced, output=output, axes=axes, keepdims=1)
    return mean if output else into.reshape(mean, written)


def _reduced_axes(operator: Operator, into: Steps) -> Shape:
    """Return the axes, counted from the first; none where nothing is reduced."""
    rank = len(into.shape(operator.inputs[0]))
    constant = all(into.is_constant(name) for name in operator.inputs[1:] if name)
    require(constant, "its axes are not constant")
    axes = integers(operator, "axes", ())
    if not axes and not integer(operator, "noop_with_empty_axes", 0):
        return tuple(range(rank))
    return tuple(sorted(axis % rank for axis in axes))


def layer_normalization(operator: Operator, into: Steps) -> None:
    """Add (x - mean) / √(variance + epsilon) · scale + bias over the last axes."""
    source, *parameters = operator.inputs
    require(len(operator.outputs) == 1, "its mean or deviation is used")
    require(all(map(into.is_constant, filter(None, parameters))), "its parameters are not constant")
    shape = into.shape(source)
    axes = tuple(range(axis_of(operator, -1, len(shape)), len(shape)))
    last = [into.weight(name) for name in parameters if name]
    _add_normalisation(operator, into, axes, last)


def instance_normalization(operator: Operator, into: Steps) -> None:
    """Add the same over each channel of each image."""
    source, *parameters = operator.inputs
    require(all(map(into.is_constant, parameters)), "its parameters are not constant")
    shape = into.shape(source)
    channels = (shape[1], *(1 for _ in shape[2:]))
    last = [
        into.derived(name, "per channel", channels, lambda values: values.reshape(channels))
        for name in parameters
    ]
    _add_normalisation(operator, into, tuple(range(2, len(shape))), last)


def _add_normalisation(operator: Operator, into: Steps, axes: Shape, last: list[str]) -> None:
    source, output = operator.inputs[0], operator.outputs[0]
    shape = into.shape(source)
    reduced = tuple(1 if axis in axes else extent for axis, extent in enumerate(shape))
    mean = _add_mean(into, source, axes, reduced, None)
    centred = into.add("Sub", (source, mean), shape)
    square = into.add("Mul", (centred, centred), shape)
    variance = _add_mean(into, square, axes, reduced, None)
    epsilon = into.number(number(operator, "epsilon", 1e-5))
    above = into.add("Add", (variance, epsilon), reduced)
    deviation = into.add("Sqrt", (above,), reduced)
    result = into.add("Div", (centred, deviation), shape, output=None if last else output)
    for at, (kind, name) in enumerate(zip(("Mul", "Add"), last, strict=False), start=1):
        result = into.add(kind, (result, name), shape, output=output if at == len(last) else None)


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
        of_operands, "Add, one for each further operand, and Mul", _CONSTANTS, dimensions=True
    ),
    "Pow": Rule(pow_, "Sqrt, Reshape, Mul, or two Mul", "constant exponent 0.5, 1, 2 or 3"),
    "PRelu": Rule(prelu, "PRelu", "constant slope"),
    "BatchNormalization": Rule(
        batch_normalization,
        "BatchNormalization; into constants of a Conv, ConvTranspose or Gemm before it, if nothing "
        "else reads between",
        "constant parameters, inference",
    ),
    **{
        kind: Rule(lower_own, kind, dimensions=True)
        for kind in sorted(_PLAIN | _ALPHA.keys() | {"Exp", "Log", "Neg"})
    },
    "Clip": Rule(lower_own, "Clip", "constant bounds", dimensions=True),
    **{
        kind: Rule(lower_by_formula, becomes, condition, dimensions=True)
        for kind, (_, becomes, condition) in _FORMULAS.items()
    },
    **{
        kind: Rule(
            softmax,
            f"{kind}; over another axis than the last: Reshape and Transpose around it",
            dimensions=True,
        )
        for kind in ("Softmax", "LogSoftmax")
    },
    "LRN": Rule(lrn, "LRN; over a line: Reshape around it", "odd size"),
    "ReduceMean": Rule(
        reduce_mean, "ReduceMean, Reshape; over a whole image: GlobalAveragePool", "constant axes"
    ),
    "ReduceSum": Rule(reduce_sum, "ReduceMean, Reshape, Mul", "constant axes"),
    "ReduceMax": Rule(reduce_max, "GlobalMaxPool", "over height and width of an image"),
    "LayerNormalization": Rule(
        layer_normalization, "ReduceMean, Sub, Mul, Add, Sqrt, Div", "constant parameters"
    ),
    "InstanceNormalization": Rule(
        instance_normalization, "ReduceMean, Sub, Mul, Add, Sqrt, Div", "constant parameters"
    ),
}
