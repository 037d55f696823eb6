"""Options of units: the ways to run one, or several as one problem."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from parapipe.problems.time_energy import Locations


@dataclass(frozen=True, slots=True)
class Option:
    """One way to run a unit, or several units solved as one problem.

    Parameters
    ----------
    processors
        Bit mask of the processors that run at least one operator.
    locations
        Locations of the tensors that are live behind it.
    time_ns, energy_nj
        Makespan and dynamic energy. Integers, so that sums do not depend on their order.
    choice
        What the caller needs to find the schedule again.
    units
        How many units it runs.
    """

    processors: int
    locations: Locations
    time_ns: int
    energy_nj: int
    choice: object
    units: int = 1


Options = Callable[[int, Locations], Sequence[Option]]
# What options take, by number of units, processors and locations behind.
Identical = dict[tuple[int, int, Locations], Any]
