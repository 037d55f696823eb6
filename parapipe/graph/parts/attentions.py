"""Attention as one operator: cut between frames, heads or tokens of the query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from parapipe.graph.operator_graph import AttributeValue
from parapipe.graph.parts.part import (
    Cut,
    Part,
    Range,
    RangeError,
    Ranges,
    Rule,
    Single,
    WholeError,
    broadcast,
)

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
            raise WholeError("it also hands out keys and values")
        if ranks != {single.rank} or single.rank not in (_BY_HEAD - 1, _BY_HEAD):
            raise WholeError("its query, key and value have different axes")
        by_head = single.rank == _BY_HEAD
        if axis == 0:
            return self._frames(single)
        if axis == (2 if by_head else 1):
            return self._tokens(single, axis)
        if axis == 1 or not by_head:
            return self._heads(single, axis)
        return Cut(
            lambda begin, end: Part(
                single.reads(dict.fromkeys((2, self.past[1]), (Range(3, begin, end),)))
            )
        )

    def _frames(self, single: Single) -> Cut:
        beside = single.shape(self.per_frame)
        if single.has(self.per_frame) and beside[:1] != single.output[:1]:
            raise WholeError("its lengths are in a form of their own")

        def part(begin: int, end: int) -> Part:
            cut = (Range(0, begin, end),)
            ranges: dict[int, Ranges] = dict.fromkeys((0, 1, 2, *self.past, self.per_frame), cut)
            ranges[self.mask] = broadcast(single.shape(self.mask), _BY_HEAD, cut[0])
            return Part(single.reads(ranges))

        return Cut(part)

    def _tokens(self, single: Single, axis: int) -> Cut:
        if single.integer(self.causal, 0):
            raise WholeError("how much a token sees follows from its place")

        def part(begin: int, end: int) -> Part:
            added = broadcast(single.shape(self.mask), _BY_HEAD, Range(2, begin, end))
            return Part(single.reads({0: (Range(axis, begin, end),), self.mask: added}))

        return Cut(part)

    def _heads(self, single: Single, axis: int) -> Cut:
        if self.bias is not None and single.has(self.bias):
            raise WholeError("its bias has query, key and value in one row")
        by_head = single.rank == _BY_HEAD
        if by_head:
            counts = [single.shape(0)[1], single.shape(1)[1]]
        else:
            counts = [single.integer(name, 0) for name in (*self.heads, *self.heads)[:2]]
        if not all(counts):
            raise WholeError("its number of heads is not known")
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
            asked = Range(1, first * shared, last * shared)
            ranges[self.mask] = broadcast(single.shape(self.mask), _BY_HEAD, asked)
            numbers = ((last - first) * shared, last - first)
            changes: dict[str, AttributeValue | None] = (
                {} if by_head else dict(zip(self.heads, numbers, strict=False))
            )
            return Part(single.reads(ranges), changes)

        return Cut(part, step)


RULES: Mapping[str, Rule] = {
    "Attention": _Attention(3, (4, 5), 6, None, ("q_num_heads", "kv_num_heads"), "is_causal")
}
MICROSOFT: Mapping[str, Rule] = {
    "MultiHeadAttention": _Attention(5, (6, 7), 4, 3, ("num_heads",), "unidirectional")
}
