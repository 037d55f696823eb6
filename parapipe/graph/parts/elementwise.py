"""Operators that make each element of one element of each input, which may be broadcast."""

from __future__ import annotations

from collections.abc import Mapping

from parapipe.graph.parts.part import Cut, Part, Range, Rule, Single, broadcast, same_axis

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
        asked = Range(axis, begin, end)
        shape = (*single.output[:axis], end - begin, *single.output[axis + 1 :])
        reads = {0: broadcast(single.shape(), single.rank, asked)}
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
