"""Which tensors are made of ranges that segments make, and what must be there to read them.

This file needs the standard library only, so that it can stand beside a runner on a device.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from math import prod

from .document import SessionPlan, View
from .fields import DamagedError


def ranges_of(plan: SessionPlan) -> dict[str, list[View]]:
    """Return the ranges that segments make, in order, by the tensor that is made of them."""
    makers = {name for segment in plan.segments for name in segment.outputs}
    found: dict[str, list[View]] = {}
    for each in sorted(plan.views, key=lambda view: view.begin):
        if each.tensor in makers:
            found.setdefault(each.whole, []).append(each)
    return found


def sources(plan: SessionPlan) -> dict[str, tuple[str, ...]]:
    """Return the tensors that must be there for each segment, by its id: what others have made."""
    view_of, ranges = {each.tensor: each for each in plan.views}, ranges_of(plan)
    return {
        segment.id: tuple(
            dict.fromkeys(
                each for name in segment.inputs for each in _made(name, plan, view_of, ranges)
            )
        )
        for segment in plan.segments
    }


def frames_held(plan: SessionPlan) -> dict[str, int]:
    """Return of how many frames each tensor may be held at once."""
    lag_of = {segment.id: segment.lag for segment in plan.segments}
    turns = {each.name: each.turn[1] for each in plan.processors}
    found: dict[str, int] = {}
    for channel in plan.channels:
        if channel.producer is not None:
            apart = max(lag_of[each] for each in channel.consumers) - lag_of[channel.producer]
            under_way = apart + turns[channel.processor]
            held = max(channel.queue_depth, under_way, found.get(channel.tensor, 1))
            found[channel.tensor] = held
    return found


def check_views(plan: SessionPlan) -> None:
    """Check that ranges lie within their tensors, and that what is read is made, each part once.

    Raises
    ------
    DamagedError
        If they do not, or not.
    """
    view_of, ranges = {each.tensor: each for each in plan.views}, ranges_of(plan)
    for each in plan.views:
        sizes = [prod(plan.tensors[name].shape) for name in (each.tensor, each.whole)]
        if each.end - each.begin != sizes[0] or each.end > sizes[1]:
            raise DamagedError(
                f"it takes '{each.tensor}' for elements {each.begin} to {each.end} of "
                f"'{each.whole}', and they have {sizes[0]} and {sizes[1]} elements"
            )
    for whole, made in ranges.items():
        if any(a.end > b.begin for a, b in pairwise(made)):
            raise DamagedError(f"elements of '{whole}' are made by several segments")
    for name in {name for segment in plan.segments for name in segment.inputs}:
        whole, begin, end = _range(name, plan, view_of)
        there = ranges.get(whole, [])
        size = sum(max(0, min(each.end, end) - max(each.begin, begin)) for each in there)
        if there and size < end - begin:
            raise DamagedError(f"no segment makes some of the elements of '{name}'")


def check_places(plan: SessionPlan) -> None:
    """Check that places are those of tensors, and lie within their arenas.

    Raises
    ------
    DamagedError
        If they do not.
    """
    size_of = {each.name: each.size_bytes for each in plan.arenas}
    for each in plan.places:
        size_bytes = plan.tensors[each.tensor].size_bytes
        if each.arena not in size_of:
            raise DamagedError(
                f"'{each.tensor}' lies in the arena '{each.arena}', which is not there"
            )
        if not each.offset_bytes:
            raise DamagedError(f"'{each.tensor}' has a place without an offset")
        if (end := max(each.offset_bytes) + size_bytes) > size_of[each.arena]:
            raise DamagedError(
                f"'{each.tensor}' ends at {end}, and the arena '{each.arena}' has "
                f"{size_of[each.arena]} bytes"
            )


def _range(name: str, plan: SessionPlan, view_of: Mapping[str, View]) -> tuple[str, int, int]:
    if view := view_of.get(name):
        return view.whole, view.begin, view.end
    return name, 0, prod(plan.tensors[name].shape) if name in plan.tensors else 0


def _made(
    name: str,
    plan: SessionPlan,
    view_of: Mapping[str, View],
    ranges: Mapping[str, Sequence[View]],
) -> Iterator[str]:
    whole, begin, end = _range(name, plan, view_of)
    if whole not in ranges:
        yield whole
    for each in ranges.get(whole, ()):
        if each.begin < end and begin < each.end:
            yield each.tensor
