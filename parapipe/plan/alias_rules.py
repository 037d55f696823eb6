"""Rules on tensors that share bytes, by what ONNX says of operators; planners have their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from math import prod

from parapipe.graph.operator_graph import Operator, Tensor
from parapipe.parts.elementwise import ANY_AXIS, MICROSOFT

SAME_ELEMENTS = frozenset({"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity"})
"""Types whose result has the elements of the first operand in the same order."""
Shape = Sequence[int]
Alias = tuple[str, str, int]
"""A tensor, another one whose elements it consists of, and the first of these, in C order."""


def overwritable(operator: Operator, tensors: Mapping[str, Tensor]) -> Iterator[str]:
    """Yield the operands that an operator may overwrite by its result while it reads them.

    An element of the result has to take the place of the only element of that operand that it is
    made of, and nothing may read the operand later: not what is fused with the operator, and not
    the operator itself, which takes more than two operands one after the other. Both have to have
    elements of the same size where they are kept, which is not looked at here.
    """
    singles = operator.parts or (operator,)
    if len(operator.outputs) != 1 or not all(map(_is_elementwise, singles)):
        return
    shape = tensors[operator.outputs[0]].shape
    first = singles[0]
    later = {*first.inputs[2:], *(name for each in singles[1:] for name in each.inputs)}
    for name in dict.fromkeys(first.inputs[:2]):
        if name in tensors and name not in later and tensors[name].shape == shape:
            yield name


def _is_elementwise(single: Operator) -> bool:
    if single.type == "Where":  # it reads the condition, and then the other operands
        return False
    types = {"": ANY_AXIS, "com.microsoft": MICROSOFT}.get(single.domain, ())
    return single.type in types and len(single.outputs) == 1


def aliases(operator: Operator, tensors: Mapping[str, Tensor]) -> Iterator[Alias]:
    """Yield tensors of an operator that are elements in a row of another one.

    Elements of a box within a tensor are in a row if the last of them stands so many places behind
    the first as the box has elements beside it.
    """
    if operator.domain or operator.parts or len(operator.outputs) != 1:
        return
    made = operator.outputs[0]
    read = [name for name in operator.inputs if name in tensors]
    if operator.type == "Concat":
        if len(read) == len(operator.inputs):
            yield from _joined(operator, made, read, tensors)
    elif read and read[0] == operator.inputs[0]:
        yield from _moved(operator, made, read[0], tensors)


def _joined(
    operator: Operator, made: str, read: Sequence[str], tensors: Mapping[str, Tensor]
) -> Iterator[Alias]:
    axis = operator.attributes.get("axis")
    shape = tensors[made].shape
    if not isinstance(axis, int) or not -len(shape) <= axis < len(shape):
        return
    axis %= len(shape)
    sizes = [tensors[name].shape[axis : axis + 1] for name in read]
    ends = accumulate((size for each in sizes for size in each), initial=0)
    for name, begin in zip(read, ends, strict=False):
        corner = [begin if i == axis else 0 for i in range(len(shape))]
        yield from _box(name, made, corner, tensors)


def _moved(
    operator: Operator, made: str, read: str, tensors: Mapping[str, Tensor]
) -> Iterator[Alias]:
    whole, part = tensors[read], tensors[made]
    if operator.type in SAME_ELEMENTS:
        if whole.dtype == part.dtype and prod(whole.shape) == prod(part.shape):
            yield made, read, 0
    elif operator.type == "Slice":
        corner = _corner(operator, whole.shape)
        if corner is not None:
            yield from _box(made, read, corner, tensors)


def _corner(operator: Operator, shape: Shape) -> list[int] | None:
    """Return where a Slice with steps of one begins on each axis; None if that is not known."""
    starts, axes, steps = (
        _integers(operator.attributes.get(name, ())) for name in ("starts", "axes", "steps")
    )
    if not starts or axes is None or steps is None or {1, *steps} != {1}:
        return None
    axes = axes or tuple(range(len(shape)))
    if len(starts) > len(axes):
        return None
    corner = [0] * len(shape)
    for axis, start in zip(axes, starts, strict=False):
        if not -len(shape) <= axis < len(shape):
            return None
        size = shape[axis]
        corner[axis] = min(max(0, start + size if start < 0 else start), size)
    return corner


def _integers(said: object) -> tuple[int, ...] | None:
    if not isinstance(said, tuple):
        return None
    integers = tuple(n for n in said if isinstance(n, int))
    return integers if len(integers) == len(said) else None


def _box(
    part: str, whole: str, corner: Sequence[int], tensors: Mapping[str, Tensor]
) -> Iterator[Alias]:
    """Yield a tensor that is a box of another one if the elements of the box are in a row."""
    shape, inner = tensors[whole].shape, tensors[part].shape
    if tensors[part].dtype != tensors[whole].dtype or len(inner) != len(shape):
        return
    if any(at + n > size for at, n, size in zip(corner, inner, shape, strict=True)):
        return
    first = _place(corner, shape)
    last = _place([at + n - 1 for at, n in zip(corner, inner, strict=True)], shape)
    if not prod(inner) or last - first + 1 == prod(inner):
        yield part, whole, first


def _place(index: Sequence[int], shape: Shape) -> int:
    """Return which element of a tensor stands at an index, in C order."""
    place = 0
    for at, size in zip(index, shape, strict=True):
        place = place * size + at
    return place
