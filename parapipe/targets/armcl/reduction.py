"""Reductions and normalisations."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from parapipe.plan.schema import Operator
from parapipe.targets.armcl.layout import permute
from parapipe.targets.armcl.steps import (
    Rule,
    Shape,
    Steps,
    axis_of,
    integer,
    integers,
    number,
    require,
)
from parapipe.targets.armcl.windows import image_read, pool_image

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
