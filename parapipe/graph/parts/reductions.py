"""Reductions: whole along the axes that they reduce."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from parapipe.graph.parts.part import Cut, Rule, Single, WholeError, along, along_same

_REDUCES = "it reduces that axis"
_KINDS = "Mean Sum Max Min Prod L1 L2 LogSum LogSumExp SumSquare"


def _reduce(single: Single, axis: int) -> Cut:
    axes = single.integers("axes")
    if not axes and single.has(1):
        raise WholeError("its axes are not known")
    if not axes and single.integer("noop_with_empty_axes", 0):
        return along((0, axis))
    rank = len(single.shape())
    return _kept(single, axis, [each % rank for each in axes] or range(rank))


def _arg(single: Single, axis: int) -> Cut:
    return _kept(single, axis, [single.integer("axis", 0) % len(single.shape())])


def _kept(single: Single, axis: int, reduced: Sequence[int]) -> Cut:
    if single.integer("keepdims", 1):
        return along_same(axis, reduced, _REDUCES)
    left = [each for each in range(len(single.shape())) if each not in reduced]
    return along((0, left[axis]))


def _top_k(single: Single, axis: int) -> Cut:
    return along_same(axis, [single.integer("axis", -1) % single.rank], "it sorts along that axis")


RULES: Mapping[str, Rule] = {
    **dict.fromkeys([f"Reduce{kind}" for kind in _KINDS.split()], _reduce),
    **dict.fromkeys(("ArgMax", "ArgMin"), _arg),
    "TopK": _top_k,
}
