"""The memory pool of a generated program: those offsets of a plan that hold for its back ends."""

from __future__ import annotations

from collections.abc import Mapping

from parapipe.plan.schema import Plan
from parapipe.targets.native.build import arena_of
from parapipe.targets.native.library_plan import Arena
from parapipe.targets.native.steps import Steps


def pool_of(plan: Plan, into: Steps, *, channels_last: bool) -> Arena | None:
    """Return where tensors lie.

    What a convolution reads at the turn of the Add behind it, which it includes, has no place: in
    the plan, its bytes are free by then.

    Parameters
    ----------
    channels_last
        Whether images are kept pixel by pixel. A plan's offsets are for ONNX's order. Such a tensor
        has as many bytes, but a part of it, as what a Concat joins, is not the same bytes of the
        whole: so parts have no place, and neither has what is written over one.
    """
    arena = arena_of(plan, into)
    if arena is None:
        return None
    elsewhere = {step.inputs[0] for step in into.steps if step.includes is not None}
    if channels_last:
        parts = {each.tensor for each in plan.buffers if each.within is not None}
        over = {each.tensor: each.over for each in plan.buffers if each.over is not None}
        elsewhere |= {name for name in (*parts, *over) if _lies_on(name, over, parts)}
    places = tuple(each for each in arena.places if each.tensor not in elsewhere)
    return arena.model_copy(update={"places": places})


def _lies_on(name: str | None, over: Mapping[str, str], parts: set[str]) -> bool:
    """Whether a tensor is a part, or written over one."""
    while name is not None and name not in parts:
        name = over.get(name)
    return name is not None
