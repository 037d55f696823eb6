"""Windows that slide over height and width: their size, steps and padding, all resolved."""

from __future__ import annotations

from dataclasses import dataclass

from parapipe.export.armcl.steps import Shape, Steps, integers, require, text
from parapipe.plan.schema import Operator

_FLAT, _PLANAR = 3, 4


@dataclass(frozen=True, slots=True)
class Window:
    """How an operator slides over an image; one over a line is one over an image of height 1.

    Parameters
    ----------
    source
        The tensor that it reads, of four dimensions.
    shape, written
        Shapes of what it reads and makes, of four dimensions.
    kernel, strides, dilations
        Height and width.
    begins, ends
        Padding at the top and at the left, at the bottom and at the right.
    """

    source: str
    shape: Shape
    written: Shape
    kernel: Shape
    strides: Shape
    dilations: Shape
    begins: Shape
    ends: Shape

    @property
    def pads(self) -> Shape:
        """Top, left, bottom, right."""
        return (*self.begins, *self.ends)

    @property
    def extents(self) -> Shape:
        """Height and width of the dilated kernel."""
        return tuple((k - 1) * d + 1 for k, d in zip(self.kernel, self.dilations, strict=True))


def window(operator: Operator, into: Steps, kernel: Shape) -> Window:
    """Return how an operator slides over its first input, with its padding as numbers.

    Parameters
    ----------
    kernel
        Extents of the window, as many as the operator has.

    Raises
    ------
    NotExportable
        If it slides over anything but a line or an image, or cuts off what it reads.
    """
    source = operator.inputs[0]
    shape = into.shape(source)
    written = into.shape(operator.outputs[0])
    require(
        len(shape) in (_FLAT, _PLANAR),
        f"its window moves in {len(shape) - 2} dimensions, and the library knows 1 and 2",
    )
    ones = (1,) * len(kernel)
    strides = integers(operator, "strides", ones)
    dilations = integers(operator, "dilations", ones)
    extents = tuple((k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True))
    begins, ends = _padding(operator, shape[2:], written[2:], strides, extents)
    require(min(*begins, *ends) >= 0, "its padding is negative")
    if len(shape) == _FLAT:
        source = into.reshape(source, planar(shape))
    return Window(
        source,
        planar(shape),
        planar(written),
        *((filling,) * (2 - len(part)) + part
          for filling, part in ((1, kernel), (1, strides), (1, dilations), (0, begins), (0, ends))),
    )  # fmt: skip


def planar(shape: Shape) -> Shape:
    """Return the shape of a line as that of an image of height 1."""
    return (*shape[:2], 1, *shape[2:]) if len(shape) == _FLAT else shape


def _padding(
    operator: Operator, read: Shape, written: Shape, strides: Shape, extents: Shape
) -> tuple[Shape, Shape]:
    """Return the padding before and after each axis; the equations stand in ONNX's `auto_pad`."""
    rank = len(extents)
    mode = text(operator, "auto_pad", "NOTSET")
    if mode == "NOTSET":
        pads = integers(operator, "pads", (0,) * (2 * rank))
        return pads[:rank], pads[rank:]
    if mode == "VALID":
        return (0,) * rank, (0,) * rank
    totals = tuple(
        max((out - 1) * stride + extent - size, 0)
        for size, out, stride, extent in zip(read, written, strides, extents, strict=True)
    )
    less, more = tuple(t // 2 for t in totals), tuple(t - t // 2 for t in totals)
    return (less, more) if mode == "SAME_UPPER" else (more, less)
