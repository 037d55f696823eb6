"""Tensors that lie in memory of ours: ranges of others, and when they may be read.

This file needs the standard library only, so that it can stand beside a runner on a device.

A segment writes them there through ONNX Runtime's I/O binding, and who reads them is given that
memory, without a copy. A tensor that is made of ranges and has no place in an arena has a buffer
for each frame on its way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from .document import Place, Segment, SessionPlan, View
from .fields import DamagedError


def ranges_of(plan: SessionPlan) -> dict[str, list[View]]:
    """Return the ranges that segments make, in order, by the tensor that is made of them."""
    makers = {name for segment in plan.segments for name in segment.outputs}
    ranges: dict[str, list[View]] = {}
    for each in sorted(plan.views, key=lambda view: view.begin):
        if each.tensor in makers:
            ranges.setdefault(each.whole, []).append(each)
    return ranges


def container_of(plan: SessionPlan) -> dict[str, str]:
    """Return the tensor that each range which a segment makes is part of, by the range's name."""
    return {each.tensor: name for name, parts in ranges_of(plan).items() for each in parts}


def sources(plan: SessionPlan) -> dict[str, tuple[str, ...]]:
    """Return the tensors that must be there for each segment, by its id: what others have made."""
    view_of, ranges = {each.tensor: each for each in plan.views}, ranges_of(plan)
    return {
        segment.id: tuple(
            dict.fromkeys(
                each
                for name in segment.inputs
                for each in _source_tensors(name, plan, view_of, ranges)
            )
        )
        for segment in plan.segments
    }


def frames_buffered(plan: SessionPlan) -> dict[str, int]:
    """Return of how many frames each tensor may be held at once."""
    lag_of = {segment.id: segment.lag for segment in plan.segments}
    turns = {each.name: each.turn[1] for each in plan.processors}
    frames: dict[str, int] = {}
    for channel in plan.channels:
        if channel.producer is not None:
            lag_distance = (
                max(lag_of[each] for each in channel.consumers) - lag_of[channel.producer]
            )
            under_way = lag_distance + turns[channel.processor]
            count = max(channel.queue_depth, under_way, frames.get(channel.tensor, 1))
            frames[channel.tensor] = count
    return frames


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
    for container, parts in ranges.items():
        if any(a.end > b.begin for a, b in pairwise(parts)):
            raise DamagedError(f"elements of '{container}' are made by several segments")
    for name in {name for segment in plan.segments for name in segment.inputs}:
        container, begin, end = _element_range(name, plan, view_of)
        there = ranges.get(container, [])
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


def _element_range(
    name: str, plan: SessionPlan, view_of: Mapping[str, View]
) -> tuple[str, int, int]:
    if view := view_of.get(name):
        return view.whole, view.begin, view.end
    return name, 0, prod(plan.tensors[name].shape) if name in plan.tensors else 0


def _source_tensors(
    name: str, plan: SessionPlan, view_of: Mapping[str, View], ranges: Mapping[str, Sequence[View]]
) -> Iterator[str]:
    container, begin, end = _element_range(name, plan, view_of)
    if container not in ranges:
        yield container
    for each in ranges.get(container, ()):
        if each.begin < end and begin < each.end:
            yield each.tensor


Arrays = Mapping[str, Any]
CACHE_LINE_BYTES = 64


def arenas_of(plan: SessionPlan) -> dict[str, Any]:
    """Return memory for each arena in which a plan has places, by its name."""
    used = {each.arena for each in plan.places}
    return {
        each.name: _aligned_memory(each.size_bytes) for each in plan.arenas if each.name in used
    }


def _aligned_memory(size_bytes: int) -> Any:  # noqa: ANN401 - an array of bytes
    memory = np.empty(size_bytes + CACHE_LINE_BYTES, np.uint8)
    begin = -memory.ctypes.data % CACHE_LINE_BYTES
    return memory[begin : begin + size_bytes]


class Views:
    """The buffers of a run.

    Parameters
    ----------
    plan
        A folder's, with the queues of the run.
    arenas
        Memory of arenas, by their names; places in others are not used.
    """

    def __init__(self, plan: SessionPlan, arenas: Arrays | None = None) -> None:
        self._view_of = {each.tensor: each for each in plan.views}
        self._tensors = plan.tensors
        ranges, frames = ranges_of(plan), frames_buffered(plan)
        arenas = arenas or {}
        place_of = {each.tensor: each for each in plan.places if each.arena in arenas}
        self._written = {*container_of(plan), *place_of}
        self._buffers = {
            container: [
                np.empty(plan.tensors[container].shape, plan.tensors[container].dtype)
                for _ in range(max(frames[each.tensor] for each in parts))
            ]
            for container, parts in ranges.items()
            if container not in place_of
        }
        for name, each in place_of.items():
            self._buffers[name] = [*self._arrays_in_arena(each, arenas[each.arena])]
        self._copying_nothing = {
            each.id for each in plan.segments if _copies_nothing(each, place_of)
        }

    def load(self, frame: int, arrays: Arrays) -> Arrays:
        """Copy the graph inputs that have a place into it; return all."""
        there = {name: self._array_of(name, frame, arrays) for name in arrays}
        for name, array in arrays.items():
            if there[name] is not array:
                np.copyto(there[name], array)
        return there

    def run(
        self,
        session: Any,  # noqa: ANN401 - onnxruntime is untyped
        segment: Segment,
        frame: int,
        arrays: Arrays,
        options: Any,  # noqa: ANN401
    ) -> list[Any]:
        """Run a segment for a frame; return what it makes.

        Parameters
        ----------
        arrays
            What other segments have made of what it reads.
        """
        if segment.id in self._copying_nothing:
            return [self._array_of(name, frame, arrays) for name in segment.outputs]
        inputs = {name: self._array_of(name, frame, arrays) for name in segment.inputs}
        if self._written.isdisjoint(segment.outputs):
            return list(session.run(segment.outputs, inputs, options))
        ranges = {
            name: self._array_of(name, frame, arrays)
            for name in segment.outputs
            if name in self._written
        }
        return run_into(session, segment.outputs, inputs, ranges, options)

    def _arrays_in_arena(self, place: Place, arena: Any) -> Iterator[Any]:  # noqa: ANN401
        tensor = self._tensors[place.tensor]
        for offset in place.offset_bytes:
            there = arena[offset : offset + tensor.size_bytes]
            yield there.view(tensor.dtype).reshape(tensor.shape)

    def _array_of(self, name: str, frame: int, arrays: Arrays) -> Any:  # noqa: ANN401
        view = self._view_of.get(name)
        container = view.whole if view else name
        buffers = self._buffers.get(container)
        array = buffers[frame % len(buffers)] if buffers else arrays[container]
        if view is None:
            return array
        return array.reshape(-1)[view.begin : view.end].reshape(self._tensors[name].shape)


def _copies_nothing(segment: Segment, place_of: Mapping[str, Place]) -> bool:
    """Tell whether all that a segment does is to join or cut what lies there already."""
    if len(segment.operators) > 1 or not all(name in place_of for name in segment.outputs):
        return False
    placed = [name for name in segment.inputs if name in place_of]
    return all(
        place_of[output].within in placed
        or (
            len(placed) == len(segment.inputs)
            and all(place_of[name].within == output for name in placed)
        )
        for output in segment.outputs
    )


def run_into(
    session: Any,  # noqa: ANN401 - onnxruntime is untyped
    outputs: Sequence[str],
    inputs: Arrays,
    into: Arrays,
    options: Any,  # noqa: ANN401
) -> list[Any]:
    """Run a session that writes some of its outputs into given arrays; return all outputs."""
    binding = session.io_binding()
    for name, array in inputs.items():
        binding.bind_cpu_input(name, array)
    for name in outputs:
        if name in into:
            array = into[name]
            binding.bind_output(name, "cpu", 0, array.dtype, array.shape, array.ctypes.data)
        else:
            binding.bind_output(name)
    session.run_with_iobinding(binding, options)
    results = zip(outputs, binding.get_outputs(), strict=True)
    return [into[name] if name in into else value.numpy() for name, value in results]
