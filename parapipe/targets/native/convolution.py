"""Convolutions and transposed convolutions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from parapipe.graph.infer import Array
from parapipe.plan.schema import Operator
from parapipe.targets.native.product import Folded, bias_of
from parapipe.targets.native.steps import (
    Floats,
    Rule,
    Shape,
    Steps,
    integer,
    integers,
    require,
    text,
)
from parapipe.targets.native.windows import Window, planar, window

_CHANNELS = 1

# Of a tensor, by the number of the group, of a shape, under a name: the convolution of one group.
_Convolution: TypeAlias = Callable[[str, int, Shape, str | None], str]


@dataclass(frozen=True, slots=True)
class _Constants:
    """Names of weights and bias ("" if there is none), and what was folded into them."""

    operator: Operator
    into: Steps
    weights: str
    bias: str
    folded: Folded

    def bias_of(self, part: int, count: int) -> list[str]:
        """Return the name of the bias of a group with so many channels; none if there is none."""
        rows = slice(part * count, (part + 1) * count)
        return bias_of(self.folded, self.bias, f"{self.operator.id}:bias:{part}", rows, count)

    def of_conv(self, part: int, kernel: Shape) -> list[str]:
        """Return weights and bias of a group, whose weights have the shape `kernel`."""
        into, folded = self.into, self.folded
        bias = self.bias_of(part, kernel[0])
        if folded.is_nothing and kernel == into.shape(self.weights):
            return [into.weight(self.weights), *bias]
        rows = slice(part * kernel[0], (part + 1) * kernel[0])

        def load(values: Array) -> Floats:
            return folded.scaled(values[rows], rows, axis=0).reshape(kernel)

        label, recipe = f"{self.operator.id}:{part}", ("conv", part, folded.recipe)
        return [into.derived(self.weights, label, kernel, load, recipe=recipe), *bias]

    def of_transpose(self, part: int, group: int, window_: Window) -> list[str]:
        """Return weights and bias of a group, the kernel dilated and made square by zeros."""
        channels, count = self.into.shape(self.weights)[:2]
        rows = slice(part * (channels // group), (part + 1) * (channels // group))
        outputs = slice(part * count, (part + 1) * count)
        side = max(window_.extents)
        shape = (channels // group, count, side, side)

        def load(values: Array) -> Floats:
            square = np.zeros(shape, np.float32)
            (high, wide), (down, right) = window_.extents, window_.dilations
            scaled = self.folded.scaled(values[rows], outputs, axis=1)
            square[:, :, :high:down, :wide:right] = scaled.reshape(*shape[:2], *window_.kernel)
            return square

        label = f"{self.operator.id}:{part}"
        recipe = ("transpose", part, window_.kernel, window_.dilations, self.folded.recipe)
        weights = self.into.derived(self.weights, label, shape, load, recipe=recipe)
        return [weights, *self.bias_of(part, count)]


def conv(operator: Operator, into: Steps) -> None:
    """Add a convolution; several groups, unless depthwise, are convolutions of slices."""
    constants = _constants(operator, into, channels_axis=0)
    shape = into.shape(constants.weights)
    window_ = window(operator, into, shape[2:])
    group = integer(operator, "group", 1)
    depthwise = group == window_.shape[_CHANNELS]
    parts = 1 if depthwise or into.complete else group
    kernel = (shape[0] // parts, *planar(shape)[1:])

    def convolution(source: str, part: int, written: Shape, output: str | None) -> str:
        return into.add(
            "Conv",
            (source, *constants.of_conv(part, kernel)),
            written,
            output=output,
            strides=window_.strides,
            pads=window_.pads,
            dilations=window_.dilations,
            group=group if depthwise or into.complete else 1,
        )

    _by_groups(operator, into, window_, parts, convolution)


def conv_transpose(operator: Operator, into: Steps) -> None:
    """Add a transposed convolution; its output padding means less cropping.

    The library wants a square kernel. One that is filled up by zeros at its end reaches further
    there, which is cut off.
    """
    constants = _constants(operator, into, channels_axis=1)
    window_ = window(operator, into, into.shape(constants.weights)[2:], _cropping)
    group = integer(operator, "group", 1)
    side = max(window_.extents)
    ends = (end + side - own for end, own in zip(window_.ends, window_.extents, strict=True))
    pads = (*window_.begins, *ends)

    def convolution(source: str, part: int, written: Shape, output: str | None) -> str:
        return into.add(
            "ConvTranspose",
            (source, *constants.of_transpose(part, group, window_)),
            written,
            output=output,
            strides=window_.strides,
            pads=pads,
        )

    _by_groups(operator, into, window_, group, convolution)


def _constants(operator: Operator, into: Steps, *, channels_axis: int) -> _Constants:
    weights, bias = (*operator.inputs[1:], "")[:2]
    require(into.is_constant(weights), "its weights are not constant")
    require(not bias or into.is_constant(bias), "its bias is not constant")
    group = integer(operator, "group", 1) if channels_axis else 1
    channels = into.shape(weights)[channels_axis] * group
    return _Constants(operator, into, weights, bias, Folded(operator.folded, channels, into))


def _by_groups(
    operator: Operator, into: Steps, window_: Window, group: int, convolution: _Convolution
) -> None:
    """Slice the input by channels, convolve each slice, and join the results."""
    output = operator.outputs[0]
    if group == 1:
        convolution(window_.source, 0, window_.written, output)
        return
    batch, channels, *read = window_.shape
    _, out, *written = window_.written
    each = channels // group
    results = []
    for part in range(group):
        piece = into.add(
            "Slice",
            (window_.source,),
            (batch, each, *read),
            starts=(0, part * each, 0, 0),
            ends=(batch, (part + 1) * each, *read),
            steps=(1, 1, 1, 1),
        )
        results.append(convolution(piece, part, (batch, out // group, *written), None))
    into.add("Concat", results, window_.written, output=output, axis=_CHANNELS)


def _cropping(
    operator: Operator, read: Shape, written: Shape, strides: Shape, extents: Shape
) -> tuple[Shape, Shape]:
    """Return what a transposed convolution cuts off the result, which is its padding.

    The result before that has (size - 1) · stride + extent elements along an axis.
    """
    totals = tuple(
        (size - 1) * stride + extent - out
        for size, stride, extent, out in zip(read, strides, extents, written, strict=True)
    )
    begins = _cropped_first(operator, totals)
    ends = tuple(total - begin for total, begin in zip(totals, begins, strict=True))
    require(min(*begins, *ends) >= 0, "its output is padded beyond what the kernel reaches")
    inside = all(p < e for pads in (begins, ends) for p, e in zip(pads, extents, strict=True))
    require(inside, "its padding is as large as its kernel")
    return begins, ends


def _cropped_first(operator: Operator, totals: Shape) -> Shape:
    """Return what is cut off at the beginning of each axis."""
    mode = text(operator, "auto_pad", "NOTSET")
    if mode == "NOTSET" and "output_shape" not in operator.attributes:
        return integers(operator, "pads", (0,) * (2 * len(totals)))[: len(totals)]
    if mode == "SAME_UPPER":
        return tuple(total // 2 for total in totals)
    return tuple(total - total // 2 for total in totals)


RULES: Mapping[str, Rule] = {
    "Conv": Rule(
        conv,
        "Conv; several groups: Slice, Conv, Concat; over a line: Reshape around it",
        "constant weights; over a line or an image",
    ),
    "ConvTranspose": Rule(
        conv_transpose,
        "ConvTranspose; several groups: Slice, ConvTranspose, Concat; over a line: Reshape around "
        "it; a kernel that is dilated or not square is filled up by zeros",
        "constant weights; over a line or an image; the output no larger than the kernel reaches",
    ),
}
