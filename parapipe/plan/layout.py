"""Offsets of all buffers of a plan, in one arena for each memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from parapipe.graph.operator_graph import OperatorGraph
from parapipe.mapping.memory.arena import Arena as Found
from parapipe.mapping.memory.arena import least_arena
from parapipe.mapping.memory.buffers import ArenaProblem, Buffer, frames_of
from parapipe.plan.blocks import Block, Blocks
from parapipe.plan.mapped import mapped
from parapipe.plan.memory_record import Arena, MemoryLayout, PlacedBuffer
from parapipe.plan.plan_lives import PlanLives
from parapipe.plan.schema import Plan
from parapipe.platform.memories import MemorySystem

MOST_FRAMES = 8
"""Periods after which offsets may repeat."""
MOST_BUFFERS = 400
"""Of blocks and frames, for circles of more than one period."""
MOST_NODES = 1000
"""Of the search for each circle: a twentieth of a second."""


def laid_out(plan: Plan, graph: OperatorGraph, system: MemorySystem) -> Plan:
    """Return a plan with offsets for its buffers; equal calls return equal plans.

    What shares bytes is decided first (`Blocks`). Then each memory gets an arena. If the one of
    offsets that are the same in every period is larger than the peak, offsets that repeat after
    several periods are tried.

    Parameters
    ----------
    graph
        The plan's network, its operators in the plan's order.
    """
    lives = PlanLives(mapped(plan), graph, system)
    blocks = Blocks(lives)
    arenas, offsets = [], dict[int, Sequence[int]]()
    for m, name in enumerate(system.names):
        here = [*blocks.of_memory(m)]
        placed, size_bytes = _least(lives, here, blocks.bound_bytes[m], system.alignment_bytes[m])
        for block, at in zip(here, placed, strict=True):
            offsets.update({i: [each + shift for each in at] for i, shift in block.members.items()})
        arenas.append(
            Arena(
                name=name,
                processors=tuple(p for p, own in system.memory_of.items() if own == m),
                alignment_bytes=system.alignment_bytes[m],
                size_bytes=size_bytes,
                bound_bytes=blocks.bound_bytes[m],
                proven=size_bytes == blocks.bound_bytes[m],
            )
        )
    layout = MemoryLayout(
        assumed=system.assumed, arenas=tuple(arenas), copying=tuple(sorted(system.copying))
    )
    buffers = tuple(_records(blocks, offsets))
    return plan.model_copy(update={"memory": layout, "buffers": buffers})


def _records(blocks: Blocks, offsets: dict[int, Sequence[int]]) -> Iterator[PlacedBuffer]:
    """Yield what a plan says of its buffers, by name and processor."""
    lives, names = blocks.lives, blocks.lives.view.resources
    for i, each in sorted(enumerate(lives.all), key=lambda found: found[1].life[:1]):
        life = each.life
        users = dict.fromkeys((life.processor, *(at.processor for at in life.readers)))
        over, within = blocks.over.get(i), blocks.within.get(i)
        yield PlacedBuffer(
            tensor=life.name,
            content=life.content,
            processors=tuple(names[p] for p in users),
            size_bytes=life.size_bytes,
            offset_bytes=tuple(offsets[i]),
            over=None if over is None else lives.all[over].name,
            within=None if within is None else lives.all[within[0]].name,
        )


def _least(
    lives: PlanLives, blocks: Sequence[Block], bound_bytes: int, alignment_bytes: int
) -> tuple[list[list[int]], int]:
    """Return the offsets of each block, for one frame after the other, and the arena's size."""
    taken = [block for block in blocks if block.size_bytes]
    best: tuple[list[list[int]], int] | None = None
    for frames in range(1, MOST_FRAMES + 1):
        if best and (best[1] == bound_bytes or frames * len(taken) > MOST_BUFFERS):
            break
        own = [[*_buffers(lives, block, frames, alignment_bytes)] for block in taken]
        problem = ArenaProblem(
            tuple(buffer for each in own for buffer in each), lives.period * frames
        )
        found = least_arena(problem, most_nodes=MOST_NODES, deterministic_s=0)
        if best is None or found.size_bytes < best[1]:
            best = [*_shares(found, [len(each) for each in own])], found.size_bytes
    assert best is not None
    places = iter(best[0])
    return [next(places) if block.size_bytes else [0] for block in blocks], best[1]


def _shares(found: Found, counts: Sequence[int]) -> Iterator[list[int]]:
    ends = [0]
    for count in counts:
        ends.append(ends[-1] + count)
    for begin, end in pairwise(ends):
        yield [*found.offset_bytes[begin:end]]


def _buffers(lives: PlanLives, block: Block, frames: int, alignment_bytes: int) -> Iterator[Buffer]:
    """Yield a buffer for each frame of a block that needs one of its own."""
    (first, *_) = block.members
    each, circle = lives.all[first], lives.period * frames
    if each.queued:
        for slot in range(each.life.frames):
            name = f"{each.name}@{slot}"
            yield Buffer(name, block.size_bytes, 0, circle, alignment_bytes)
    else:
        buffer = Buffer(each.name, block.size_bytes, block.begin, block.end, alignment_bytes)
        yield from frames_of(buffer, lives.period, frames)
