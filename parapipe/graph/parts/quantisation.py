"""QuantizeLinear, DequantizeLinear and kernels for integers that are standard operators else."""

from __future__ import annotations

from collections.abc import Mapping

from parapipe.graph.parts.layout import concat
from parapipe.graph.parts.part import Cut, Part, Range, Ranges, Rule, Single, WholeError, same_axis


def _linear(single: Single, axis: int) -> Cut:
    """Cut an operator whose scale is one number, one per element of an axis, or one per block."""
    scale = single.shape(1)
    own = single.integer("axis", 1) % max(1, single.rank)
    if len(scale) > 1:
        if single.integer("block_size", 0) and axis == own:
            raise WholeError("it has a scale for each block along that axis")
        return same_axis()(single, axis)
    per_element = axis == own and scale not in ((), (1,))

    def part(begin: int, end: int) -> Part:
        beside: Ranges = (Range(0, begin, end),) if per_element else ()
        return Part(single.reads({0: (Range(axis, begin, end),), 1: beside, 2: beside}))

    return Cut(part)


RULES: Mapping[str, Rule] = dict.fromkeys(("QuantizeLinear", "DequantizeLinear"), _linear)
# Scales and zero points of these are single numbers.
MICROSOFT: Mapping[str, Rule] = {
    **RULES,
    **dict.fromkeys(("QLinearAdd", "QLinearMul"), same_axis(0, 3)),
    **dict.fromkeys(("QLinearSigmoid", "QLinearLeakyRelu"), same_axis(0)),
    "QLinearConcat": concat(first=2, each=3),
    "QLinearWhere": same_axis(0, 1, 4),
}
