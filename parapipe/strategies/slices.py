"""Which part of every tensor belongs to a micro-batch: a slice along the outermost axis.

All micro-batches of a frame write to and read from one buffer of the whole batch, so that neither
splitting nor merging copies anything.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np

from parapipe.runtime.document import SessionPlan, Tensor
from parapipe.runtime.folder import RunError
from parapipe.runtime.frames import Frame


class Slices:
    """The buffers of split frames.

    Parameters
    ----------
    plan
        A folder's, for whole batches.
    sized
        The same plan's for micro-batches, by their size; none if nothing is split.

    Raises
    ------
    RunError
        Names tensors between pieces of which a micro-batch has no slice.
    """

    def __init__(self, plan: SessionPlan, batch: int, sized: Mapping[int, SessionPlan]) -> None:
        self._tensors, self._batch = plan.tensors, batch
        self._rows: dict[str, int] = {}  # of one item of the batch, by name
        self._spare: defaultdict[str, list[Any]] = defaultdict(list)
        self._lent: dict[int, Any] = {}
        odd: set[str] = set()
        for size, other in sized.items():
            for name, tensor in plan.tensors.items():
                small = other.tensors[name]
                rows, left = divmod(tensor.shape[0], batch) if tensor.shape else (0, 0)
                if (small.dtype, small.shape) == (tensor.dtype, tensor.shape) and size != batch:
                    continue  # it does not depend on the batch
                if left or small.shape != (rows * size, *tensor.shape[1:]):
                    odd.add(f"'{name}' ({small} of a batch of {size}, {tensor} of {batch})")
                self._rows[name] = rows
        if odd:
            raise RunError(
                f"micro-batches need tensors between pieces whose outermost axis is that of the "
                f"batch, and these are not: {', '.join(sorted(odd))}; cut the network elsewhere"
            )

    def is_cut(self, name: str) -> bool:
        """Whether micro-batches have slices of a tensor: else it does not depend on the batch."""
        return name in self._rows

    def of(self, name: str, array: Any, begin: int, size: int) -> Any:  # noqa: ANN401 - any dtype
        """Return a micro-batch's slice of a tensor, given its first item and its size."""
        rows = self._rows.get(name)
        return array if rows is None else array[rows * begin : rows * (begin + size)]

    def frame(self, frame: Frame, size: int) -> Frame:
        """Return the first items of a frame."""
        if size == self._batch:
            return frame
        return {name: self.of(name, array, 0, size) for name, array in frame.items()}

    def buffer(self, name: str, *, lent: bool) -> Any:  # noqa: ANN401
        """Return a buffer for a whole batch of a tensor; it is used again unless it is lent."""
        if self._spare[name]:
            return self._spare[name].pop()
        tensor: Tensor = self._tensors[name]
        array = np.empty(tensor.shape, tensor.dtype)
        if not lent:
            self._lent[id(array)] = array
        return array

    def free(self, name: str, array: Any) -> None:  # noqa: ANN401
        """Take back what nobody reads any more, if it is one of the buffers."""
        if id(array) in self._lent:
            self._spare[name].append(array)
