"""How exact sums of times need to be, and fronts made lighter within that."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import floor

import numpy as np
from numpy.typing import NDArray

from parapipe.pipeline.fronts import Front, Reach

MANY = 100  # points of a front that is left as it is


@dataclass(frozen=True, slots=True)
class Grain:
    """What runs of units may be off by.

    Each unit grants a share of the least time that it can take. A run of units takes at least as
    long as they do together, so what they grant is at most this share of its time.

    Parameters
    ----------
    granted_ns
        `granted_ns[u]`: what the units before u grant together.
    """

    granted_ns: tuple[int, ...]

    def lighter(self, fronts: Mapping[Reach, Front], begin: int, end: int) -> dict[Reach, Front]:
        """Make the fronts of a run from unit `begin` to `end` (exclusive) lighter.

        Points that fewer processors match are left out; of large fronts also those to which
        another one comes near enough in time and takes no more energy. What becomes of a front
        depends on itself and those of fewer processors only.
        """
        allowed_ns = self.granted_ns[end] - self.granted_ns[begin]
        kept: dict[Reach, Front] = {}
        for reach in sorted(fronts, key=lambda reach: (reach[0].bit_count(), reach)):
            mask, homes = reach
            front = fronts[reach]
            for (other, at), fewer in kept.items():
                if at == homes and not other & ~mask and len(front.time_ns):
                    front = _unmatched(front, fewer)
            if len(front.time_ns):
                kept[reach] = _thinned(front, allowed_ns)
        return kept


def grain(least_ns: Iterable[int], share: float) -> Grain:
    """Return the grain at which no run is off by more than a share of its time.

    Parameters
    ----------
    least_ns
        Of each unit, the least time it can take.
    """
    granted = [0]
    for time_ns in least_ns:
        granted.append(granted[-1] + floor(share * time_ns))
    return Grain(tuple(granted))


def cells(values: NDArray[np.int64], share: float) -> NDArray[np.int64]:
    """Return numbers of cells; values in one cell differ by less than a share of the lesser."""
    # a little less, so that rounding of logarithms does not count
    step = np.log1p(share * (1 - 1e-9))
    numbers: NDArray[np.int64] = np.floor(np.log(np.maximum(values, 1)) / step).astype(np.int64)
    return numbers


def coarsened(front: Front, share: float) -> Front:
    """Leave out points if one that takes less energy comes within a share of their time."""
    if not share or len(front.time_ns) < 2:
        return front
    return _last_of_each(front, cells(front.time_ns, share), front.error_ns)


def _unmatched(front: Front, other: Front) -> Front:
    """Leave out points to which the other front has one that is at least as good."""
    at = np.searchsorted(other.time_ns, front.time_ns, side="right") - 1
    kept = (at < 0) | (other.energy_nj[np.maximum(at, 0)] > front.energy_nj)
    if kept.all():
        return front
    return Front(front.time_ns[kept], front.energy_nj[kept], front.error_ns)


def _thinned(front: Front, allowed_ns: int) -> Front:
    cell_ns = allowed_ns - front.error_ns + 1
    if len(front.time_ns) <= MANY or cell_ns < 2:
        return front
    return _last_of_each(front, front.time_ns // cell_ns, allowed_ns)


def _last_of_each(front: Front, numbers: NDArray[np.int64], error_ns: int) -> Front:
    """Keep the last point, which takes least energy, of those with one number."""
    kept = np.append(numbers[1:] != numbers[:-1], True)
    return Front(front.time_ns[kept], front.energy_nj[kept], error_ns)
