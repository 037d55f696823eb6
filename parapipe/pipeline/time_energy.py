"""Fronts of time and energy as arrays, and where tensors are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# The processors that hold a tensor: the one that made it, then those with a copy, ascending.
Location = tuple[int, ...]
Locations = tuple[Location, ...]
Reach = tuple[int, Locations]  # processors used so far, locations of the tensors behind


@dataclass(frozen=True, slots=True)
class TimeEnergy:
    """Times, ascending, and energies, descending: no pair is at least as good as another.

    Parameters
    ----------
    error_ns
        A pair that was left out is matched by one that takes so much more time at most.
    """

    time_ns: NDArray[np.int64]
    energy_nj: NDArray[np.int64]
    error_ns: int = 0

    def holds(self, time_ns: int, energy_nj: int) -> bool:
        """Tell whether the pair is on the front."""
        at = int(self.time_ns.searchsorted(time_ns))
        return (
            at < len(self.time_ns)
            and int(self.time_ns[at]) == time_ns
            and int(self.energy_nj[at]) == energy_nj
        )

    def pairs(self) -> Iterator[tuple[int, int]]:
        """Yield times and energies as whole numbers."""
        return zip(self.time_ns.tolist(), self.energy_nj.tolist(), strict=True)

    def then(self, other: TimeEnergy) -> TimeEnergy:
        """Return each pair with each of the other's added; not sorted, and some may be beaten."""
        if len(other.time_ns) == 1:
            return TimeEnergy(
                self.time_ns + other.time_ns, self.energy_nj + other.energy_nj, self.error_ns
            )
        return TimeEnergy(
            (self.time_ns + other.time_ns[:, None]).ravel(),
            (self.energy_nj + other.energy_nj[:, None]).ravel(),
            self.error_ns,
        )


START = TimeEnergy(np.zeros(1, np.int64), np.zeros(1, np.int64))


def merged(parts: Sequence[TimeEnergy]) -> TimeEnergy:
    """Return the front of all pairs of some fronts, which need not be sorted."""
    error_ns = max(part.error_ns for part in parts)
    if all(len(part.time_ns) == 1 for part in parts):  # without energy all are
        best = min(parts, key=lambda part: (part.time_ns[0], part.energy_nj[0]))
        if all(part.energy_nj[0] >= best.energy_nj[0] for part in parts):
            return TimeEnergy(best.time_ns, best.energy_nj, error_ns)
    time_ns = np.concatenate([part.time_ns for part in parts])
    energy_nj = np.concatenate([part.energy_nj for part in parts])
    order = time_ns.argsort()
    time_ns, energy_nj = time_ns[order], energy_nj[order]
    better = np.ones(len(order), bool)
    np.less(energy_nj[1:], np.minimum.accumulate(energy_nj)[:-1], out=better[1:])
    time_ns, energy_nj = time_ns[better], energy_nj[better]
    last = np.ones(len(time_ns), bool)  # of equal times the one of least energy
    np.greater(time_ns[1:], time_ns[:-1], out=last[:-1])
    return TimeEnergy(time_ns[last], energy_nj[last], error_ns)
