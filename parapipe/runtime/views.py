"""Tensors that lie in memory of ours: ranges of others, and what has a place in an arena.

A segment writes them there through ONNX Runtime's I/O binding, and who reads them is given that
memory, without a copy. A tensor that is made of ranges and has no place in an arena has a buffer
for each frame on its way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from .document import Place, Segment, SessionPlan
from .ranges import frames_held, ranges_of

Arrays = Mapping[str, Any]
CACHE_LINE_BYTES = 64


def arenas_of(plan: SessionPlan) -> dict[str, Any]:
    """Return memory for each arena in which a plan has places, by its name."""
    used = {each.arena for each in plan.places}
    return {each.name: _aligned(each.size_bytes) for each in plan.arenas if each.name in used}


def _aligned(size_bytes: int) -> Any:  # noqa: ANN401 - an array of bytes
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
        ranges, frames = ranges_of(plan), frames_held(plan)
        arenas = arenas or {}
        place_of = {each.tensor: each for each in plan.places if each.arena in arenas}
        self._written = {each.tensor for made in ranges.values() for each in made} | {*place_of}
        self._buffers = {
            whole: [
                np.empty(plan.tensors[whole].shape, plan.tensors[whole].dtype)
                for _ in range(max(frames[each.tensor] for each in made))
            ]
            for whole, made in ranges.items()
            if whole not in place_of
        }
        for name, each in place_of.items():
            self._buffers[name] = [*self._placed(each, arenas[each.arena])]
        self._still = {each.id for each in plan.segments if _copies_nothing(each, place_of)}

    def load(self, frame: int, arrays: Arrays) -> Arrays:
        """Copy the graph inputs that have a place into it; return all."""
        there = {name: self._array(name, frame, arrays) for name in arrays}
        for name, array in arrays.items():
            if there[name] is not array:
                np.copyto(there[name], array)
        return there

    def run(
        self,
        session: Any,  # noqa: ANN401 - onnxruntime is untyped
        segment: Segment,
        frame: int,
        made: Arrays,
        options: Any,  # noqa: ANN401
    ) -> list[Any]:
        """Run a segment for a frame; return what it makes.

        Parameters
        ----------
        made
            What other segments have made of what it reads.
        """
        if segment.id in self._still:
            return [self._array(name, frame, made) for name in segment.outputs]
        inputs = {name: self._array(name, frame, made) for name in segment.inputs}
        if self._written.isdisjoint(segment.outputs):
            return list(session.run(segment.outputs, inputs, options))
        ranges = {
            name: self._array(name, frame, made)
            for name in segment.outputs
            if name in self._written
        }
        return run_into(session, segment.outputs, inputs, ranges, options)

    def _placed(self, place: Place, arena: Any) -> Iterator[Any]:  # noqa: ANN401
        tensor = self._tensors[place.tensor]
        for offset in place.offset_bytes:
            there = arena[offset : offset + tensor.size_bytes]
            yield there.view(tensor.dtype).reshape(tensor.shape)

    def _array(self, name: str, frame: int, made: Arrays) -> Any:  # noqa: ANN401
        view = self._view_of.get(name)
        whole = view.whole if view else name
        buffers = self._buffers.get(whole)
        array = buffers[frame % len(buffers)] if buffers else made[whole]
        if view is None:
            return array
        return array.reshape(-1)[view.begin : view.end].reshape(self._tensors[name].shape)


def _copies_nothing(segment: Segment, place_of: Mapping[str, Place]) -> bool:
    """Tell whether all that a segment does is to join or cut what lies there already."""
    if len(segment.operators) > 1 or not all(name in place_of for name in segment.outputs):
        return False
    placed = [name for name in segment.inputs if name in place_of]
    return all(
        place_of[made].within in placed
        or (
            len(placed) == len(segment.inputs)
            and all(place_of[name].within == made for name in placed)
        )
        for made in segment.outputs
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
    made = zip(outputs, binding.get_outputs(), strict=True)
    return [into[name] if name in into else value.numpy() for name, value in made]
