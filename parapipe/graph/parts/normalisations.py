"""Normalisations and Softmax: whole along the axes that they take a mean or a sum of."""

from __future__ import annotations

from collections.abc import Mapping

from parapipe.graph.parts.part import (
    Cut,
    Part,
    Range,
    RangeError,
    Rule,
    Single,
    WholeError,
    along,
    along_same,
    same_axis,
)

_NORMALISES = "it normalises along that axis"
_PER_CHANNEL = 5  # inputs of BatchNormalization; all but the first have an element per channel
_SOFTMAX_BY_AXIS = 13  # the opset since which Softmax does not flatten its input


def _batch_norm(single: Single, axis: int) -> Cut:
    if single.integer("training_mode", 0) or len(single.outputs) > 1:
        raise WholeError("it is in training mode")
    if not single.integer("spatial", 1) and axis > 0:
        raise WholeError("it has a scale for each element of a channel")
    if axis != min(1, single.rank - 1):
        return along((0, axis))
    return along((0, axis), *((position, 0) for position in range(1, _PER_CHANNEL)))


def _trailing(default: int) -> Rule:
    """Return the rule of what normalises along an axis and all behind it."""

    def rule(single: Single, axis: int) -> Cut:
        first = single.integer("axis", default) % single.rank
        if axis >= first:
            raise WholeError(_NORMALISES)
        return same_axis()(single, axis)

    return rule


def _instance_norm(_single: Single, axis: int) -> Cut:
    if axis > 1:
        raise WholeError(_NORMALISES)
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
        made = Range(1, max(0, begin - (size - 1) // 2), min(channels, end + size // 2))
        return Part(((made,),), made=made)

    return Cut(part)


def _softmax(single: Single, axis: int) -> Cut:
    flattens = single.opset < _SOFTMAX_BY_AXIS
    own = single.integer("axis", 1 if flattens else -1) % single.rank
    wholly = range(own, single.rank) if flattens else [own]
    return along_same(axis, wholly, _NORMALISES)


def _one_axis(default: int) -> Rule:
    def rule(single: Single, axis: int) -> Cut:
        return along_same(axis, [single.integer("axis", default) % single.rank], _NORMALISES)

    return rule


def _mean_variance(single: Single, axis: int) -> Cut:
    return along_same(axis, single.integers("axes", (0, 2, 3)), _NORMALISES)


RULES: Mapping[str, Rule] = {
    "BatchNormalization": _batch_norm,
    **dict.fromkeys(
        ("LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization"), _trailing(-1)
    ),
    "InstanceNormalization": _instance_norm,
    "GroupNormalization": _group_norm,
    "LRN": _local_response,
    "LpNormalization": _one_axis(-1),
    "MeanVarianceNormalization": _mean_variance,
    **dict.fromkeys(("Softmax", "LogSoftmax", "Hardmax"), _softmax),
}
MICROSOFT: Mapping[str, Rule] = dict.fromkeys(
    ("SkipLayerNormalization", "SkipSimplifiedLayerNormalization"), _trailing(-1)
)
