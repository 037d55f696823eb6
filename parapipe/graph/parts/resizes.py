"""Resize and Upsample: parts begin where a row of the result lies exactly on a row of the input."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import ceil, floor

import numpy as np

from parapipe.graph.operator_graph import AttributeValue
from parapipe.graph.parts.part import Cut, Part, Range, RangeError, Rule, Single, WholeError, along

_SHIFTED = frozenset({"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel"})
_REACH = {"nearest": 1, "linear": 1, "cubic": 2}  # rows read on either side of a place
_BY_SIZES = 3  # position of the input `sizes`


@dataclass(frozen=True, slots=True)
class _Axis:
    """How an axis is resized.

    Parameters
    ----------
    ratio
        Rows made of one that is read.
    size, made
        Rows of the input and of the result.
    shift
        Where in a row its place is: 1/2 if rows are taken as having an extent.
    reach
        Rows that are read on either side of a place.
    """

    ratio: Fraction
    size: int
    made: int
    shift: Fraction
    reach: int

    def read(self, begin: int, end: int) -> tuple[int, int]:
        """Return the rows to read: they begin where a row of the result lies on one of them."""
        step_in, step_out = self.ratio.denominator, self.ratio.numerator
        first = floor((begin + self.shift) / self.ratio - self.shift) - self.reach
        last = ceil((end - 1 + self.shift) / self.ratio - self.shift) + self.reach + 1
        first = max(0, first) // step_in * step_in
        last = min(self.size, -(-last // step_in) * step_in)
        # A single row would be taken as one that is not resized.
        while (last - first) // step_in * step_out <= 1 and last < self.size:
            last += step_in
        return first, last


def _resize(single: Single, axis: int) -> Cut:
    if not _is_resized(single, axis):
        return Cut(partial(_unresized, single, axis))
    mode = single.text("coordinate_transformation_mode", _default_coordinates(single))
    if mode not in (*_SHIFTED, "asymmetric"):
        raise WholeError(f"a row's place depends on the number of rows ('{mode}')")
    if single.integer("antialias", 0):
        raise WholeError("it smooths along that axis (antialias)")
    if single.text("keep_aspect_ratio_policy", "stretch") != "stretch":
        raise WholeError("it keeps the ratio of the image's sides")
    size, made = single.shape()[axis], single.output[axis]
    shift = Fraction(1, 2) if mode in _SHIFTED else Fraction(0)
    reach = _REACH.get(single.text("mode", "nearest"), 2)
    resized = _Axis(Fraction(made, size), size, made, shift, reach)
    scale = _scale(single, axis)
    if scale is not None and abs(scale * size - made) > 1e-5 * made:
        raise WholeError("its scale is no ratio of its sizes")
    return Cut(partial(_rows, single, resized, axis))


def _default_coordinates(single: Single) -> str:
    old = single.type == "Upsample" or 0 < single.opset < 11
    return "asymmetric" if old else "half_pixel"


def _axes(single: Single) -> tuple[int, ...]:
    return tuple(at % single.rank for at in single.integers("axes", range(single.rank)))


def _is_resized(single: Single, axis: int) -> bool:
    return axis in _axes(single) and (
        single.output[axis] != single.shape()[axis] or _scale(single, axis) not in (None, 1.0)
    )


def _scale(single: Single, axis: int) -> float | None:
    """Return the scale that is stated for an axis; None if a size is."""
    scales = single.attributes.get("scales")
    if not isinstance(scales, tuple):
        if single.attributes.get("sizes") is None:
            raise WholeError("its scales are not known")
        return None
    return float(scales[_axes(single).index(axis)])


def _unresized(single: Single, axis: int, begin: int, end: int) -> Part:
    cut = along((0, axis)).part(begin, end)
    return Part(cut.reads, _sizes(single, axis, end - begin))


def _sizes(single: Single, axis: int, made: int) -> dict[str, AttributeValue | None]:
    """Return the sizes of a part, where the operator states sizes."""
    sizes = single.integers("sizes")
    axes = _axes(single)
    if not sizes or axis not in axes:
        return {}
    return {"sizes": tuple(made if at == axis else n for at, n in zip(axes, sizes, strict=True))}


def _rows(single: Single, resized: _Axis, axis: int, begin: int, end: int) -> Part:
    first, last = resized.read(begin, end)
    made = Range(axis, int(first * resized.ratio), int(last * resized.ratio))
    scale = _scale(single, axis)
    if scale is not None and floor(np.float32(last - first) * np.float32(scale)) != made.size:
        raise RangeError("its scale is no ratio of its sizes")
    if made.size <= 1:
        raise RangeError("a part would be a single row")
    return Part(((Range(axis, first, last),),), _sizes(single, axis, made.size), made)


RULES: Mapping[str, Rule] = {"Resize": _resize, "Upsample": _resize}
