"""Least times of stages, for all sets of processors at once.

Of a stage without energy counts its least time alone. So the stages from a boundary are an array:
where they begin, where tensors are behind them, and the processors that they use, as a bit mask.
Its last axis has one bit per processor when it is reshaped; then all masks that a step leads to are
a slice, and what they come from is the minimum over the axes of the step's processors.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from parapipe.problems.time_energy import Locations

Times = NDArray[np.int64]
NEVER = 1 << 61  # ns; the sum of two of them is still a number
Identical = Callable[[int, Locations], Mapping[tuple[int, int, Locations], int]]


class StageFilter(NamedTuple):
    """Which stages from a boundary are asked for.

    Parameters
    ----------
    sets
        `sets[u]`: bit masks of the processors of those that end before unit u.
    parts
        `parts[u]`: what units before u may use so that they are a part of one that is asked for.
    """

    sets: Sequence[Collection[int]]
    parts: Sequence[Collection[int]]


@dataclass(frozen=True, slots=True)
class Step:
    """All ways to run some units on exactly one set of processors.

    Parameters
    ----------
    units
        How many they are.
    processors
        Bit mask.
    out
        Numbers of the places behind, each once.
    time_ns
        `time_ns[place before, i]`: least time to get from a place to `out[i]`; `NEVER` if none.
    """

    units: int
    processors: int
    out: NDArray[np.int64]
    time_ns: Times


class StageTimes:
    """Least times of stages.

    Parameters
    ----------
    places
        Locations that live tensors may have at each boundary.
    identical
        `identical(u, locations)`: least times of unit u's options by number of units, processors,
        and locations behind.
    """

    def __init__(self, places: Sequence[Sequence[Locations]], identical: Identical) -> None:
        self._places = places
        self._identical = identical
        self._number = [{at: i for i, at in enumerate(some)} for some in places]
        self._steps = cache(self._list_steps)
        self._step = cache(_make_step)  # equal units take equal steps
        units = range(len(places) - 1)
        used = (step.processors for unit in units for step in self._steps(unit))
        self.processors = max((mask.bit_length() for mask in used), default=0)

    @property
    def sets(self) -> range:
        """All sets of processors."""
        return range(1 << self.processors)

    def walk(
        self,
        begin: int,
        stop: int,
        places: Sequence[int],
        parts: Sequence[Collection[int]] | None = None,
    ) -> Iterator[Times]:
        """Yield, unit by unit, least times: [index in `places`, place behind, processors].

        Parameters
        ----------
        places
            Numbers of places at `begin`.
        stop
            The first unit that is not walked through.
        parts
            Of sets of processors, those that count, by unit behind.
        """
        count = len(places)
        here = self._fill_never(count, begin)
        here[np.arange(count), places, 0] = 0
        ahead: dict[int, Times] = {}
        for unit in range(begin, stop):
            for step in self._steps(unit):
                end = unit + step.units
                if parts is None or step.processors in parts[end]:  # these hold subsets, too
                    if end not in ahead:
                        ahead[end] = self._fill_never(count, end)
                    self._add_step(here, step, ahead[end])
            here = ahead.pop(unit + 1, self._fill_never(count, unit + 1))
            if parts is not None:
                here[:, :, [mask for mask in self.sets if mask not in parts[unit + 1]]] = NEVER
            yield here

    def ending(self) -> list[Times]:
        """Return the least times from each boundary to the end: [place, processors]."""
        last = len(self._places) - 1
        last_ns = self._fill_never(1, last)
        last_ns[0, :, 0] = 0
        least = [last_ns[0]]
        for unit in reversed(range(last)):
            here = self._fill_never(1, unit)[0]
            for step in self._steps(unit):
                behind = self._least_of_subsets(least[-step.units][step.out], step.processors)
                added = (step.time_ns[:, :, None] + behind[None]).min(axis=1)
                view = self._view_with(here, step.processors)
                np.minimum(view, added.reshape(view.shape), out=view)
            least.append(here)
        return least[::-1]

    def _add_step(self, here: Times, step: Step, there: Times) -> None:
        """Add a step to what leads to it."""
        before = self._least_of_subsets(here, step.processors)
        view = self._view_with(there, step.processors)
        for i, out in enumerate(step.out.tolist()):
            added = np.minimum.reduce(before + step.time_ns[:, i, None], axis=1)
            at = view[:, out]
            np.minimum(at, added.reshape(at.shape), out=at)

    def _fill_never(self, count: int, unit: int) -> Times:
        return np.full((count, len(self._places[unit]), 1 << self.processors), NEVER, np.int64)

    def _axes(self, times: Times) -> Times:
        return times.reshape(*times.shape[:-1], *(2,) * self.processors)

    def _least_of_subsets(self, times: Times, processors: int) -> Times:
        """Return the minimum over all subsets of some processors; the others' masks are left."""
        axes, _ = _axes_of(processors, self.processors)
        least: Times = np.minimum.reduce(self._axes(times), axis=axes)
        return least.reshape(*times.shape[:-1], -1)

    def _view_with(self, times: Times, processors: int) -> Times:
        """Return those of all masks that hold some processors."""
        _, index = _axes_of(processors, self.processors)
        view: Times = self._axes(times)[index]
        return view

    def _list_steps(self, unit: int) -> list[Step]:
        steps: dict[tuple[int, int], dict[tuple[int, int], int]] = {}
        for i, at in enumerate(self._places[unit]):
            for (units, processors, out), time_ns in self._identical(unit, at).items():
                entry = steps.setdefault((units, processors), {})
                entry[i, self._number[unit + units][out]] = time_ns
        count = len(self._places[unit])
        return [self._step(*step, count, tuple(entry.items())) for step, entry in steps.items()]


@cache
def _axes_of(processors: int, count: int) -> tuple[tuple[int, ...], tuple[Any, ...]]:
    """Return the axes of some of so many processors, and the index of all masks that hold them."""
    axes = tuple(-1 - p for p in range(count) if processors >> p & 1)
    index = (1 if processors >> p & 1 else slice(None) for p in reversed(range(count)))
    return axes, (..., *index)


def _make_step(
    units: int, processors: int, count: int, entries: tuple[tuple[tuple[int, int], int], ...]
) -> Step:
    """Return a step from so many places, given its times by the places before and behind it."""
    places = np.unique(np.array([out for (_, out), _ in entries], np.int64))
    times = np.full((count, len(places)), NEVER, np.int64)
    where = np.array([each for each, _ in entries], np.int64)
    times[where[:, 0], np.searchsorted(places, where[:, 1])] = [time_ns for _, time_ns in entries]
    return Step(units, processors, places, times)
