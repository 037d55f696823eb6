"""Views: the same elements under another shape; cut where an axis, or its outer part, survives."""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd, prod

from parapipe.graph.parts.part import Cut, Part, Range, RangeError, Rule, Shape, Single, WholeError


def _view(single: Single, axis: int) -> Cut:
    """Cut an operator that changes nothing but the shape.

    The axis lies in a block of axes with as many elements as one of the input's. If all before it
    in its block are of size 1, its range is a range of the first larger axis of the other block.
    """
    before, after = single.shape(), single.output
    block = _block(before, after, axis)
    if any(size != 1 for size in after[block.after : axis]):
        raise WholeError("that axis is made of several axes, or of parts of one, of its input")
    read = next(at for at in range(block.before, len(before)) if before[at] != 1)
    inner_after = prod(after[axis + 1 : block.after_end])
    inner_before = prod(before[read + 1 : block.before_end])
    step = inner_before // gcd(inner_before, inner_after)

    def part(begin: int, end: int) -> Part:
        if begin % step or end % step:
            raise RangeError(f"it is cut at multiples of {step} only")
        scaled = Range(read, begin * inner_after // inner_before, end * inner_after // inner_before)
        changed = (*after[:axis], end - begin, *after[axis + 1 :])
        shape = {"shape": changed} if single.type == "Reshape" else {}
        return Part(single.reads({0: (scaled,)}), shape)

    return Cut(part, step)


class _Block:
    """Axes of the input and of the result that hold the same elements."""

    def __init__(self, before: int, before_end: int, after: int, after_end: int) -> None:
        self.before, self.before_end = before, before_end
        self.after, self.after_end = after, after_end


def _block(before: Shape, after: Shape, axis: int) -> _Block:
    """Return the smallest block that an axis of the result lies in."""
    if 0 in after:
        raise WholeError("it has no elements")
    i = j = 0
    while True:
        begin = i, j
        left, right = _next(before, i), _next(after, j)
        (left_size, i), (right_size, j) = left, right
        while left_size != right_size:
            if left_size < right_size:
                size, i = _next(before, i)
                left_size *= size
            else:
                size, j = _next(after, j)
                right_size *= size
        if axis < j:
            return _Block(begin[0], i, begin[1], j)


def _next(shape: Shape, at: int) -> tuple[int, int]:
    """Return the size of the next axis that is larger than 1, and the one behind it."""
    while at < len(shape) - 1 and shape[at] == 1:
        at += 1
    return shape[at], at + 1


RULES: Mapping[str, Rule] = dict.fromkeys(("Reshape", "Flatten", "Squeeze", "Unsqueeze"), _view)
