"""Operators element by element, views, reductions and normalisations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import gcd, prod
from typing import NamedTuple

from parapipe.parts.part import (
    Cut,
    NotCuttableError,
    Part,
    Range,
    RangeError,
    Rule,
    Shape,
    Single,
    along,
    along_same,
    broadcast,
    except_own_axis,
    same_axis,
)

_ANY_AXIS = (
    "Relu LeakyRelu PRelu ThresholdedRelu Elu Celu Selu Gelu Mish Swish HardSwish HardSigmoid "
    "Sigmoid Tanh Softplus Softsign Clip Shrink Erf Exp Log Sqrt Reciprocal Abs Neg Sign Ceil "
    "Floor Round Sin Cos Tan Asin Acos Atan Sinh Cosh Asinh Acosh Atanh Add Sub Mul Div Pow "
    "Mod Max Min Sum Mean And Or Xor Not Equal Greater GreaterOrEqual Less LessOrEqual IsNaN "
    "IsInf Where Cast BitShift BitwiseAnd BitwiseOr BitwiseXor BitwiseNot Identity"
)
ANY_AXIS = frozenset(_ANY_AXIS.split())
"""Types of the standard domain that can be cut along any axis."""


def expand(single: Single, axis: int) -> Cut:
    """Cut an Expand: an axis that it repeats is read whole."""

    def part(begin: int, end: int) -> Part:
        requested = Range(axis, begin, end)
        shape = (*single.output[:axis], end - begin, *single.output[axis + 1 :])
        reads = {0: broadcast(single.shape(), single.rank, requested)}
        return Part(single.reads(reads), {"shape": shape})

    return Cut(part)


RULES: Mapping[str, Rule] = {
    **dict.fromkeys(_ANY_AXIS.split(), same_axis()),
    "CastLike": same_axis(0),  # of the second, the type alone
    "Dropout": same_axis(0),
    "Expand": expand,
}
MICROSOFT: Mapping[str, Rule] = dict.fromkeys(
    ("Gelu", "FastGelu", "BiasGelu", "QuickGelu"), same_axis()
)


def _view(single: Single, axis: int) -> Cut:
    """Cut an operator that changes nothing but the shape.

    The axis lies in a block of axes with as many elements as one of the input's. If all before it
    in its block are of size 1, its range is a range of the first larger axis of the other block.
    """
    before, after = single.shape(), single.output
    block = _find_block(before, after, axis)
    if any(size != 1 for size in after[block.after : axis]):
        raise NotCuttableError(
            "that axis is made of several axes, or of parts of one, of its input"
        )
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


class _Block(NamedTuple):
    """Axes of the input and of the result that hold the same elements."""

    before: int
    before_end: int
    after: int
    after_end: int


def _find_block(before: Shape, after: Shape, axis: int) -> _Block:
    """Return the smallest block that an axis of the result lies in."""
    if 0 in after:
        raise NotCuttableError("it has no elements")
    i = j = 0
    while True:
        begin = i, j
        left, right = _next_large_axis(before, i), _next_large_axis(after, j)
        (left_size, i), (right_size, j) = left, right
        while left_size != right_size:
            if left_size < right_size:
                size, i = _next_large_axis(before, i)
                left_size *= size
            else:
                size, j = _next_large_axis(after, j)
                right_size *= size
        if axis < j:
            return _Block(begin[0], i, begin[1], j)


def _next_large_axis(shape: Shape, at: int) -> tuple[int, int]:
    """Return the size of the next axis that is larger than 1, and the one behind it."""
    while at < len(shape) - 1 and shape[at] == 1:
        at += 1
    return shape[at], at + 1


VIEW_RULES: Mapping[str, Rule] = dict.fromkeys(
    ("Reshape", "Flatten", "Squeeze", "Unsqueeze"), _view
)


_REDUCES = "it reduces that axis"
_KINDS = "Mean Sum Max Min Prod L1 L2 LogSum LogSumExp SumSquare"


def _reduce(single: Single, axis: int) -> Cut:
    axes = single.integers("axes")
    if not axes and single.has(1):
        raise NotCuttableError("its axes are not known")
    if not axes and single.integer("noop_with_empty_axes", 0):
        return along((0, axis))
    rank = len(single.shape())
    return _cut_beside_reduced(single, axis, [each % rank for each in axes] or range(rank))


def _cut_beside_reduced(single: Single, axis: int, reduced: Sequence[int]) -> Cut:
    if single.integer("keepdims", 1):
        return along_same(axis, reduced, _REDUCES)
    left = [each for each in range(len(single.shape())) if each not in reduced]
    return along((0, left[axis]))


REDUCTION_RULES: Mapping[str, Rule] = {
    **dict.fromkeys([f"Reduce{kind}" for kind in _KINDS.split()], _reduce),
    **dict.fromkeys(
        ("ArgMax", "ArgMin"),
        lambda single, axis: _cut_beside_reduced(
            single, axis, [single.integer("axis", 0) % len(single.shape())]
        ),
    ),
    "TopK": except_own_axis(-1, "it sorts along that axis"),
}


_NORMALISES = "it normalises along that axis"
_PER_CHANNEL = 5  # inputs of BatchNormalization; all but the first have an element per channel
_SOFTMAX_BY_AXIS = 13  # the opset since which Softmax does not flatten its input


def _batch_norm(single: Single, axis: int) -> Cut:
    if single.integer("training_mode", 0) or len(single.outputs) > 1:
        raise NotCuttableError("it is in training mode")
    if not single.integer("spatial", 1) and axis > 0:
        raise NotCuttableError("it has a scale for each element of a channel")
    if axis != min(1, single.rank - 1):
        return along((0, axis))
    return along((0, axis), *((position, 0) for position in range(1, _PER_CHANNEL)))


def _norm_behind(default: int) -> Rule:
    """Return the rule of what normalises along an axis and all behind it."""

    def rule(single: Single, axis: int) -> Cut:
        first = single.integer("axis", default) % single.rank
        if axis >= first:
            raise NotCuttableError(_NORMALISES)
        return same_axis()(single, axis)

    return rule


def _instance_norm(_single: Single, axis: int) -> Cut:
    if axis > 1:
        raise NotCuttableError(_NORMALISES)
    return along((0, 1), (1, 0), (2, 0)) if axis else along((0, 0))


def _group_norm(single: Single, axis: int) -> Cut:
    if axis != 1:
        return along_same(axis, range(1, single.rank), _NORMALISES)
    groups = single.integer("num_groups", 1)
    size = single.output[1] // groups

    def part(begin: int, end: int) -> Part:
        if begin % size or end % size:
            raise RangeError(f"its channels are cut between its {groups} groups only")
        per_group = single.shape(1) == (groups,) != (single.output[1],)
        own = Range(0, begin // size, end // size) if per_group else Range(0, begin, end)
        ranges = {0: (Range(1, begin, end),), 1: (own,), 2: (own,)}
        return Part(single.reads(ranges), {"num_groups": (end - begin) // size})

    return Cut(part, size)


def _local_response(single: Single, axis: int) -> Cut:
    if axis != 1:
        return along((0, axis))
    size, channels = single.integer("size", 1), single.output[1]

    def part(begin: int, end: int) -> Part:
        computed = Range(1, max(0, begin - (size - 1) // 2), min(channels, end + size // 2))
        return Part(((computed,),), computed=computed)

    return Cut(part)


def _softmax(single: Single, axis: int) -> Cut:
    flattens = single.opset < _SOFTMAX_BY_AXIS
    own = single.integer("axis", 1 if flattens else -1) % single.rank
    wholly = range(own, single.rank) if flattens else [own]
    return along_same(axis, wholly, _NORMALISES)


NORMALISATION_RULES: Mapping[str, Rule] = {
    "BatchNormalization": _batch_norm,
    **dict.fromkeys(
        ("LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization"), _norm_behind(-1)
    ),
    "InstanceNormalization": _instance_norm,
    "GroupNormalization": _group_norm,
    "LRN": _local_response,
    "LpNormalization": except_own_axis(-1, _NORMALISES),
    "MeanVarianceNormalization": lambda single, axis: along_same(
        axis, single.integers("axes", (0, 2, 3)), _NORMALISES
    ),
    **dict.fromkeys(("Softmax", "LogSoftmax", "Hardmax"), _softmax),
}
MICROSOFT_NORMALISATIONS: Mapping[str, Rule] = dict.fromkeys(
    ("SkipLayerNormalization", "SkipSimplifiedLayerNormalization"), _norm_behind(-1)
)
