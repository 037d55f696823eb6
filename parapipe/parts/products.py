"""Matrix products and attention: rows, columns, frames, heads or tokens of the result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from parapipe.graph.operator_graph import AttributeValue
from parapipe.parts.part import (
    Cut,
    NotCuttableError,
    Part,
    Range,
    RangeError,
    Ranges,
    Rule,
    Single,
    along,
    broadcast,
)

_MATRIX = 2  # axes of a matrix


def gemm(right: int = 1, bias: int = 2, columns: tuple[int, ...] = ()) -> Rule:
    """Return the rule of Gemm.

    Parameters
    ----------
    right, bias
        Positions of the right operand and of what is added.
    columns
        Positions of inputs that may have one element per column.
    """

    def rule(single: Single, axis: int) -> Cut:
        side, swapped = (0, "transA") if axis == 0 else (right, "transB")
        inner = axis ^ 1 if single.integer(swapped, 0) else axis

        def part(begin: int, end: int) -> Part:
            requested = Range(axis, begin, end)
            ranges: dict[int, Ranges] = {side: (Range(inner, begin, end),)}
            if single.has(bias):
                ranges[bias] = broadcast(single.shape(bias), single.rank, requested)
            for at in columns if axis else ():
                ranges[at] = broadcast(single.shape(at), 1, Range(0, begin, end))
            return Part(single.reads(ranges))

        return Cut(part)

    return rule


@dataclass(frozen=True, slots=True)
class _Product:
    """Where MatMul, or a form of it for integers, has its operands.

    Parameters
    ----------
    left, right
        Positions of the operands.
    rows, columns
        Positions of inputs that may have one element per row, or per column.
    """

    left: int = 0
    right: int = 1
    rows: tuple[int, ...] = ()
    columns: tuple[int, ...] = ()

    def __call__(self, single: Single, axis: int) -> Cut:
        matrices = [len(single.shape(at)) > 1 for at in (self.left, self.right)]
        batch = single.rank - sum(matrices)
        if axis < batch:
            return self._cut_batch(single, axis - batch)
        row = axis == batch and matrices[0]
        return self._cut_side(
            single, self.left if row else self.right, self.rows if row else self.columns
        )

    def _cut_batch(self, single: Single, from_end: int) -> Cut:
        moved = []
        for at in (self.left, self.right):
            shape = single.shape(at)
            own = from_end + len(shape) - _MATRIX
            if own >= 0 and shape[own] != 1:
                moved.append((at, own))
        if any(len(single.shape(at)) > 1 for at in (*self.rows, *self.columns)):
            raise NotCuttableError("its scales or zero points have several axes")
        return along(*moved)

    def _cut_side(self, single: Single, at: int, beside: tuple[int, ...]) -> Cut:
        rank = len(single.shape(at))
        if any(len(single.shape(each)) > 1 for each in beside):
            raise NotCuttableError("its scales or zero points have several axes")
        per_element = [(each, 0) for each in beside if single.shape(each) not in ((), (1,))]
        return along((at, rank - (_MATRIX if at == self.left else 1)), *per_element)


def _einsum(single: Single, axis: int) -> Cut:
    left, arrow, result = single.text("equation").replace(" ", "").partition("->")
    if not arrow or "." in left:
        raise NotCuttableError("its equation does not name all axes of its result")
    letter = result[axis]
    terms = left.split(",")
    if any(term.count(letter) > 1 for term in terms):
        raise NotCuttableError("its equation takes a diagonal along it")

    def part(begin: int, end: int) -> Part:
        return Part(
            tuple(
                (Range(term.index(letter), begin, end),) if letter in term else () for term in terms
            )
        )

    return Cut(part)


RULES: Mapping[str, Rule] = {
    "Gemm": gemm(),
    "MatMul": _Product(),
    "MatMulInteger": _Product(rows=(2,), columns=(3,)),
    "QLinearMatMul": _Product(0, 3, rows=(1, 2), columns=(4, 5)),
    "Einsum": _einsum,
}
MICROSOFT: Mapping[str, Rule] = {
    "FusedGemm": gemm(),
    "QGemm": gemm(right=3, bias=6, columns=(4, 5)),
}


_BY_HEAD = 4  # axes of `[batch, heads, tokens, size]`


@dataclass(frozen=True, slots=True)
class _Attention:
    """Where a form of attention has what; query, key and value are the first three inputs.

    Parameters
    ----------
    mask
        Position of what is added to the scores, broadcast to `[batch, heads, tokens, tokens]`.
    past
        Positions of earlier keys and values, `[batch, heads, tokens, size]`.
    per_frame
        Position of an input with numbers for each frame of the batch.
    bias
        Position of a bias of query, key and value in one row; None if there is none.
    heads
        Attributes with the numbers of heads of the query, and of keys and values.
    causal
        Attribute that says whether tokens only see earlier ones.
    """

    mask: int
    past: tuple[int, int]
    per_frame: int
    bias: int | None
    heads: tuple[str, ...]
    causal: str

    def __call__(self, single: Single, axis: int) -> Cut:
        ranks = {len(single.shape(at)) for at in range(3)}
        if len(single.outputs) > 1:
            raise NotCuttableError("it also hands out keys and values")
        if ranks != {single.rank} or single.rank not in (_BY_HEAD - 1, _BY_HEAD):
            raise NotCuttableError("its query, key and value have different axes")
        by_head = single.rank == _BY_HEAD
        if axis == 0:
            return self._cut_frames(single)
        if axis == (2 if by_head else 1):
            return self._cut_tokens(single, axis)
        if axis == 1 or not by_head:
            return self._cut_heads(single, axis)
        return Cut(
            lambda begin, end: Part(
                single.reads(dict.fromkeys((2, self.past[1]), (Range(3, begin, end),)))
            )
        )

    def _cut_frames(self, single: Single) -> Cut:
        beside = single.shape(self.per_frame)
        if single.has(self.per_frame) and beside[:1] != single.output[:1]:
            raise NotCuttableError("its lengths are in a form of their own")

        def part(begin: int, end: int) -> Part:
            cut = (Range(0, begin, end),)
            ranges: dict[int, Ranges] = dict.fromkeys((0, 1, 2, *self.past, self.per_frame), cut)
            ranges[self.mask] = broadcast(single.shape(self.mask), _BY_HEAD, cut[0])
            return Part(single.reads(ranges))

        return Cut(part)

    def _cut_tokens(self, single: Single, axis: int) -> Cut:
        windows = [single.integer(f"{side}_window_size", -1) for side in ("left", "right")]
        if single.integer(self.causal, 0) or max(windows) >= 0:
            raise NotCuttableError("how much a token sees follows from its place")

        def part(begin: int, end: int) -> Part:
            added = broadcast(single.shape(self.mask), _BY_HEAD, Range(2, begin, end))
            return Part(single.reads({0: (Range(axis, begin, end),), self.mask: added}))

        return Cut(part)

    def _cut_heads(self, single: Single, axis: int) -> Cut:
        if self.bias is not None and single.has(self.bias):
            raise NotCuttableError("its bias has query, key and value in one row")
        by_head = single.rank == _BY_HEAD
        if by_head:
            counts = [single.shape(0)[1], single.shape(1)[1]]
        else:
            counts = [single.integer(name, 0) for name in (*self.heads, *self.heads)[:2]]
        if not all(counts):
            raise NotCuttableError("its number of heads is not known")
        shared = counts[0] // counts[1]  # heads of the query for each of keys and values
        sizes = [single.shape(at)[axis] // counts[at > 0] for at in range(3)]
        step = shared * single.output[axis] // counts[0]

        def part(begin: int, end: int) -> Part:
            if begin % step or end % step:
                raise RangeError("it is cut between heads only")
            first, last = begin // step, end // step
            ranges: dict[int, Ranges] = {
                at: (Range(axis, first * size * each, last * size * each),)
                for at, (size, each) in enumerate(zip(sizes, (shared, 1, 1), strict=True))
            }
            ranges |= dict.fromkeys(self.past, (Range(1, first, last),))
            requested = Range(1, first * shared, last * shared)
            ranges[self.mask] = broadcast(single.shape(self.mask), _BY_HEAD, requested)
            numbers = ((last - first) * shared, last - first)
            changes: dict[str, AttributeValue | None] = (
                {} if by_head else dict(zip(self.heads, numbers, strict=False))
            )
            return Part(single.reads(ranges), changes)

        return Cut(part, step)


ATTENTION_RULES: Mapping[str, Rule] = {
    "Attention": _Attention(3, (4, 5), 6, None, ("q_num_heads", "kv_num_heads"), "is_causal")
}
MICROSOFT_ATTENTIONS: Mapping[str, Rule] = {
    "MultiHeadAttention": _Attention(5, (6, 7), 4, 3, ("num_heads",), "unidirectional")
}
