"""Windows that slide over height and width, with all resolved, pooling by them, and resizing."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from parapipe.plan.schema import Operator
from parapipe.targets.native.library_plan import Attribute
from parapipe.targets.native.steps import Rule, Shape, Steps, integer, integers, require, text

_FLAT, _PLANAR = 3, 4
# Padding before and after each axis, of an operator, what it reads and makes, strides and extents.
Padding: TypeAlias = Callable[[Operator, Shape, Shape, Shape, Shape], tuple[Shape, Shape]]


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


def window(
    operator: Operator, into: Steps, kernel: Shape, padding: Padding | None = None
) -> Window:
    """Return how an operator slides over its first input, with its padding as numbers.

    Parameters
    ----------
    kernel
        Extents of the window, as many as the operator has.
    padding
        Gives the padding; that of a window over what is read if not given.

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
    find = padding or _padding
    begins, ends = find(operator, shape[2:], written[2:], strides, extents)
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
        require(min(pads) >= 0, "its padding is negative")
        return pads[:rank], pads[rank:]
    if mode == "VALID":
        return (0,) * rank, (0,) * rank
    totals = tuple(
        max((out - 1) * stride + extent - size, 0)
        for size, out, stride, extent in zip(read, written, strides, extents, strict=True)
    )
    less, more = tuple(t // 2 for t in totals), tuple(t - t // 2 for t in totals)
    return (less, more) if mode == "SAME_UPPER" else (more, less)


def pool(operator: Operator, into: Steps) -> None:
    """Add a MaxPool or an AveragePool."""
    window_ = window(operator, into, integers(operator, "kernel_shape", ()))
    require(max(window_.dilations) == 1, "its window is dilated")
    kind, attributes = f"Global{operator.type}", dict[str, Attribute]()
    if window_.kernel != window_.shape[2:] or any(window_.pads):
        kind, attributes = operator.type, _pool_attributes(operator, window_)
    output = operator.outputs[0]
    into.add(kind, (window_.source,), window_.written, output=output, **attributes)


def _pool_attributes(operator: Operator, window_: Window) -> dict[str, Attribute]:
    """Return attributes without `ceil_mode`: a window that starts inside may reach beyond the end.

    What it finds there counts as padding; so an average that counts padding would be another one.
    """
    kernel, strides, begins = window_.kernel, window_.strides, window_.begins
    extents = zip(window_.written[2:], window_.shape[2:], window_.ends, strict=True)
    ends = tuple(
        max(end, (out - 1) * strides[at] + kernel[at] - size - begins[at])
        for at, (out, size, end) in enumerate(extents)
    )
    average = operator.type == "AveragePool"
    counted = integer(operator, "count_include_pad", 0) if average else 0
    require(
        not counted or ends == window_.ends,
        "its average counts padding, and its last window reaches beyond it (ceil_mode)",
    )
    require(_is_smaller(window_.pads, kernel), "its padding is as large as its window")
    require(_is_smaller(ends, kernel), "its last window lies in the padding only (ceil_mode)")
    attributes: dict[str, Attribute] = {
        "kernel_shape": kernel,
        "strides": strides,
        "pads": (*begins, *ends),
        "ceil_mode": 0,
    }
    if average:
        attributes["count_include_pad"] = counted if any(window_.pads) else 0
    return attributes


def _is_smaller(pads: Shape, kernel: Shape) -> bool:
    return all(pad < extent for pad, extent in zip(pads, kernel * 2, strict=False))


def global_pool(operator: Operator, into: Steps) -> None:
    """Add a GlobalAveragePool or a GlobalMaxPool."""
    pool_image(operator, into, operator.type, *image_read(operator, into))


def image_read(operator: Operator, into: Steps) -> tuple[str, Shape]:
    """Return what an operator reads, and its shape; a line as an image of height 1."""
    shape = into.shape(operator.inputs[0])
    require(len(shape) in (3, 4), f"it has {len(shape)} dimensions, and the library's has 4")
    return into.reshape(operator.inputs[0], planar(shape)), planar(shape)


def pool_image(operator: Operator, into: Steps, kind: str, source: str, shape: Shape) -> None:
    """Pool a whole image; the output has the operator's shape."""
    into.add(kind, (source,), (*shape[:2], 1, 1), output=operator.outputs[0])


_LINEAR = {
    "half_pixel": "half_pixel",
    "pytorch_half_pixel": "half_pixel",
    "asymmetric": "asymmetric",
    "align_corners": "align_corners",
}


def resize(operator: Operator, into: Steps) -> None:
    """Add an image in another size, by the nearest elements or by the mean of neighbours."""
    source, output = operator.inputs[0], operator.outputs[0]
    read, written = into.shape(source), into.shape(output)
    require(len(read) == _PLANAR and read[:2] == written[:2], "it is not of height and width only")
    require(not integer(operator, "antialias", 0), "it smooths (antialias)")
    scales = _scales(operator, into)
    mode = text(operator, "mode", "nearest").replace("bilinear", "linear")  # as Upsample called it
    default = "asymmetric" if _is_old(operator) else "half_pixel"
    coordinates = text(operator, "coordinate_transformation_mode", default)
    require(mode in ("nearest", "linear"), f"its mode is '{mode}'")
    if mode == "nearest":
        same = all(
            _nearest(size, out, scale, coordinates, _rounding_mode(operator, scale))
            == [at * size // out for at in range(out)]
            for size, out, scale in zip(read[2:], written[2:], scales[2:], strict=True)
        )
        require(
            same,
            "it picks other elements than ⌊i · size / new size⌋, and the library knows these only",
        )
        coordinates = "asymmetric"
    else:
        require(coordinates in _LINEAR, f"its coordinates are '{coordinates}'")
        integral = all(
            math.isclose(size * scale, out)
            for size, out, scale in zip(read, written, scales, strict=True)
        )
        require(integral or coordinates == "align_corners", "its scale gives no whole size")
        edge = coordinates == "pytorch_half_pixel" and 1 in written[2:]
        require(not edge, "its coordinates differ where the new size is 1")
        coordinates = _LINEAR[coordinates]
    into.add("Resize", (source,), written, output=output, mode=mode, coordinates=coordinates)


def _rounding_mode(operator: Operator, scale: float) -> str:
    if _is_old(operator):
        return "ceil" if scale < 1 else "floor"
    return text(operator, "nearest_mode", "round_prefer_floor")


def _is_old(operator: Operator) -> bool:
    """Whether it is of opset 10 or older, when ONNX did not yet say which elements it picks."""
    return operator.type == "Upsample" or len(operator.inputs) == 2


def _scales(operator: Operator, into: Steps) -> tuple[float, ...]:
    constant = all(into.is_constant(name) for name in operator.inputs[1:] if name)
    require(constant, "its size is not constant")
    read, written = (into.shape(name) for name in (operator.inputs[0], operator.outputs[0]))
    attribute = operator.attributes.get("scales")
    axes = integers(operator, "axes", range(len(read)))
    scales = [out / size for size, out in zip(read, written, strict=True)]
    if isinstance(attribute, tuple):
        for axis, scale in zip(axes, map(float, attribute), strict=True):
            scales[axis] = scale
    policy = text(operator, "keep_aspect_ratio_policy", "stretch")
    require(policy == "stretch", "it keeps the aspect ratio")
    return tuple(scales)


def _nearest(size: int, out: int, scale: float, coordinates: str, rounding: str) -> list[int]:
    """Return which elements an axis of ONNX's Resize picks; empty if its words are unknown."""
    if rounding not in _ROUNDINGS:
        return []
    places = [_source_position(at, (size, out), scale, coordinates) for at in range(out)]
    nearest = [_ROUNDINGS[rounding](place) for place in places if place is not None]
    return [min(max(element, 0), size - 1) for element in nearest]


def _source_position(
    at: int, extents: tuple[int, int], scale: float, coordinates: str
) -> float | None:
    """Return where an element of the output lies in the input; the equations are ONNX's."""
    size, out = extents
    if coordinates == "asymmetric":
        return at / scale
    if coordinates == "half_pixel" or (coordinates == "pytorch_half_pixel" and out > 1):
        return (at + 0.5) / scale - 0.5
    if coordinates == "align_corners" and out > 1:
        return at * (size - 1) / (out - 1)
    return 0.0 if coordinates in ("align_corners", "pytorch_half_pixel") else None


_ROUNDINGS: Mapping[str, Callable[[float], int]] = {
    "floor": math.floor,
    "ceil": math.ceil,
    "round_prefer_floor": lambda place: math.ceil(place - 0.5),
    "round_prefer_ceil": lambda place: math.floor(place + 0.5),
}
_CONDITION = (
    "height and width only, constant size; nearest: the elements ⌊i · size / new size⌋; linear: a "
    "scale that gives whole sizes"
)
RULES: Mapping[str, Rule] = {
    "MaxPool": Rule(
        pool,
        "MaxPool, or GlobalMaxPool where the window is the image; over a line: Reshape around it",
        "no dilation; the indices are not used; padding smaller than the window",
    ),
    "AveragePool": Rule(
        pool,
        "AveragePool, or GlobalAveragePool where the window is the image; over a line: Reshape "
        "around it",
        "no dilation; padding smaller than the window; not both `ceil_mode` and "
        "`count_include_pad` where the last window reaches beyond the padding",
    ),
    **{
        kind: Rule(global_pool, f"{kind}; over a line: Reshape around it")
        for kind in ("GlobalAveragePool", "GlobalMaxPool")
    },
    "Resize": Rule(resize, "Resize", _CONDITION),
    "Upsample": Rule(resize, "Resize", _CONDITION),
}
