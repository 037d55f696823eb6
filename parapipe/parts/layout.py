"""Operators that move elements, resize or quantise them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import accumulate
from math import ceil, floor

import numpy as np

from parapipe.graph.operator_graph import AttributeValue
from parapipe.parts.part import (
    Cut,
    NotCuttableError,
    Part,
    Range,
    RangeError,
    Ranges,
    Rule,
    Single,
    along,
    along_same,
    except_own_axis,
    same_axis,
)

_END = 2**31 - 1  # beyond any tensor, in the narrowest type that a Slice takes


def concat(first: int = 0, each: int = 1) -> Rule:
    """Return the rule of Concat.

    Parameters
    ----------
    first, each
        Position of the first tensor, and how many inputs belong to each tensor.
    """

    def rule(single: Single, axis: int) -> Cut:
        own = single.integer("axis", 1) % single.rank
        positions = range(first, len(single.inputs), each)
        if axis != own:
            return along(*((position, axis) for position in positions))
        ends = list(accumulate(single.shape(position)[own] for position in positions))

        def of_tensor(at: int, begin: int, end: int) -> tuple[Ranges | None, ...]:
            start = ends[at - 1] if at else 0
            read = Range(own, max(begin, start) - start, min(end, ends[at]) - start)
            return ((read,), *((),) * (each - 1)) if read.size > 0 else (None,) * each

        def part(begin: int, end: int) -> Part:
            tensors = (of_tensor(at, begin, end) for at in range(len(ends)))
            return Part((*((),) * first, *(ranges for tensor in tensors for ranges in tensor)))

        return Cut(part)

    return rule


def _slice(single: Single, axis: int) -> Cut:
    starts, ends = single.integers("starts"), single.integers("ends")
    axes = single.integers("axes", range(len(starts)))
    if not starts or not ends or (single.has(3) and "axes" not in single.attributes):
        raise NotCuttableError("where it begins and ends is not known")
    axes = tuple(each % single.rank for each in axes)
    if axis not in axes:
        return along((0, axis))
    at = axes.index(axis)
    if single.has(4) and "steps" not in single.attributes:
        raise NotCuttableError("its steps are not known")
    step = single.integers("steps", (1,) * len(starts))[at]
    size = single.shape()[axis]
    start = min(max(starts[at] + (size if starts[at] < 0 else 0), 0), size - (step < 0))

    def part(begin: int, end: int) -> Part:
        first, last = start + begin * step, start + (end - 1) * step
        read = Range(axis, min(first, last), max(first, last) + 1)
        begins, stops = list(starts), list(ends)
        begins[at], stops[at] = (0, _END) if step > 0 else (-1, -_END)
        return Part(single.reads({0: (read,)}), {"starts": tuple(begins), "ends": tuple(stops)})

    return Cut(part)


def _pad(single: Single, axis: int) -> Cut:
    rank = single.rank
    pads = single.integers("pads") or single.integers("paddings")
    if single.has(3):
        raise NotCuttableError("the axes that it pads are not known")
    if not pads:
        raise NotCuttableError("its padding is not known")
    if not (pads[axis] or pads[rank + axis]):
        return along((0, axis))
    mode = single.text("mode", "constant")
    if mode not in ("constant", "edge"):
        raise NotCuttableError(f"it pads that axis in the mode '{mode}'")
    size = single.shape()[axis]

    def part(begin: int, end: int) -> Part:
        first, last = begin - pads[axis], end - pads[axis]
        read = Range(axis, max(0, first), min(size, last))
        if read.size <= 0:
            raise RangeError("a part would be nothing but padding")
        changed = list(pads)
        changed[axis], changed[rank + axis] = read.begin - first, last - read.end
        return Part(single.reads({0: (read,)}), {"pads": tuple(changed)})

    return Cut(part)


def _transpose(single: Single, axis: int) -> Cut:
    order = single.integers("perm", range(single.rank)[::-1])
    return along((0, order[axis]))


def _gather(single: Single, axis: int) -> Cut:
    own = single.integer("axis", 0) % len(single.shape())
    behind = own + len(single.shape(1))
    if axis < own:
        return along((0, axis))
    if axis < behind:
        return along((1, axis - own))
    return along((0, axis - behind + own + 1))


def _gather_elements(single: Single, axis: int) -> Cut:
    own = single.integer("axis", 0) % single.rank
    return along((1, axis)) if axis == own else along((0, axis), (1, axis))


def _tile(single: Single, axis: int) -> Cut:
    repeated = [at for at in range(single.rank) if single.shape()[at] != single.output[at]]
    return along_same(axis, repeated, "it repeats that axis")


def _trilu(single: Single, axis: int) -> Cut:
    return along_same(axis, range(single.rank - 2, single.rank), "it counts diagonals")


def _depth_to_space(single: Single, axis: int) -> Cut:
    block = single.integer("blocksize", 1)
    if axis == 1 and single.text("mode", "DCR") != "CRD":
        raise NotCuttableError("in the mode 'DCR', a channel takes channels far from each other")
    scale = (1, block * block, 1, 1)[axis]
    step = (1, 1, block, block)[axis]

    def part(begin: int, end: int) -> Part:
        if begin % step or end % step:
            raise RangeError(f"it is cut between its blocks of {block} only")
        return Part(((Range(axis, begin * scale // step, end * scale // step),),))

    return Cut(part, step)


def _space_to_depth(single: Single, axis: int) -> Cut:
    block = single.integer("blocksize", 1)
    if axis == 1:
        raise NotCuttableError("its channels take elements of all blocks")
    scale = 1 if axis == 0 else block
    return Cut(lambda begin, end: Part(((Range(axis, begin * scale, end * scale),),)))


def _grid_sample(single: Single, axis: int) -> Cut:
    if axis > 1:
        return along((1, axis - 1))
    return along((0, 1)) if axis else along((0, 0), (1, 0))


RULES: Mapping[str, Rule] = {
    "Concat": concat(),
    "Slice": _slice,
    "Split": except_own_axis(0, "its results have different ranges along that axis"),
    "Pad": _pad,
    "Transpose": _transpose,
    "Gather": _gather,
    "GatherElements": _gather_elements,
    "Tile": _tile,
    "Trilu": _trilu,
    "DepthToSpace": _depth_to_space,
    "SpaceToDepth": _space_to_depth,
    "GridSample": _grid_sample,
}


_SHIFTED = frozenset({"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel"})
_REACH = {"nearest": 1, "linear": 1, "cubic": 2}  # rows read on either side of a place


@dataclass(frozen=True, slots=True)
class _Axis:
    """How an axis is resized.

    Parameters
    ----------
    ratio
        Rows made of one that is read.
    size, output
        Rows of the input and of the result.
    shift
        Where in a row its place is: 1/2 if rows are taken as having an extent.
    reach
        Rows that are read on either side of a place.
    """

    ratio: Fraction
    size: int
    output: int
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
    old = single.type == "Upsample" or 0 < single.opset < 11
    mode = single.text("coordinate_transformation_mode", "asymmetric" if old else "half_pixel")
    if mode not in (*_SHIFTED, "asymmetric"):
        raise NotCuttableError(f"a row's place depends on the number of rows ('{mode}')")
    if single.integer("antialias", 0):
        raise NotCuttableError("it smooths along that axis (antialias)")
    if single.text("keep_aspect_ratio_policy", "stretch") != "stretch":
        raise NotCuttableError("it keeps the ratio of the image's sides")
    size, output = single.shape()[axis], single.output[axis]
    shift = Fraction(1, 2) if mode in _SHIFTED else Fraction(0)
    reach = _REACH.get(single.text("mode", "nearest"), 2)
    resized = _Axis(Fraction(output, size), size, output, shift, reach)
    scale = _scale_of(single, axis)
    if scale is not None and abs(scale * size - output) > 1e-5 * output:
        raise NotCuttableError("its scale is no ratio of its sizes")
    return Cut(partial(_cut_rows, single, resized, axis))


def _resized_axes(single: Single) -> tuple[int, ...]:
    return tuple(at % single.rank for at in single.integers("axes", range(single.rank)))


def _is_resized(single: Single, axis: int) -> bool:
    return axis in _resized_axes(single) and (
        single.output[axis] != single.shape()[axis] or _scale_of(single, axis) not in (None, 1.0)
    )


def _scale_of(single: Single, axis: int) -> float | None:
    """Return the scale that is stated for an axis; None if a size is."""
    scales = single.attributes.get("scales")
    if not isinstance(scales, tuple):
        if single.attributes.get("sizes") is None:
            raise NotCuttableError("its scales are not known")
        return None
    return float(scales[_resized_axes(single).index(axis)])


def _unresized(single: Single, axis: int, begin: int, end: int) -> Part:
    cut = along((0, axis)).part(begin, end)
    return Part(cut.reads, _part_sizes(single, axis, end - begin))


def _part_sizes(single: Single, axis: int, length: int) -> dict[str, AttributeValue | None]:
    """Return the sizes of a part, where the operator states sizes."""
    sizes = single.integers("sizes")
    axes = _resized_axes(single)
    if not sizes or axis not in axes:
        return {}
    return {"sizes": tuple(length if at == axis else n for at, n in zip(axes, sizes, strict=True))}


def _cut_rows(single: Single, resized: _Axis, axis: int, begin: int, end: int) -> Part:
    first, last = resized.read(begin, end)
    computed = Range(axis, int(first * resized.ratio), int(last * resized.ratio))
    scale = _scale_of(single, axis)
    if scale is not None and floor(np.float32(last - first) * np.float32(scale)) != computed.size:
        raise RangeError("its scale is no ratio of its sizes")
    if computed.size <= 1:
        raise RangeError("a part would be a single row")
    return Part(((Range(axis, first, last),),), _part_sizes(single, axis, computed.size), computed)


RESIZE_RULES: Mapping[str, Rule] = {"Resize": _resize, "Upsample": _resize}


def _quantise_linear(single: Single, axis: int) -> Cut:
    """Cut an operator whose scale is one number, one per element of an axis, or one per block."""
    scale = single.shape(1)
    own = single.integer("axis", 1) % max(1, single.rank)
    if len(scale) > 1:
        if single.integer("block_size", 0) and axis == own:
            raise NotCuttableError("it has a scale for each block along that axis")
        return same_axis()(single, axis)
    per_element = axis == own and scale not in ((), (1,))

    def part(begin: int, end: int) -> Part:
        beside: Ranges = (Range(0, begin, end),) if per_element else ()
        return Part(single.reads({0: (Range(axis, begin, end),), 1: beside, 2: beside}))

    return Cut(part)


QUANTISATION_RULES: Mapping[str, Rule] = dict.fromkeys(
    ("QuantizeLinear", "DequantizeLinear"), _quantise_linear
)
# Scales and zero points of these are single numbers.
MICROSOFT_QUANTISATION: Mapping[str, Rule] = {
    **QUANTISATION_RULES,
    **dict.fromkeys(("QLinearAdd", "QLinearMul"), same_axis(0, 3)),
    **dict.fromkeys(("QLinearSigmoid", "QLinearLeakyRelu"), same_axis(0)),
    "QLinearConcat": concat(first=2, each=3),
    "QLinearWhere": same_axis(0, 1, 4),
}
