"""What a configuration needs of memory, in sentences."""

from __future__ import annotations

from collections.abc import Iterator

from parapipe.digits import plain
from parapipe.files.listing import listed
from parapipe.formats.front import ConfigurationRow
from parapipe.formats.memory import MemoryRow
from parapipe.pipeline.memory import AliveRow
from parapipe.plan.mapped import mapped
from parapipe.plan.memory_record import Arena
from parapipe.plan.schema import Plan

LARGEST = 4  # tensors that are named
ROUNDING = 1e-9  # share of a period


def memory_texts(row: ConfigurationRow, plan: Plan) -> Iterator[str]:
    """Yield a sentence for each memory, and one for all if there are several."""
    if row.peak_memory_bytes is not None and len(row.memories) > 1:
        yield f"It needs at most {_mb(row.peak_memory_bytes)} at one moment in all memories."
    for each in row.memories:
        yield _sentence(each, running(plan, each.at_s))
    if plan.memory is not None:
        yield from (_of_arena(arena, plan) for arena in plan.memory.arenas if arena.size_bytes)


def running(plan: Plan, at_s: float) -> list[str]:
    """Return the ids of the operators that run at a moment of the period."""
    view, period_s = mapped(plan), plan.predicted.period_s
    late_s = period_s * ROUNDING

    def runs(start_s: float, end_s: float) -> bool:
        since_s = (at_s - start_s + late_s) % period_s
        return since_s < end_s - start_s - late_s

    return [name for name, at in view.placements.items() if runs(at.start_s, at.end_s)]


def _sentence(memory: MemoryRow, operators: list[str]) -> str:
    activations_bytes = memory.peak_bytes - memory.weights_bytes
    told = (
        f"Memory ({memory.name}): at most {_mb(memory.peak_bytes)}, of which "
        f"{_mb(memory.weights_bytes)} are weights"
    )
    if not memory.alive:
        return f"{told}."
    largest = ", ".join(map(_alive, memory.alive[:LARGEST]))
    more = len(memory.alive) - LARGEST
    others = f" and {more} more" if more > 0 else ""
    verb = "runs" if len(operators) == 1 else "run"
    during = f", while {listed(operators)} {verb}" if operators else ""
    return (
        f"{told}. The other {_mb(activations_bytes)} are in use {plain(memory.at_s * 1e3)} ms "
        f"after the start of the period{during}: {largest}{others}."
    )


def _of_arena(arena: Arena, plan: Plan) -> str:
    """Say how large an arena is, beside what it takes at least, and how much is shared in it."""
    here = [each for each in plan.buffers if each.processors[0] in arena.processors]
    over, within = (
        sum(getattr(each, kind) is not None for each in here) for kind in ("over", "within")
    )
    above = arena.size_bytes / max(1, arena.bound_bytes) - 1
    best = "no arena is smaller" if arena.proven else f"{above:.1%} above its bound"
    return (
        f"The plan's {len(here)} buffers in this memory lie in an arena of "
        f"{_mb(arena.size_bytes)} ({best}); {over} of them replace an input of their operator, and "
        f"{within} are parts of other buffers."
    )


def _alive(row: AliveRow) -> str:
    what = {"tensor": "", "copy": "copy of ", "queue": "queue of "}[row.content]
    many = f" ({row.frames} frames)" if row.frames > 1 else ""
    return f"{what}{row.name} {_mb(row.size_bytes)}{many}"


def _mb(size_bytes: float) -> str:
    return f"{plain(size_bytes / 1e6)} MB"
