"""What a search looks for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from parapipe.pipeline.candidate import StageCandidate
from parapipe.pipeline.mapping import Kind

Numbers = NDArray[np.int64]


class Aim(NamedTuple):
    """What a label may become: a configuration of the front, or the best of a kind."""

    kind: Kind | None = None
    order: tuple[int, ...] = (0, 1, 2)  # of latency, period and energy, for the best of a kind

    def allows(self, masks: Numbers) -> NDArray[np.bool_]:
        """Tell which sets of processors may be a stage's."""
        if self.kind == "pipe-only":
            narrow: NDArray[np.bool_] = np.bitwise_count(masks) == 1
            return narrow
        return np.ones(masks.shape, bool)

    def best(self, candidates: Iterable[StageCandidate]) -> StageCandidate | None:
        """Return the best of its kind."""
        return min((c for c in candidates if c.kind == self.kind), key=self.rank, default=None)

    def rank(self, candidate: StageCandidate) -> tuple[float, ...]:
        """Return figures, the most important first."""
        return tuple(candidate.nano_objectives[i] for i in self.order)


FRONT = Aim()
PIPE = Aim("pipe-only", (1, 0, 2))
HYBRIDS = (
    Aim("hybrid", (0, 1, 2)),
    Aim("hybrid", (1, 0, 2)),
)
