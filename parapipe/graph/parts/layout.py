"""Operators that move elements: Concat, Slice, Split, Pad, Transpose, Gather and others."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate

from parapipe.graph.parts.part import (
    Cut,
    Part,
    Range,
    RangeError,
    Ranges,
    Rule,
    Single,
    WholeError,
    along,
    along_same,
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
        raise WholeError("where it begins and ends is not known")
    axes = tuple(each % single.rank for each in axes)
    if axis not in axes:
        return along((0, axis))
    at = axes.index(axis)
    if single.has(4) and "steps" not in single.attributes:
        raise WholeError("its steps are not known")
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


def _split(single: Single, axis: int) -> Cut:
    own = single.integer("axis", 0) % single.rank
    return along_same(axis, [own], "its results have different ranges along that axis")


def _pad(single: Single, axis: int) -> Cut:
    rank = single.rank
    pads = single.integers("pads") or single.integers("paddings")
    if single.has(3):
        raise WholeError("the axes that it pads are not known")
    if not pads:
        raise WholeError("its padding is not known")
    if not (pads[axis] or pads[rank + axis]):
        return along((0, axis))
    mode = single.text("mode", "constant")
    if mode not in ("constant", "edge"):
        raise WholeError(f"it pads that axis in the mode '{mode}'")
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
        raise WholeError("in the mode 'DCR', a channel takes channels far from each other")
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
        raise WholeError("its channels take elements of all blocks")
    scale = 1 if axis == 0 else block
    return Cut(lambda begin, end: Part(((Range(axis, begin * scale, end * scale),),)))


def _grid_sample(single: Single, axis: int) -> Cut:
    if axis > 1:
        return along((1, axis - 1))
    return along((0, 1)) if axis else along((0, 0), (1, 0))


RULES: Mapping[str, Rule] = {
    "Concat": concat(),
    "Slice": _slice,
    "Split": _split,
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
