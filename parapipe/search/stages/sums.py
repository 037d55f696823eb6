"""How fronts of time and energy, or least times alone, are put together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import add
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from parapipe.search.problems.time_energy import START, TimeEnergy, merged

if TYPE_CHECKING:
    from parapipe.search.stages.stage_table import Option


class Sums(NamedTuple):
    """How fronts of time and energy are put together."""

    start: Any
    of: Callable[[Sequence[Option]], Any]
    then: Callable[[Any, Any], Any]
    merged: Callable[[Sequence[Any]], Any]
    whole: Callable[[Any], TimeEnergy]
    holds: Callable[[Any, int, int], bool]


def _time_energy(options: Sequence[Option]) -> TimeEnergy:
    return TimeEnergy(
        np.array([option.time_ns for option in options], np.int64),
        np.array([option.energy_nj for option in options], np.int64),
    )


def _least_time(options: Sequence[Option]) -> int:
    return min(option.time_ns for option in options)


FRONTS = Sums(START, _time_energy, TimeEnergy.then, merged, lambda front: front, TimeEnergy.holds)
# Where energy does not count, a front is its least time: a whole number, which is much faster.
TIMES = Sums(
    0,
    _least_time,
    add,
    min,
    lambda ns: TimeEnergy(np.array([ns]), START.energy_nj),
    lambda ns, time_ns, energy_nj: ns == time_ns and not energy_nj,
)
