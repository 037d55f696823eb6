"""Fronts of time and energy as arrays, and how far sums of times may be off."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import floor
from operator import add
from typing import Any, NamedTuple

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
            time_ns, energy_nj = self.time_ns + other.time_ns, self.energy_nj + other.energy_nj
        else:
            time_ns = (self.time_ns + other.time_ns[:, None]).ravel()
            energy_nj = (self.energy_nj + other.energy_nj[:, None]).ravel()
        return TimeEnergy(time_ns, energy_nj, self.error_ns)


START = TimeEnergy(np.zeros(1, np.int64), np.zeros(1, np.int64))


def merge(parts: Sequence[TimeEnergy]) -> TimeEnergy:
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


@dataclass(frozen=True, slots=True)
class Tolerance:
    """By what share times may be off, each kind of thinning for itself; see `search`.

    Parameters
    ----------
    stage
        The time of a stage, once it is chosen from all that it may take.
    label
        Latency and period, each time another stage is added.
    """

    stage: float
    label: float


EXACT = Tolerance(0.0, 0.0)
MANY = 100  # points of a front that is left as it is


@dataclass(frozen=True, slots=True)
class UnitTolerance:
    """What the times of a stage may be off by while it is built unit by unit.

    Each unit allows a share of the least time that it can take. A stage takes at least as long as
    its units do together, so what they allow is at most this share of its time.

    Parameters
    ----------
    allowed_ns
        `allowed_ns[u]`: what the units before u allow together.
    """

    allowed_ns: tuple[int, ...]

    def at_cuts(self, cuts: Iterable[int]) -> UnitTolerance:
        """Return the tolerance where all units between two cuts are one."""
        return UnitTolerance(tuple(self.allowed_ns[cut] for cut in cuts))

    def thin(
        self, fronts: Mapping[Reach, TimeEnergy], begin: int, end: int
    ) -> dict[Reach, TimeEnergy]:
        """Thin the fronts of a stage from unit `begin` to `end` (exclusive).

        Points that fewer processors match are left out; of large fronts also those to which
        another one comes near enough in time and takes no more energy. What becomes of a front
        depends on itself and those of fewer processors only.
        """
        most_ns = self.allowed_ns[end] - self.allowed_ns[begin]
        thinned: dict[Reach, TimeEnergy] = {}
        for reach in sorted(fronts, key=lambda reach: (reach[0].bit_count(), reach)):
            mask, locations = reach
            front = fronts[reach]
            for (other, at), fewer in thinned.items():
                if at == locations and not other & ~mask and len(front.time_ns):
                    front = _drop_matched(front, fewer)
            if len(front.time_ns):
                thinned[reach] = _thin(front, most_ns)
        return thinned


def unit_tolerance(least_ns: Iterable[int], share: float) -> UnitTolerance:
    """Return the tolerance at which no stage is off by more than a share of its time.

    Parameters
    ----------
    least_ns
        Of each unit, the least time it can take.
    """
    allowed = [0]
    for time_ns in least_ns:
        allowed.append(allowed[-1] + floor(share * time_ns))
    return UnitTolerance(tuple(allowed))


def cells(values: NDArray[np.int64], share: float) -> NDArray[np.int64]:
    """Return numbers of cells; values in one cell differ by less than a share of the lesser."""
    # a little less, so that rounding of logarithms does not count
    step = np.log1p(share * (1 - 1e-9))
    numbers: NDArray[np.int64] = np.floor(np.log(np.maximum(values, 1)) / step).astype(np.int64)
    return numbers


def coarsen(front: TimeEnergy, share: float) -> TimeEnergy:
    """Leave out points if one that takes less energy comes within a share of their time."""
    if not share or len(front.time_ns) < 2:
        return front
    return _last_of_each(front, cells(front.time_ns, share), front.error_ns)


def _drop_matched(front: TimeEnergy, other: TimeEnergy) -> TimeEnergy:
    """Leave out points to which the other front has one that is at least as good."""
    at = np.searchsorted(other.time_ns, front.time_ns, side="right") - 1
    better = (at < 0) | (other.energy_nj[np.maximum(at, 0)] > front.energy_nj)
    if better.all():
        return front
    return TimeEnergy(front.time_ns[better], front.energy_nj[better], front.error_ns)


def _thin(front: TimeEnergy, allowed_ns: int) -> TimeEnergy:
    cell_ns = allowed_ns - front.error_ns + 1
    if len(front.time_ns) <= MANY or cell_ns < 2:
        return front
    return _last_of_each(front, front.time_ns // cell_ns, allowed_ns)


def _last_of_each(front: TimeEnergy, numbers: NDArray[np.int64], error_ns: int) -> TimeEnergy:
    """Keep the last point, which takes least energy, of those with one number."""
    last = np.append(numbers[1:] != numbers[:-1], True)
    return TimeEnergy(front.time_ns[last], front.energy_nj[last], error_ns)


class FrontSums(NamedTuple):
    """How fronts of time and energy are put together."""

    start: Any
    of: Callable[[Sequence[Any]], Any]
    then: Callable[[Any, Any], Any]
    merge: Callable[[Sequence[Any]], Any]
    as_front: Callable[[Any], TimeEnergy]
    holds: Callable[[Any, int, int], bool]


def _make_front(options: Sequence[Any]) -> TimeEnergy:
    return TimeEnergy(
        np.array([option.time_ns for option in options], np.int64),
        np.array([option.energy_nj for option in options], np.int64),
    )


FRONTS = FrontSums(START, _make_front, TimeEnergy.then, merge, lambda each: each, TimeEnergy.holds)
# Where energy does not count, a front is its least time: a whole number, which is much faster.
TIMES = FrontSums(
    0,
    lambda options: min(option.time_ns for option in options),
    add,
    min,
    lambda ns: TimeEnergy(np.array([ns]), START.energy_nj),
    lambda ns, time_ns, energy_nj: ns == time_ns and not energy_nj,
)
