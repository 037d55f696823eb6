"""Offsets of all buffers of a plan, in one arena for each memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import chain, islice
from math import inf

from parapipe.plan.blocks import Block, Blocks
from parapipe.plan.plan_lives import PlanLives
from parapipe.plan.records import Arena, MemoryLayout, PlacedBuffer
from parapipe.plan.schema import Plan
from parapipe.solvers.memory.ejections import Ejections
from parapipe.solvers.memory.offsets import (
    ArenaProblem,
    Buffer,
    FirstFits,
    Packing,
    check,
    frames_of,
)

PERIODS = 8
"""After which offsets may repeat, at most."""
MOST_BUFFERS = 6000
"""Of all circles that are laid out."""
CHANGES = (2000, 4000, 6000, 8000, 8000)
"""By ejections on each circle, round after round, each from another first fit: 1,000 take 20 ms."""
ENOUGH = 1.05
"""An arena that is no larger, as a share of its bound, is taken if there is no limit."""
CHANGES_PER_S = 25_000
"""About so many of them, with the first fits that they begin from."""
BUFFERS_PER_CHANGE = 4
"""A circle and its bound take as long to make."""


def laid_out(
    plan: Plan,
    lives: PlanLives,
    arena_bytes: Mapping[str, float] | None = None,
    arena_effort_s: float = inf,
) -> Plan:
    """Return a plan with offsets for its buffers; equal calls return equal plans.

    What shares bytes is decided first (`Blocks`). Then each memory gets an arena by first fits. If
    that is not small enough, further ones are tried: with what a Concat joins apart, and where
    lives go beyond a period, with offsets that repeat after several periods. The first that is
    small enough is taken, else the smallest.

    Parameters
    ----------
    lives
        Of the plan's tensors.
    arena_bytes
        By memory, how large its arena may be, where there is a limit. If it is larger, one that
        is not is looked for, as far as its bound lets it be; if none is found, the smallest is
        taken.
    arena_effort_s
        Seconds of counted work that looking for smaller arenas than the first ones may take.
    """
    system, most = lives.system, arena_bytes or {}
    blocks_of = cache(lambda joins: Blocks(lives, joins=joins))
    effort = _Effort(arena_effort_s * CHANGES_PER_S)
    arenas = [
        _arena_within(blocks_of, m, most.get(name, inf), effort)
        for m, name in enumerate(system.names)
    ]
    layout = MemoryLayout(
        assumed=system.assumed,
        arenas=tuple(each.record(lives) for each in arenas),
        copying=tuple(sorted(system.copying)),
    )
    buffers = sorted(
        (record for each in arenas for record in each.buffers()),
        key=lambda each: (each.tensor, each.processors),
    )
    return plan.model_copy(update={"memory": layout, "buffers": tuple(buffers)})


@dataclass(frozen=True)
class _Circle:
    """Buffers of a memory, with offsets that repeat after so many frames.

    Parameters
    ----------
    own
        For each block, its buffers: one for each frame.
    most_bytes
        How large the arena may be.
    """

    blocks: Blocks
    memory: int
    frames: int
    own: Sequence[Sequence[Buffer]]
    most_bytes: float

    @cached_property
    def problem(self) -> ArenaProblem:
        """All buffers."""
        buffers = tuple(each for of_block in self.own for each in of_block)
        return ArenaProblem(buffers, self.blocks.lives.period * self.frames)

    @property
    def enough_bytes(self) -> int:
        """An arena that is no larger is small enough."""
        bound_bytes = self.blocks.bound_bytes[self.memory]
        return max(bound_bytes, int(min(ENOUGH * bound_bytes, self.most_bytes)))

    @property
    def may_be_enough(self) -> bool:
        """Whether there may be one that is small enough where there is no limit."""
        return self.problem.peak_bytes <= ENOUGH * self.blocks.bound_bytes[self.memory]

    @cached_property
    def _fits(self) -> FirstFits:
        return FirstFits(self.problem)

    @cached_property
    def _first(self) -> Sequence[Packing]:
        return self._fits.smallest_first(self.enough_bytes)

    def arena(self, changes: int = 0, attempt: int = 0) -> _ArenaLayout:
        """Return an arena.

        Parameters
        ----------
        changes
            Of `Ejections`, which begin with a first fit.
        attempt
            Time on this circle: each begins with another one, and draws other numbers.
        """
        here = [*self.blocks.of_memory(self.memory)]
        if not self.problem.buffers:
            return _ArenaLayout(self, [self._empty(each) for each in here], 0, 0)
        placed = self._first[attempt % len(self._first)]
        if changes:
            placed = Ejections(self._fits, placed, seed=attempt).least(self.enough_bytes, changes)
        check(self.problem, placed.offset_bytes)
        offsets_bytes = iter(placed.offset_bytes)
        offsets = [
            [*islice(offsets_bytes, len(own))] or self._empty(block)
            for own, block in zip(self.own, here, strict=True)
        ]
        # The peak of a circle of some frames is no bound for one of more.
        goes_on = _goes_on(self.blocks, self.memory)
        bound_bytes = self.blocks.bound_bytes[self.memory] if goes_on else self.problem.peak_bytes
        return _ArenaLayout(self, offsets, placed.size_bytes, bound_bytes)

    def _empty(self, block: Block) -> list[int]:
        """Return the offsets of what takes no bytes, as a cache before the first token."""
        lives = self.blocks.lives
        frames = -((block.begin - block.end) // lives.period)
        queues = (lives.all[i] for i in block.members if lives.all[i].queued)
        return [0] * max(1, frames, *(each.life.frames for each in queues))


@dataclass(frozen=True, slots=True)
class _ArenaLayout:
    """The arena of a memory.

    Parameters
    ----------
    offset_bytes
        Of each frame of each block of that memory.
    """

    circle: _Circle
    offset_bytes: Sequence[Sequence[int]]
    size_bytes: int
    bound_bytes: int

    @property
    def proven(self) -> bool:
        return self.size_bytes == self.bound_bytes

    def record(self, lives: PlanLives) -> Arena:
        system, m = lives.system, self.circle.memory
        return Arena(
            name=system.names[m],
            processors=tuple(p for p, own in system.memory_of.items() if own == m),
            alignment_bytes=system.alignment_bytes[m],
            size_bytes=self.size_bytes,
            bound_bytes=self.bound_bytes,
            proven=self.proven,
        )

    def buffers(self) -> Iterator[PlacedBuffer]:
        blocks, lives = self.circle.blocks, self.circle.blocks.lives
        names, here = lives.view.resources, blocks.of_memory(self.circle.memory)
        for block, offsets in zip(here, self.offset_bytes, strict=True):
            for i, shift in block.members.items():
                life = lives.all[i].life
                users = dict.fromkeys((life.processor, *(at.processor for at in life.readers)))
                over, within = blocks.over.get(i), blocks.within.get(i)
                yield PlacedBuffer.model_construct(  # checked at once by the verifier
                    tensor=life.name,
                    content=life.content,
                    processors=tuple(names[p] for p in users),
                    size_bytes=life.size_bytes,
                    offset_bytes=tuple(offset + shift for offset in offsets),
                    over=None if over is None else lives.all[over].name,
                    within=None if within is None else lives.all[within[0]].name,
                )


@dataclass(slots=True)
class _Effort:
    """Work that may still be done, counted in changes of `Ejections`."""

    left: float

    def circles(self, circles: Iterator[_Circle]) -> Iterator[_Circle]:
        """Yield circles as long as there is work left; making one is work."""
        while self.left > 0 and (circle := next(circles, None)):
            self.left -= len(circle.problem.buffers) / BUFFERS_PER_CHANGE
            yield circle

    def changes(self, most: int) -> int:
        """Return how many changes of so many are to be made."""
        allowed = int(max(0, min(most, self.left)))
        self.left -= allowed
        return allowed


def _arena_within(
    blocks_of: Callable[[bool], Blocks], memory: int, most_bytes: float, effort: _Effort
) -> _ArenaLayout:
    """Return an arena that is small enough, and looked for again if a limit wants less."""
    arena = _smallest_arena(blocks_of, memory, inf, effort)
    if arena.proven or arena.size_bytes <= most_bytes:
        return arena
    smaller = _smallest_arena(blocks_of, memory, most_bytes, effort)
    return min(arena, smaller, key=lambda each: each.size_bytes)


def _smallest_arena(
    blocks_of: Callable[[bool], Blocks], memory: int, most_bytes: float, effort: _Effort
) -> _ArenaLayout:
    """Return the first arena that is small enough of those that are tried; else the smallest."""
    circles = _circles(blocks_of, memory, most_bytes)
    first = next(circles)
    best = first.arena()
    every = chain([first], effort.circles(circles))
    for circle, most, attempt in _attempts(each for each in every if each.may_be_enough):
        if best.size_bytes <= best.circle.enough_bytes or not (changes := effort.changes(most)):
            break
        best = min(best, circle.arena(changes, attempt), key=lambda each: each.size_bytes)
    return best


def _attempts(circles: Iterable[_Circle]) -> Iterator[tuple[_Circle, int, int]]:
    """Yield circles, each with a number of changes, the nth time: few on all, then more on all."""
    earlier, buffers = list[_Circle](), 0
    for circle in circles:
        buffers += len(circle.problem.buffers)
        if earlier and buffers > MOST_BUFFERS:
            break
        earlier.append(circle)
        yield circle, CHANGES[0], 0
    for attempt, changes in enumerate(CHANGES[1:], 1):
        yield from ((circle, changes, attempt) for circle in earlier)


def _circles(
    blocks_of: Callable[[bool], Blocks], memory: int, most_bytes: float
) -> Iterator[_Circle]:
    """Yield circles of one period and more, with what a Concat joins together and apart."""
    for frames in range(1, PERIODS + 1):
        for blocks in (blocks_of(joins) for joins in (True, False)):
            if frames == 1 or _goes_on(blocks, memory):
                own = [
                    [*_frame_buffers(blocks.lives, each, frames)]
                    for each in blocks.of_memory(memory)
                ]
                yield _Circle(blocks, memory, frames, own, most_bytes)
            if not blocks_of(True).joins:
                break


def _goes_on(blocks: Blocks, memory: int) -> bool:
    """Whether anything lives on into another period."""
    return any(each.goes_on(blocks.lives.period) for each in blocks.of_memory(memory))


def _frame_buffers(lives: PlanLives, block: Block, frames: int) -> Iterator[Buffer]:
    """Yield a buffer for each frame of a block that needs one of its own; none without bytes."""
    (first, *_) = block.members
    each, circle = lives.all[first], lives.period * frames
    alignment_bytes = lives.system.alignment_bytes[each.life.memory]
    if not block.size_bytes:
        return
    if each.queued:
        for slot in range(each.life.frames):
            name = f"{each.name}@{slot}"
            yield Buffer(name, block.size_bytes, 0, circle, alignment_bytes)
    else:
        buffer = Buffer(each.name, block.size_bytes, block.begin, block.end, alignment_bytes)
        yield from frames_of(buffer, lives.period, frames)
