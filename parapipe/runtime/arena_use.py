"""Which tensors of a run lie in arenas, which do not, and why.

This file needs the standard library only, so that it can stand beside a runner on a device.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from .document import Outside, SessionPlan
from .folder import CPU_PROVIDER, Folder
from .sessions import Used
from .views import ranges_of


@dataclass(frozen=True, slots=True)
class InArenas:
    """Arenas and the tensors of one frame.

    Parameters
    ----------
    size_bytes
        Of each arena, by the name of its memory.
    inside_bytes
        Of all tensors of a frame that lie in them, each by itself.
    outside
        Of all others between segments: how many they are and their bytes, by the reason.
    """

    size_bytes: Mapping[str, int]
    inside_bytes: int
    outside: Mapping[str, tuple[int, int]]

    @property
    def outside_bytes(self) -> int:
        """Of all tensors of a frame that lie in no arena."""
        return sum(size_bytes for _, size_bytes in self.outside.values())

    def sentence(self) -> str:
        """Return how much lies where."""
        arenas = sum(self.size_bytes.values()) / 1e6
        text = (
            f"of a frame's tensors between sessions, {self.inside_bytes / 1e6:.2f} MB lie in "
            f"{'an arena' if len(self.size_bytes) == 1 else 'arenas'} of {arenas:.2f} MB"
        )
        others = (f"{size / 1e6:.2f} MB, since {why}" for why, (_, size) in self.outside.items())
        return f"{text}; elsewhere {'; '.join(others)}" if self.outside else text


def in_arenas(plan: SessionPlan) -> InArenas:
    """Return what lies in the arenas of a plan, if it runs with them."""
    within = {each.tensor for made in ranges_of(plan).values() for each in made}
    outside: defaultdict[str, list[int]] = defaultdict(list)
    for each in plan.outside:
        outside[each.why].append(plan.tensors[each.tensor].size_bytes)
    return InArenas(
        {each.name: each.size_bytes for each in plan.arenas},
        sum(
            plan.tensors[each.tensor].size_bytes
            for each in plan.places
            if each.tensor not in within
        ),
        {why: (len(sizes), sum(sizes)) for why, sizes in sorted(outside.items())},
    )


def restrict_places(
    folder: Folder, sessions: Mapping[tuple[str, str], Any], used: Iterable[Used]
) -> Folder:
    """Return a folder whose places are those that ONNX Runtime takes.

    It writes into memory of ours if the CPU's provider runs the segment and if it knows the
    tensor's shape before it runs.

    Parameters
    ----------
    sessions
        By processor and segment.
    used
        What runs each processor.
    """
    provider_of = {each.processor: each.provider for each in used}
    whole_of = {each.tensor: whole for whole, made in ranges_of(folder).items() for each in made}
    why: dict[str, str] = {}
    for (processor, name), session in sessions.items():
        segment = next(each for each in folder.segments if each.id == name)
        shapes = {each.name: each.shape for each in session.get_outputs()}
        for tensor in segment.outputs:
            whole = whole_of.get(tensor, tensor)
            if provider_of[processor] != CPU_PROVIDER:
                why[whole] = f"{provider_of[processor]} makes them"
            elif tuple(shapes[tensor]) != folder.tensors[tensor].shape:
                why[whole] = "ONNX Runtime knows their shapes when it has made them"
    places = tuple(each for each in folder.places if each.tensor not in why)
    left = (Outside(each.tensor, why[each.tensor]) for each in folder.places if each.tensor in why)
    return replace(folder, places=places, outside=(*folder.outside, *left))
