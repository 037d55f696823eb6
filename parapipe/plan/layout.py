"""Offsets of all buffers of a plan, in one arena for each memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice

from parapipe.mapping.memory.arena import least_arena
from parapipe.mapping.memory.buffers import ArenaProblem, Buffer, frames_of
from parapipe.plan.blocks import Block, Blocks
from parapipe.plan.memory_record import Arena, MemoryLayout, PlacedBuffer
from parapipe.plan.plan_lives import PlanLives
from parapipe.plan.schema import Plan

CIRCLES = (1, 2, 3, 5, 8)
"""Periods after which offsets may repeat, in the order in which they are tried."""
MOST_BUFFERS = 1000
"""Of blocks and frames, for circles of more than one period."""
MOST_SEARCHED = 400
"""Of blocks and frames, for more than first fits."""
MOST_NODES = 3000
"""Of the search: some tenths of a second."""
ENOUGH = 1.05
"""An arena that is no larger, as a share of its bound, is taken; a larger one is searched for."""


def laid_out(plan: Plan, lives: PlanLives) -> Plan:
    """Return a plan with offsets for its buffers; equal calls return equal plans.

    What shares bytes is decided first (`Blocks`). Then each memory gets an arena by first fits. If
    it is larger than its bound, further ones are tried: with what a Concat joins apart, and where
    lives go beyond a period, with offsets that repeat after several periods. Then MiniMalloc's
    search is made with the number of periods that was best. The first that is small enough is
    taken, else the smallest.

    Parameters
    ----------
    lives
        Of the plan's tensors.
    """
    system = lives.system
    blocks_of = cache(lambda joins: Blocks(lives, joins=joins))
    found = [_least(blocks_of, m) for m in range(len(system.names))]
    layout = MemoryLayout(
        assumed=system.assumed,
        arenas=tuple(each.record(lives) for each in found),
        copying=tuple(sorted(system.copying)),
    )
    buffers = sorted(
        (record for each in found for record in each.buffers()),
        key=lambda each: (each.tensor, each.processors),
    )
    return plan.model_copy(update={"memory": layout, "buffers": tuple(buffers)})


@dataclass(frozen=True, slots=True)
class _Laid:
    """The arena of a memory.

    Parameters
    ----------
    offset_bytes
        Of each frame of each block of that memory.
    """

    blocks: Blocks
    memory: int
    frames: int
    offset_bytes: Sequence[Sequence[int]]
    size_bytes: int
    bound_bytes: int

    @property
    def proven(self) -> bool:
        return self.size_bytes == self.bound_bytes

    def record(self, lives: PlanLives) -> Arena:
        system, m = lives.system, self.memory
        return Arena(
            name=system.names[m],
            processors=tuple(p for p, own in system.memory_of.items() if own == m),
            alignment_bytes=system.alignment_bytes[m],
            size_bytes=self.size_bytes,
            bound_bytes=self.bound_bytes,
            proven=self.proven,
        )

    def buffers(self) -> Iterator[PlacedBuffer]:
        blocks, lives = self.blocks, self.blocks.lives
        names = lives.view.resources
        for block, offsets in zip(blocks.of_memory(self.memory), self.offset_bytes, strict=True):
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


def _least(blocks_of: Callable[[bool], Blocks], memory: int) -> _Laid:
    """Return the first arena that is small enough of those that are tried; else the smallest."""
    best: _Laid | None = None
    for frames in CIRCLES:
        for found in _of_circle(blocks_of, memory, frames, 0):
            if best is None or found.size_bytes < best.size_bytes:
                best = found
            if best.size_bytes <= ENOUGH * best.bound_bytes:
                return best
    assert best is not None
    others = _of_circle(blocks_of, memory, best.frames, MOST_NODES)
    return min([best, *others], key=lambda each: each.size_bytes)


def _of_circle(
    blocks_of: Callable[[bool], Blocks], memory: int, frames: int, most_nodes: int
) -> Iterator[_Laid]:
    joined = blocks_of(True)
    if found := _laid(joined, memory, frames, most_nodes):
        yield found
    if joined.joins and (found := _laid(blocks_of(False), memory, frames, most_nodes)):
        yield found


def _laid(blocks: Blocks, memory: int, frames: int, most_nodes: int) -> _Laid | None:
    """Return the arena with offsets that repeat after so many frames; None if that is of no use.

    Parameters
    ----------
    most_nodes
        Of the search; 0 for first fits alone.
    """
    lives, here = blocks.lives, [*blocks.of_memory(memory)]
    goes_on = any(each.goes_on(lives.period) for each in here)
    if frames > 1 and (frames * len(here) > MOST_BUFFERS or not goes_on):
        return None
    if most_nodes and frames * len(here) > MOST_SEARCHED:
        return None
    own = [[*_buffers(lives, block, frames)] for block in here]
    buffers = tuple(each for of_block in own for each in of_block)
    problem = ArenaProblem(buffers, lives.period * frames)
    found = least_arena(problem, most_nodes=most_nodes, deterministic_s=0, enough=ENOUGH)
    places = iter(found.offset_bytes)
    offsets = [[*islice(places, len(each))] or [0] for each in own]
    # What is proven of a circle of some frames does not hold for one of more.
    bound_bytes = blocks.bound_bytes[memory] if goes_on else found.bound_bytes
    return _Laid(blocks, memory, frames, offsets, found.size_bytes, bound_bytes)


def _buffers(lives: PlanLives, block: Block, frames: int) -> Iterator[Buffer]:
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
