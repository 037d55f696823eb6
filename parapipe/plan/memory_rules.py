"""Rules on the arenas of a plan: every tensor has its bytes, and no other one writes there.

Which tensors may share bytes follows from what ONNX says of operators; planners have rules of their
own (`sharing`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import prod

import numpy as np

from parapipe.files.mistakes import listed
from parapipe.graph.operator_graph import Operator, Tensor
from parapipe.parts.elementwise import ANY_AXIS, MICROSOFT
from parapipe.plan.mapped import network_of
from parapipe.plan.plan_lives import NumberedLife, PlanLives
from parapipe.plan.records import MemoryLayout, PlacedBuffer
from parapipe.plan.schema import Plan

ROWS = 256
"""Of pairs that are compared at once."""
_Key = tuple[str, str]
"""A tensor, and the processor that keeps it."""


def memory_violations(plan: Plan, lives: PlanLives | None) -> Iterator[str]:
    """Yield what is wrong with the offsets of a plan that keeps all other rules.

    The rules: each processor stands in one memory; every tensor, copy and queue that the schedule
    needs has one buffer, in its right size, used by its processors, with an offset for each frame
    that is alive at a time; offsets are aligned and within the arena; what takes over another
    buffer, or is a range of it, lies there as its operator says. Two buffers that are alive at the
    same time, in frames whatever, have no byte in common, unless one is a range of the other, or is
    just written over it. An arena is not below its bound, and proven if it equals it.

    Parameters
    ----------
    lives
        Of its tensors, if they are at hand; else they follow from the plan itself.
    """
    layout = plan.memory
    if layout is None:
        if plan.buffers:
            yield "there are buffers, and nothing is said of the memory that they lie in"
        return
    violations = [*_memory_violations(plan, layout)]
    yield from violations
    if not violations:
        if lives is None:
            lives = PlanLives(plan, network_of(plan, with_work=False), layout.system)
        yield from _ArenaCheck(lives, plan.buffers, layout).violations()


def _memory_violations(plan: Plan, layout: MemoryLayout) -> Iterator[str]:
    memories = Counter(p for each in layout.arenas for p in {*each.processors})
    for name in (each.name for each in plan.processors):
        if memories[name] != 1:
            yield f"processor '{name}' stands in {memories[name]} memories"
    for each in layout.arenas:
        if each.bound_bytes > each.size_bytes:
            yield (
                f"the arena of '{each.name}' has {each.size_bytes} bytes, less than its bound of "
                f"{each.bound_bytes}"
            )
        elif each.proven != (each.bound_bytes == each.size_bytes):
            yield (
                f"the arena of '{each.name}' has {each.size_bytes} bytes, its bound is "
                f"{each.bound_bytes}, and it is said to be {'' if each.proven else 'not '}proven"
            )


@dataclass(frozen=True)
class _ArenaCheck:
    lives: PlanLives
    placed: tuple[PlacedBuffer, ...]
    layout: MemoryLayout

    def violations(self) -> Iterator[str]:
        needed = {self._key(each): i for i, each in enumerate(self.lives.all)}
        counts = Counter((each.tensor, each.processors[0]) for each in self.placed)
        mistakes = [
            *(f"{_label(key)} has no buffer" for key in needed if key not in counts),
            *(f"{_label(key)} has a buffer, and needs none" for key in counts if key not in needed),
            *(f"{_label(key)} has {n} buffers" for key, n in counts.items() if n > 1),
        ]
        yield from mistakes
        if mistakes:
            return
        buffers = sorted(self.placed, key=lambda each: needed[each.tensor, each.processors[0]])
        own_mistakes = [
            text
            for each, life in zip(buffers, self.lives.all, strict=True)
            for text in self._one_buffer(each, life)
        ]
        yield from own_mistakes
        if not own_mistakes:
            yield from self._shared_bytes(buffers)

    def _key(self, each: NumberedLife) -> _Key:
        return each.name, self.lives.view.resources[each.life.processor]

    def _one_buffer(self, each: PlacedBuffer, life: NumberedLife) -> Iterator[str]:
        name, arena = _label(self._key(life)), self.layout.arenas[life.life.memory]
        names = self.lives.view.resources
        users = {names[p] for p in (life.life.processor, *(r.processor for r in life.life.readers))}
        if each.content != life.life.content:
            yield f"{name} is a {each.content}, and should be a {life.life.content}"
        if {*each.processors} != users:
            lists = [listed(sorted(names)) for names in (users, each.processors)]
            yield f"{name} is used by {lists[0]}, and its buffer names {lists[1]}"
        if each.size_bytes != life.life.size_bytes:
            yield f"{name} takes {life.life.size_bytes} bytes, and has {each.size_bytes}"
        slots = life.life.frames if life.queued else -((life.begin - life.end) // self.lives.period)
        if len(each.offset_bytes) < slots:
            yield (
                f"{name} has {len(each.offset_bytes)} offsets, and {slots} frames of it are alive"
            )
        for offset in each.offset_bytes:
            if offset % arena.alignment_bytes:
                yield f"{name} lies at {offset}, no multiple of {arena.alignment_bytes}"
            if offset + each.size_bytes > arena.size_bytes:
                yield (
                    f"{name} ends at {offset + each.size_bytes}, and the arena of "
                    f"'{arena.name}' has {arena.size_bytes} bytes"
                )

    def _shared_bytes(self, buffers: list[PlacedBuffer]) -> Iterator[str]:
        """Check what is said of shared bytes, then that no others are shared."""
        over, within = _SharedBytes(self.lives, buffers).permitted()
        for i, each in enumerate(buffers):
            for other, allowed in ((each.over, over), (each.within, within)):
                if other is not None and i not in allowed:
                    yield f"{_label(self._key(self.lives.all[i]))} does not lie on '{other}' right"
        roots = [_root_of(i, within) for i in range(len(buffers))]
        for (i, number), (j, other_number), same_frame in _common_bytes(self.lives, buffers):
            shares = roots[i] == roots[j] or over.get(i) == j or over.get(j) == i
            if not (same_frame and shares):
                yield self._overlap_text(buffers, (i, number), (j, other_number))

    def _overlap_text(
        self, buffers: list[PlacedBuffer], one: tuple[int, int], other: tuple[int, int]
    ) -> str:
        places = (
            f"{_label(self._key(self.lives.all[b]))} at {buffers[b].offset_bytes[at]}"
            for b, at in sorted((one, other))
        )
        return f"{' and '.join(places)} overlap while both are alive"


@dataclass(frozen=True)
class _SharedBytes:
    """Which buffers lie on others as operators allow."""

    lives: PlanLives
    buffers: list[PlacedBuffer]

    def permitted(self) -> tuple[dict[int, int], dict[int, int]]:
        """Return what is right of `over` and `within`, by indices of buffers."""
        over, within = dict[int, int](), dict[int, int]()
        lives, tensors = self.lives, self.lives.graph.tensors
        for v, operator in enumerate(lives.graph.operators):
            for name in overwritable(operator, tensors):
                before, i = lives.operands[name, v], lives.results[operator.outputs[0], v]
                if self.buffers[i].over == name and self._is_over(i, before, v):
                    over[i] = before
            for tensor, other, first in aliases(operator, tensors):
                part, whole = (self._index_of(name, v) for name in (tensor, other))
                bits = self.lives.element_bits(whole)
                if self.lives.element_bits(part) != bits or first * bits % 8:
                    continue
                if self._is_within(part, whole) and self._lies_at(part, whole, first * bits // 8):
                    within[part] = whole
                elif (
                    prod(tensors[tensor].shape) == prod(tensors[other].shape)
                    and self._is_within(whole, part)
                    and self._lies_at(whole, part, 0)
                ):
                    within[whole] = part
        return over, within

    def _is_over(self, i: int, before: int, operator: int) -> bool:
        """Whether what an operator makes lies element by element on what nobody else reads then."""
        read, begin = self.lives.all[before], self.lives.all[i].begin
        others = (end for v, end in read.reads.items() if v != operator)
        return (
            self.lives.element_bits(i) == self.lives.element_bits(before)
            and read.other_end <= begin
            and all(end <= begin for end in others)
            and self._lies_at(i, before, 0)
        )

    def _is_within(self, i: int, whole: int) -> bool:
        return self.buffers[i].within == self.lives.all[whole].name

    def _index_of(self, name: str, operator: int) -> int:
        key = name, operator
        return self.lives.results[key] if key in self.lives.results else self.lives.operands[key]

    def _lies_at(self, i: int, whole: int, begin: int) -> bool:
        """Whether a buffer begins so far behind another one, in every frame, and ends within it."""
        one, other = self.lives.all[i].life, self.lives.all[whole].life
        offsets = [at + begin for at in self.buffers[whole].offset_bytes]
        return (
            one.memory == other.memory
            and [*self.buffers[i].offset_bytes] == offsets
            and begin + one.size_bytes <= other.size_bytes
        )


def _root_of(i: int, within: dict[int, int]) -> int:
    seen = {i}
    while (up := within.get(i, i)) not in seen:
        seen.add(up)
        i = up
    return i


def _label(key: _Key) -> str:
    return f"'{key[0]}' on '{key[1]}'"


def _common_bytes(
    lives: PlanLives, buffers: list[PlacedBuffer]
) -> Iterator[tuple[tuple[int, int], tuple[int, int], bool]]:
    """Yield pairs of buffers, each with the number of an offset, that have bytes in common.

    Also whether they have so in the same frame only. Frame n of one and frame n + d of the other
    have these offsets if d is a number modulo the greatest common divisor of both counts; and they
    live at the same time if each begins before the other one's end.
    """
    rows = [
        (i, number, offset, offset + each.size_bytes, len(each.offset_bytes))
        for i, each in enumerate(buffers)
        for number, offset in enumerate(each.offset_bytes)
    ]
    if not rows:
        return
    owner, number, low, high, count = np.array(rows, dtype=np.int64).T
    begin = np.array([each.begin for each in lives.all])[owner]
    end = np.array([each.end for each in lives.all])[owner]
    queued = np.array([each.queued for each in lives.all])[owner]
    memory = np.array([each.life.memory for each in lives.all])[owner]
    for top in range(0, len(rows), ROWS):
        own = slice(top, top + ROWS)
        beside = (low[own, None] < high) & (low < high[own, None])
        beside &= memory[own, None] == memory
        one, other = np.nonzero(np.triu(beside, k=top + 1))
        one += top
        step = np.gcd(count[one], count[other])
        least = (begin[one] - end[other]) // lives.period + 1
        most = -((begin[other] - end[one]) // lives.period) - 1
        first = least + (number[other] - number[one] - least) % step
        always = queued[one] | queued[other]
        same = (first == 0) & (step > most) & ~always
        common = always | (first <= most)
        pairs = (one[common], other[common], same[common])
        for i, j, in_one in zip(*(each.tolist() for each in pairs), strict=True):
            yield (int(owner[i]), int(number[i])), (int(owner[j]), int(number[j])), in_one


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
    result = operator.outputs[0]
    operands = [name for name in operator.inputs if name in tensors]
    if operator.type == "Concat":
        if len(operands) == len(operator.inputs):
            yield from _concat_aliases(operator, result, operands, tensors)
    elif operands and operands[0] == operator.inputs[0]:
        yield from _copy_aliases(operator, result, operands[0], tensors)


def _concat_aliases(
    operator: Operator, result: str, operands: Sequence[str], tensors: Mapping[str, Tensor]
) -> Iterator[Alias]:
    axis = operator.attributes.get("axis")
    shape = tensors[result].shape
    if not isinstance(axis, int) or not -len(shape) <= axis < len(shape):
        return
    axis %= len(shape)
    sizes = [tensors[name].shape[axis : axis + 1] for name in operands]
    ends = accumulate((size for each in sizes for size in each), initial=0)
    for name, begin in zip(operands, ends, strict=False):
        corner = [begin if i == axis else 0 for i in range(len(shape))]
        yield from _box_alias(name, result, corner, tensors)


def _copy_aliases(
    operator: Operator, result: str, operand: str, tensors: Mapping[str, Tensor]
) -> Iterator[Alias]:
    whole, part = tensors[operand], tensors[result]
    if operator.type in SAME_ELEMENTS:
        if whole.dtype == part.dtype and prod(whole.shape) == prod(part.shape):
            yield result, operand, 0
    elif operator.type == "Slice":
        corner = _slice_start(operator, whole.shape)
        if corner is not None:
            yield from _box_alias(result, operand, corner, tensors)


def _slice_start(operator: Operator, shape: Shape) -> list[int] | None:
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


def _integers(value: object) -> tuple[int, ...] | None:
    if not isinstance(value, tuple):
        return None
    integers = tuple(n for n in value if isinstance(n, int))
    return integers if len(integers) == len(value) else None


def _box_alias(
    part: str, whole: str, corner: Sequence[int], tensors: Mapping[str, Tensor]
) -> Iterator[Alias]:
    """Yield a tensor that is a box of another one if the elements of the box are in a row."""
    shape, inner = tensors[whole].shape, tensors[part].shape
    if tensors[part].dtype != tensors[whole].dtype or len(inner) != len(shape):
        return
    if any(at + n > size for at, n, size in zip(corner, inner, shape, strict=True)):
        return
    first = _element_number(corner, shape)
    last = _element_number([at + n - 1 for at, n in zip(corner, inner, strict=True)], shape)
    if not prod(inner) or last - first + 1 == prod(inner):
        yield part, whole, first


def _element_number(index: Sequence[int], shape: Shape) -> int:
    """Return which element of a tensor stands at an index, in C order."""
    number = 0
    for at, size in zip(index, shape, strict=True):
        number = number * size + at
    return number
