"""The best pairs of time and energy that schedules have been found for."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf

import numpy as np
from numpy.typing import NDArray

from parapipe.mapping.assignments.tables import Floats, Numbers

ROUNDING = 1e-12  # share by which sums of the same figures in different orders may differ


@dataclass(slots=True)
class Best:
    """Schedules by ascending time and descending energy, and what may still be better.

    Parameters
    ----------
    least_j
        The least energy that any schedule can take.
    gap
        A schedule does not matter if a known one takes at most this share more time, and energy;
        but for the shortest, and those of least energy.
    """

    least_j: float
    gap: float
    operators: int
    time_s: Floats = field(init=False)
    energy_j: Floats = field(init=False)
    processor: Numbers = field(init=False)
    start_s: Floats = field(init=False)
    _known_j: Floats = field(init=False)  # the energies behind that of no schedule

    def __post_init__(self) -> None:
        self.time_s, self.energy_j = np.empty(0), np.empty(0)
        self.processor = np.empty((0, self.operators), np.int64)
        self.start_s = np.empty((0, self.operators))
        self._known_j = np.full(1, inf)

    def offer(self, time_s: Floats, energy_j: Floats, processor: Numbers, start_s: Floats) -> None:
        """Take what is not beaten of some schedules."""
        times_s = np.concatenate((self.time_s, time_s))
        energies_j = np.concatenate((self.energy_j, energy_j))
        order = np.lexsort((energies_j, times_s))
        least_j = np.minimum.accumulate(energies_j[order])
        kept = order[np.append(True, energies_j[order][1:] < least_j[:-1] * (1 - ROUNDING))]
        self.time_s, self.energy_j = times_s[kept], energies_j[kept]
        self._known_j = np.append(inf, self.energy_j)
        self.processor = np.concatenate((self.processor, processor))[kept]
        self.start_s = np.concatenate((self.start_s, start_s))[kept]

    def matter(self, time_s: Floats, energy_j: Floats) -> NDArray[np.bool_]:
        """Tell which lower bounds on time and energy leave room for a schedule that matters."""
        share: Floats | float = 1 + ROUNDING
        if self.gap and len(self.time_s):
            ends = (time_s <= self.time_s[0] * (1 + ROUNDING)) | (
                energy_j <= self.least_j * (1 + ROUNDING)
            )
            share = np.where(ends, 1 + ROUNDING, 1 + (self.gap + ROUNDING))
        known_j = self._known_j[np.searchsorted(self.time_s, time_s * share, "right")]
        found: NDArray[np.bool_] = known_j > energy_j * share
        return found

    def least_before(self) -> Floats:
        """Return the energy that nothing falls below that is as short as each of the schedules."""
        at = np.searchsorted(self.time_s, self.time_s * (1 + self.gap), "right") - 1
        least_j: Floats = self.energy_j[at] / (1 + self.gap)
        least_j[[0, -1]] = self.energy_j[[0, -1]]  # the ends are exact
        return least_j


def sparse(time_s: Floats, energy_j: Floats, share: float) -> list[int]:
    """Return the numbers of pairs that match all others within a share; both ends stay.

    Times ascend and energies descend.
    """
    kept, last = [0], len(time_s) - 1
    for at in range(1, last):
        if at > kept[-1] and energy_j[kept[-1]] > energy_j[at] * (1 + share):
            latest_s = time_s[at] * (1 + share)
            kept.append(min(int(np.searchsorted(time_s, latest_s, "right")), last) - 1)
    return [*kept, last] if last else kept
