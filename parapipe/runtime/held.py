"""Bytes of the tensors that a run holds between its segments, and the most at one time.

A tensor counts from the start of the segment that makes it, which writes it all the while, to the
end of the last one that reads it, and a result until it is taken. Graph inputs count from the first
start of their frame on: those that wait to be admitted are the caller's. Tensors that are made of
ranges have buffers, which are there all the time.

This file needs the standard library only, so that it can stand beside a runner on a device.
"""

from __future__ import annotations

from collections.abc import Collection

from .document import SessionPlan
from .ranges import frames_held, ranges_of


class HeldBytes:
    """What is held now, and the most so far.

    Parameters
    ----------
    plan
        A folder's, with the queues of the run.
    read
        Tensors that somebody reads or takes.
    """

    def __init__(self, plan: SessionPlan, read: Collection[str]) -> None:
        ranges, frames = ranges_of(plan), frames_held(plan)
        within = {each.tensor for made in ranges.values() for each in made}
        self._size = {name: 0 if name in within else plan.tensors[name].size_bytes for name in read}
        self._makes = {
            each.id: sum(self._size.get(name, 0) for name in each.outputs) for each in plan.segments
        }
        self._enters = sum(self._size.get(name, 0) for name in plan.inputs)
        self._entered = 0
        self._now = sum(
            plan.tensors[whole].size_bytes * max(frames[each.tensor] for each in made)
            for whole, made in ranges.items()
        )
        self.peak = self._now

    def begin(self, segment: str, frame: int) -> None:
        """Count what a segment makes, and the inputs of frames that begin now."""
        self._now += self._makes[segment]
        if frame >= self._entered:
            self._now += self._enters * (frame + 1 - self._entered)
            self._entered = frame + 1
        self.peak = max(self.peak, self._now)

    def end(self, tensor: str) -> None:
        """Count a tensor no more, which nobody will read again."""
        self._now -= self._size[tensor]
