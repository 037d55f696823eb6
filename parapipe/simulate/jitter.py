"""Chance: by how much a task's time differs from frame to frame."""

from __future__ import annotations

from math import log, sqrt
from random import Random


class Jitter:
    """Factors of one task's times, frame after frame.

    They are log-normal: positive, of mean 1 and the standard deviation asked for. A task's factors
    depend on its name and the seed alone, so runs that differ in queues or admission meet the same.
    """

    def __init__(self, share: float, seed: int, name: str) -> None:
        self._sigma = sqrt(log(1 + share * share))
        self._random = Random(f"{seed} {name}")
        self._factors: list[float] = []

    def of_frame(self, frame: int) -> float:
        """Return the factor of a frame."""
        while len(self._factors) <= frame:
            factor = self._random.lognormvariate(-self._sigma * self._sigma / 2, self._sigma)
            self._factors.append(factor)
        return self._factors[frame]
