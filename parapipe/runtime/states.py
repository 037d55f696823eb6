"""States: what one step makes, and a later one reads as its input.

Of N sequences that take turns, frame n is a step of sequence n modulo N and reads what frame n - N
has made. The first step of each reads what comes with its frame. A tensor that has grown along an
axis keeps the plan's shape: its oldest entries go. Of one that is shorter, as after the steps of
another shape, zeros stand in for older entries. A token is the index of the largest number along
the last axis, as greedy decoding has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any

import numpy as np

from .document import SessionPlan, State, Tensor
from .folder import Folder


class States:
    """The states of a plan, by the segments that make and read them.

    `names` are the graph inputs that steps hand on, and `frames` is how many frames later they are
    read.
    """

    def __init__(self, plan: SessionPlan) -> None:
        maker_of = {each.tensor: each.segment for each in plan.outputs}
        self.frames, self._tensors = plan.sequences, plan.tensors
        self._first = isinstance(plan, Folder) and plan.first_slots
        self._made: dict[str, list[State]] = {}
        waits: dict[str, dict[str, None]] = {each.id: {} for each in plan.segments}
        for state in plan.states:
            if (maker := maker_of.get(state.output)) is None:
                continue
            self._made.setdefault(maker, []).append(state)
            for segment in plan.segments:
                if state.input in segment.inputs:
                    waits[segment.id][maker] = None
        self.names = frozenset(each.input for some in self._made.values() for each in some)
        self.waits = {name: tuple(makers) for name, makers in waits.items()}
        """Segments that a segment waits for, so many frames before."""

    def entering(self, frame: int, arrays: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return what a frame brings: of states, only before a step has made them."""
        if frame < self.frames or not self.names:
            return arrays
        return {name: array for name, array in arrays.items() if name not in self.names}

    def next_inputs(
        self, segment: str, outputs: Iterable[str], arrays: Iterable[Any]
    ) -> Iterator[tuple[str, Any]]:
        """Yield graph inputs of the next step that a segment makes, with their arrays."""
        if states := self._made.get(segment):
            made = dict(zip(outputs, arrays, strict=True))
            for state in states:
                wanted = self._tensors[state.input]
                array = next_input(state, made[state.output], wanted, first=self._first)
                yield state.input, array


def next_input(state: State, made: Any, wanted: Tensor, *, first: bool = False) -> Any:  # noqa: ANN401 - any dtype
    """Return the input of the next step, given what a step has made.

    Parameters
    ----------
    wanted
        Its type and shape.
    first
        Whether what has another shape keeps its first entries, and not its last ones.
    """
    array = np.asarray(made)
    if state.kind == "token":
        chosen = np.argmax(array, axis=-1).reshape(-1)[-int(np.prod(wanted.shape)) :]
        return chosen.reshape(wanted.shape).astype(wanted.dtype)
    if array.shape == wanted.shape:
        return np.ascontiguousarray(array)
    some = array[_kept_entries(array.shape, wanted.shape, first=first)]
    if some.shape == wanted.shape:
        return np.ascontiguousarray(some)
    padded = np.zeros(wanted.shape, array.dtype)
    padded[_kept_entries(wanted.shape, array.shape, first=first)] = some
    return padded


@cache
def _kept_entries(
    shape: tuple[int, ...], other: tuple[int, ...], *, first: bool
) -> tuple[slice, ...]:
    """Return what a tensor of a shape has in common with one of another shape."""
    kept = [min(each) for each in zip(shape, other, strict=True)]
    begins = (0 if first else has - count for has, count in zip(shape, kept, strict=True))
    return tuple(slice(at, at + count) for at, count in zip(begins, kept, strict=True))
