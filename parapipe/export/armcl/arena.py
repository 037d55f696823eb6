"""The plan's offsets for the tensors of an exported folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

from parapipe.export.armcl.steps import Steps
from parapipe.plan.armcl_forms import ACTIVATIONS
from parapipe.plan.armcl_plan import Arena, Memory, Place
from parapipe.plan.memory_record import MemoryLayout, PlacedBuffer
from parapipe.plan.network import network_of
from parapipe.plan.plan_lives import PlanLives
from parapipe.plan.schema import Plan

ITEM_BYTES = 4
"""Of float32."""
ELEMENT_BY_ELEMENT = frozenset(
    {"Add", "Sub", "Mul", "Div", "Max", "Min", "PRelu", "Exp", "Log", "Neg", *ACTIVATIONS}
)
"""Steps that may write over one of their operands."""


def arena_of(plan: Plan, into: Steps) -> Arena | None:
    """Return the places of those tensors that stand in the steps as they do in the plan.

    What steps make among themselves has none, and neither has what the plan copies to another
    memory: the runner copies at another time.
    """
    if plan.memory is None:
        return None
    network = network_of(plan, with_work=False)
    lives = PlanLives(plan, network, plan.memory.system)
    number = {operator.id: v for v, operator in enumerate(network.operators)}
    return Arena(
        points=lives.period,
        memories=tuple(
            Memory(name=each.name, size_bytes=each.size_bytes) for each in plan.memory.arenas
        ),
        places=tuple(_places(plan, plan.memory, into, number, lives)),
        spans={step.id: lives.turns[number[step.source or step.id]] for step in into.steps},
    )


def _places(
    plan: Plan, layout: MemoryLayout, into: Steps, number: Mapping[str, int], lives: PlanLives
) -> Iterator[Place]:
    users = _users(into, number, lives)
    inputs = {name: plan.tensors[name].shape for name in plan.inputs}
    shapes = inputs | into.shapes
    steps_of: dict[str, list[str]] = {}
    for step in into.steps:
        steps_of.setdefault(step.source or step.id, []).append(step.type)
    maker = {name: operator.id for operator in plan.operators for name in operator.outputs}
    for each in plan.buffers:
        there = [p for p in each.processors if p in users.get(each.tensor, ())]
        arena = next(a for a in layout.arenas if each.processors[0] in a.processors)
        taken = (
            each.content != "copy"
            and there[:1] == [each.processors[0]]
            and _fits(each, prod(shapes[each.tensor]) * ITEM_BYTES, arena.alignment_bytes)
            and (each.over is None or _writes_over(steps_of[maker[each.tensor]]))
        )
        if taken:
            yield Place(
                tensor=each.tensor,
                processors=tuple(there),
                memory=arena.name,
                offset_bytes=each.offset_bytes,
            )


def _users(into: Steps, number: Mapping[str, int], lives: PlanLives) -> dict[str, set[str]]:
    """Return the processors whose steps read or make each tensor."""
    names, at = lives.view.resources, lives.view.mapping.at
    found: dict[str, set[str]] = {}
    for step in into.steps:
        processor = names[at[number[step.source or step.id]].processor]
        for name in (*step.inputs, *step.outputs):
            found.setdefault(name, set()).add(processor)
    return found


def _fits(buffer: PlacedBuffer, size_bytes: int, alignment_bytes: int) -> bool:
    aligned = -(-size_bytes // alignment_bytes) * alignment_bytes
    return aligned == buffer.size_bytes and not any(at % ITEM_BYTES for at in buffer.offset_bytes)


def _writes_over(steps: list[str]) -> bool:
    return len(steps) == 1 and steps[0] in ELEMENT_BY_ELEMENT
