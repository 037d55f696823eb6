"""Buffers of a plan that share bytes: what is written over, and what is a range of another one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from parapipe.plan.plan_lives import PlanLives
from parapipe.plan.sharing import JOIN, Range, ranges, writes_over

Load = npt.NDArray[np.int64]
"""Bytes at each point of the circle."""


@dataclass(frozen=True, slots=True)
class Block:
    """Bytes in a row that several buffers lie in, one frame of each.

    Parameters
    ----------
    begin, end
        Of the first and the last of them, as in `NumberedLife`.
    members
        Where each buffer begins in it, by index.
    """

    size_bytes: int
    begin: int
    end: int
    members: dict[int, int]

    def joined_with(self, other: Block, shift: int) -> Block:
        """Return both as one, the other one beginning at `shift`."""
        shifted = {i: at + shift for i, at in other.members.items()}
        begin, end = min(self.begin, other.begin), max(self.end, other.end)
        return Block(self.size_bytes, begin, end, {**self.members, **shifted})

    def goes_on(self, period: int) -> bool:
        """Whether it lives on into another period."""
        return self.begin // period != (self.end - 1) // period


class Blocks:
    """The buffers of a plan, put together where that does not raise the peak.

    Parameters
    ----------
    joins
        Whether what a Concat joins lies in its result from the start, where that can be; then,
        whether it does so anywhere.
    over
        By index of a buffer: that whose bytes it takes over.
    within
        By index of a buffer: that which it is a range of, and the byte at which it begins there.
    """

    def __init__(self, lives: PlanLives, *, joins: bool = True) -> None:
        self.lives = lives
        self.joins = False
        self.over: dict[int, int] = {}
        self.within: dict[int, tuple[int, int]] = {}
        self._block_of = {
            i: Block(each.life.size_bytes, each.begin, each.end, {i: 0})
            for i, each in enumerate(lives.all)
        }
        self._write_over()
        loads = [self._memory_load(m) for m in range(len(lives.system.names))]
        for v, operator in enumerate(lives.graph.operators):
            joined = operator.type == JOIN
            for each in ranges(operator, lives.graph.tensors) if joins or not joined else ():
                part = (lives.operands if joined else lives.results)[each.tensor, v]
                whole = (lives.results if joined else lives.operands)[each.whole, v]
                put = self._put_within(part, whole, each, loads)
                self.joins = self.joins or (put and joined)
        self.bound_bytes = [int(load.max(initial=0)) for load in loads]

    def of_memory(self, memory: int) -> Iterator[Block]:
        """Yield the blocks of one memory."""
        for i, block in self._block_of.items():
            if i == next(iter(block.members)) and self.lives.all[i].life.memory == memory:
                yield block

    def _write_over(self) -> None:
        lives, graph = self.lives, self.lives.graph
        for v, operator in enumerate(graph.operators):
            for name in graph.reads(operator):
                if name in graph.inputs or not writes_over(operator, name, graph.tensors):
                    continue
                operand, result = lives.operands[name, v], lives.results[operator.outputs[0], v]
                if self._may_write_over(operand, result, v) and self._join(operand, result, 0):
                    self.over[result] = operand
                    break

    def _may_write_over(self, before: int, after: int, operator: int) -> bool:
        operand, result = self.lives.all[before], self.lives.all[after]
        return (
            operand.life.memory == result.life.memory
            and self.lives.element_bits(before) == self.lives.element_bits(after)
            and not (operand.queued or result.queued)
            and operand.free_for(operator) <= result.begin
        )

    def _put_within(self, part: int, whole: int, part_range: Range, loads: list[Load]) -> bool:
        """Let a buffer be a range of another one, if their bytes agree and the peak stays."""
        inner, outer = self.lives.all[part], self.lives.all[whole]
        memory, begin = outer.life.memory, self.lives.range_bytes(whole, part_range.begin)
        if (
            begin is None
            or begin % self.lives.system.alignment_bytes[memory]
            or inner.life.memory != memory
            or inner.queued
            or outer.queued
            or inner.name in self.lives.graph.inputs
        ):
            return False
        before = dict(self.within)
        if self._make_root(part):
            self.within[part] = (whole, begin)
            if self._join(whole, part, begin, loads[memory]):
                return True
        self.within = before
        return False

    def _make_root(self, i: int) -> bool:
        """Turn the ranges that a buffer stands in around; False if it is less than one of them."""
        chain = [i]
        while chain[-1] in self.within:
            chain.append(self.within[chain[-1]][0])
        sizes = {self.lives.graph.tensors[self.lives.all[each].name].size_bytes for each in chain}
        if len(sizes) > 1:
            return False
        self.within.pop(i, None)
        self.within.update((parent, (child, 0)) for child, parent in pairwise(chain))
        return True

    def _join(self, first: int, second: int, begin: int, load: Load | None = None) -> bool:
        """Put the block of the second buffer into that of the first, if no bytes are disturbed.

        Parameters
        ----------
        begin
            Byte of the first buffer at which the second begins.
        load
            Of the memory, to be kept up to date; its maximum must not rise.
        """
        target, block = self._block_of[first], self._block_of[second]
        shift = target.members[first] + begin - block.members[second]
        if target is block or shift < 0 or shift + block.size_bytes > target.size_bytes:
            return False
        for a, at in target.members.items():
            for b, place in block.members.items():
                if {a, b} != {first, second} and self._disturbs(a, at, b, place + shift):
                    return False
        joined = target.joined_with(block, shift)
        if load is not None and not self._replace_loads(load, target, block, joined):
            return False
        for each in joined.members:
            self._block_of[each] = joined
        return True

    def _disturbs(self, a: int, at: int, b: int, place: int) -> bool:
        """Whether two buffers have bytes in common while both live, and not the same content."""
        one, other = self.lives.all[a], self.lives.all[b]
        if (
            one.end <= other.begin
            or other.end <= one.begin
            or at + one.life.size_bytes <= place
            or place + other.life.size_bytes <= at
        ):
            return False
        root, begin = self._root(a)
        other_root, other_begin = self._root(b)
        return root != other_root or at - begin != place - other_begin

    def _root(self, i: int) -> tuple[int, int]:
        begin = 0
        while i in self.within:
            i, at = self.within[i]
            begin += at
        return i, begin

    def _replace_loads(self, load: Load, target: Block, block: Block, joined: Block) -> bool:
        """Count what is made of two blocks in place of them, unless the maximum rises."""
        changed = load.copy()
        for sign, each in ((-1, target), (-1, block), (1, joined)):
            self._add_load(changed, each, sign)
        if changed.max() > load.max():
            return False
        load[:] = changed
        return True

    def _add_load(self, load: Load, block: Block, sign: int) -> None:
        """Add what a block takes at each point, or subtract it."""
        period, size_bytes = len(load), sign * block.size_bytes
        turns, rest = divmod(block.end - block.begin, period)
        begin = block.begin % period
        load += turns * size_bytes
        load[begin : begin + rest] += size_bytes
        load[: max(0, begin + rest - period)] += size_bytes

    def _memory_load(self, memory: int) -> Load:
        period, always = self.lives.period, 0
        change = np.zeros(period + 1, dtype=np.int64)
        for block in self.of_memory(memory):
            first = self.lives.all[next(iter(block.members))]
            if first.queued:
                always += block.size_bytes * first.life.frames
                continue
            turns, rest = divmod(block.end - block.begin, period)
            begin = block.begin % period
            end = begin + rest
            always += block.size_bytes * (turns + (end > period))
            change[begin] += block.size_bytes
            change[end - period if end > period else end] -= block.size_bytes
        return always + np.cumsum(change[:-1])
