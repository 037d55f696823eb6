"""Tensors that are ranges of others: they are written and read where they lie, without a copy.

A tensor that is made of ranges has a buffer for each frame on its way. A segment writes its range
of it through ONNX Runtime's I/O binding; who reads the whole, or a range, is given that memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .document import Segment, SessionPlan
from .ranges import frames_held, ranges_of

Arrays = Mapping[str, Any]


class Views:
    """The buffers of a run.

    Parameters
    ----------
    plan
        A folder's, with the queues of the run.
    """

    def __init__(self, plan: SessionPlan) -> None:
        self._view_of = {each.tensor: each for each in plan.views}
        self._tensors = plan.tensors
        ranges, frames = ranges_of(plan), frames_held(plan)
        self._written = {each.tensor for made in ranges.values() for each in made}
        self._buffers = {
            whole: [
                np.empty(plan.tensors[whole].shape, plan.tensors[whole].dtype)
                for _ in range(max(frames[each.tensor] for each in made))
            ]
            for whole, made in ranges.items()
        }

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
        inputs = {name: self._array(name, frame, made) for name in segment.inputs}
        if self._written.isdisjoint(segment.outputs):
            return list(session.run(segment.outputs, inputs, options))
        ranges = {
            name: self._array(name, frame, made)
            for name in segment.outputs
            if name in self._written
        }
        return run_into(session, segment.outputs, inputs, ranges, options)

    def _array(self, name: str, frame: int, made: Arrays) -> Any:  # noqa: ANN401
        view = self._view_of.get(name)
        whole = view.whole if view else name
        buffers = self._buffers.get(whole)
        array = buffers[frame % len(buffers)] if buffers else made[whole]
        if view is None:
            return array
        return array.reshape(-1)[view.begin : view.end].reshape(self._tensors[name].shape)


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
