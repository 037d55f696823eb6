"""Which tensors of an operator may share bytes: ranges of each other, and what is written over."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Protocol

from parapipe.graph.parts.elementwise import ANY_AXIS, MICROSOFT

JOIN, CUT = "Concat", "Slice"
VIEWS = frozenset({"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity"})
_MOVING = VIEWS | {JOIN, CUT}
_OPERANDS = 2  # further ones may be read once the first two are overwritten
_ELEMENTWISE = {"": ANY_AXIS - {"Where"}, "com.microsoft": frozenset(MICROSOFT)}
Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Range:
    """Elements of a whole tensor, one behind the other in memory, that are another tensor."""

    tensor: str
    whole: str
    begin: int
    end: int


class _Operator(Protocol):
    @property
    def domain(self) -> str: ...
    @property
    def type(self) -> str: ...
    @property
    def attributes(self) -> Mapping[str, object]: ...
    @property
    def inputs(self) -> tuple[str, ...]: ...
    @property
    def outputs(self) -> tuple[str, ...]: ...
    @property
    def parts(self) -> Sequence[_Operator]: ...


class _Tensor(Protocol):
    @property
    def shape(self) -> Shape: ...
    @property
    def dtype(self) -> str: ...


def ranges(operator: _Operator, tensors: Mapping[str, _Tensor]) -> Iterator[Range]:
    """Yield what an operator that only joins, cuts or reshapes reads or makes, as ranges.

    A Concat reads ranges of what it makes, and a Slice makes a range of what it reads, if all axes
    before the one that they join or cut have one element. What is reshaped is all of what it was.
    """
    if operator.type not in _MOVING or operator.domain or operator.parts:
        return
    made, read = operator.outputs[0], [name for name in operator.inputs if name]
    if len(operator.outputs) > 1 or not read:
        return
    names = (made, *(read if operator.type == JOIN else read[:1]))
    if any(name not in tensors for name in names) or len({tensors[n].dtype for n in names}) > 1:
        return  # a constant, or a change of type
    shapes = {name: tensors[name].shape for name in names}
    if operator.type == JOIN:
        yield from _joined(made, read, shapes)
    elif operator.type == CUT and (begin := _cut_at(operator, shapes[read[0]], shapes[made])) >= 0:
        yield Range(made, read[0], begin, begin + prod(shapes[made]))
    elif operator.type in VIEWS and prod(shapes[made]) == prod(shapes[read[0]]):
        yield Range(made, read[0], 0, prod(shapes[made]))


def _joined(made: str, read: Sequence[str], shapes: Mapping[str, Shape]) -> Iterator[Range]:
    whole, end = shapes[made], 0
    for name in read:
        axis = _axis(shapes[name], whole)
        if axis is None or any(size != 1 for size in whole[:axis]):
            return
    for name in read:
        begin, end = end, end + prod(shapes[name])
        yield Range(name, made, begin, end)


def _axis(part: Shape, whole: Shape) -> int | None:
    """Return the one axis along which a part is less than the whole; 0 if it is all of it."""
    axes = [axis for axis, size in enumerate(whole) if part[axis : axis + 1] != (size,)]
    return None if len(part) != len(whole) or len(axes) > 1 else (axes or [0])[0]


def _cut_at(operator: _Operator, whole: Shape, made: Shape) -> int:
    """Return the element at which a cut begins; -1 if it is no range."""
    axis = _axis(made, whole)
    starts, steps = operator.attributes.get("starts"), operator.attributes.get("steps", ())
    axes = operator.attributes.get("axes") or range(len(whole))
    if axis is None or any(size != 1 for size in whole[:axis]):
        return -1
    if not isinstance(starts, tuple) or not isinstance(axes, tuple | range):
        return -1
    if not isinstance(steps, tuple) or any(step != 1 for step in steps):
        return -1
    cut = dict(zip((each % len(whole) for each in axes), starts, strict=False))
    start = int(cut.get(axis, 0))
    start = max(0, start + whole[axis] if start < 0 else start)
    return start * prod(whole[axis + 1 :])


def writes_over(operator: _Operator, name: str, tensors: Mapping[str, _Tensor]) -> bool:
    """Whether an operator may write its result over one of the tensors that it reads.

    It makes each element of those at the same place: it is element-wise, and so is what is fused
    with it, which does not read that tensor again. Of several operands it is one of the first two,
    and none of the others. That elements have equal sizes is for the caller to see to: it depends
    on where they are kept.
    """
    singles = operator.parts or (operator,)
    (first, *later), made = singles, operator.outputs
    return (
        len(made) == 1
        and name in first.inputs[:_OPERANDS]
        and name not in first.inputs[_OPERANDS:]
        and tensors[name].shape == tensors[made[0]].shape
        and all(
            each.type in _ELEMENTWISE.get(each.domain, ()) and len(each.outputs) == 1
            for each in singles
        )
        and not any(name in each.inputs for each in later)
    )
