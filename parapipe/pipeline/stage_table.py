"""All stages that units can form: every worthwhile time and energy, and how to get them.

A long network has many possible stages, and only few of them end up in a configuration. So each way
to run one is kept as two numbers, and the options it is made of are found again when asked for.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np

from parapipe.pipeline.time_energy import START, Locations, Reach, TimeEnergy, merged
from parapipe.pipeline.tolerance import UnitTolerance


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
Identical = dict[tuple[int, int, Locations], TimeEnergy]


@dataclass(frozen=True, slots=True)
class StageShape:
    """Units `begin` to `end` (exclusive) on one stage, given where it starts and what it takes.

    Parameters
    ----------
    locations_in, locations
        Locations of the tensors that are live before and behind it.
    processors
        Bit mask of the processors used.
    """

    begin: int
    end: int
    locations_in: Locations
    locations: Locations
    processors: int


class StageTable:
    """All stages that the options of units allow.

    Parameters
    ----------
    options
        `options(u, locations)`: all ways to run unit u, or several from u on, if the tensors that
        are live before it have these locations.
    energy
        False: energy counts as 0, so each stage has its least time alone.
    tolerance
        How far the fronts may be off; exact if not given.
    """

    def __init__(
        self, options: Options, *, energy: bool = True, tolerance: UnitTolerance | None = None
    ) -> None:
        self.energy = energy
        self._tolerance = tolerance
        self.options = options
        self._every_identical = cache(lambda unit, at: self._identical(options(unit, at)))
        self._steps = lru_cache(maxsize=64)(self._list_steps)
        self._ending: list[dict[Locations, dict[int, TimeEnergy]]] = []

    def beginning(
        self, begin: int, stop: int, locations: Locations, within: Collection[int] | None = None
    ) -> Iterator[tuple[StageShape, TimeEnergy]]:
        """Yield every stage from a unit on that ends before or at `stop`, and all it may take.

        Parameters
        ----------
        stop
            The first unit that is in none of them.
        locations
            Locations of the tensors that are live before the first.
        within
            Bit masks: all sets of processors that are asked for, their subsets included; all there
            are if not given.
        """
        steps = self._walk(begin, stop, locations, self._every_identical, within)
        for end, reached in enumerate(steps, start=begin + 1):
            for (mask, behind), front in reached.items():
                yield StageShape(begin, end, locations, behind, mask), front

    def places(self, units: int) -> list[list[Locations]]:
        """Return the locations that live tensors may have at each boundary."""
        met: list[dict[Locations, None]] = [{} for _ in range(units + 1)]  # in the order met
        met[0][()] = None
        for unit in range(units):
            for locations in met[unit]:
                for option in self.options(unit, locations):
                    met[unit + option.units][option.locations] = None
        return [list(locations) for locations in met]

    def ending(self, units: int) -> list[dict[Locations, dict[int, TimeEnergy]]]:
        """Return what every last stage may take, by first unit, locations and processors.

        All are made at once from the end, each out of that which starts a unit later: to make them
        one by one from their beginnings would take `units` times as long.
        """
        places = self.places(units)
        made: list[dict[Locations, dict[int, TimeEnergy]]] = [{(): {0: START}}]
        for unit in reversed(range(units)):
            here: dict[Locations, dict[int, TimeEnergy]] = {}
            for locations in places[unit]:
                parts: dict[int, list[TimeEnergy]] = {}
                identical = self._every_identical(unit, locations)
                for (count, processors, out), step in identical.items():
                    for mask, front in made[-count].get(out, {}).items():
                        parts.setdefault(mask | processors, []).append(front.then(step))
                here[locations] = {mask: merged(fronts) for mask, fronts in parts.items()}
                if self._tolerance:
                    alone: dict[Reach, TimeEnergy] = {
                        (m, ()): f for m, f in here[locations].items()
                    }
                    thinned = self._tolerance.thinned(alone, unit, units)
                    here[locations] = {mask: front for (mask, _), front in thinned.items()}
            made.append(here)
        self._ending = made[::-1]
        return self._ending

    def trace(self, shape: StageShape, time_ns: int, energy_nj: int) -> tuple[Option, ...]:
        """Return options, in order, that a stage is made of for this time and energy.

        A last stage whose fronts were thinned is found again in what `ending` has
        returned, any other as `beginning` has made it.
        """
        if self._tolerance and shape.end == len(self._ending) - 1:
            return self._trace_ending(shape, time_ns, energy_nj)
        steps = self._steps(shape.begin, shape.locations_in, shape.processors)
        while len(steps.made) < shape.end - shape.begin:
            steps.made.append(next(steps.more))
        fronts = [{(0, shape.locations_in): START}, *steps.made]
        found: list[Option] = []
        reach: Reach = (shape.processors, shape.locations)
        unit = shape.end
        while unit > shape.begin:
            option, reach = next(
                (option, (mask, at))
                for begin in range(unit - 1, shape.begin - 1, -1)
                for (mask, at), front in fronts[begin - shape.begin].items()
                for option in self.options(begin, at)
                if begin + option.units == unit
                and (mask | option.processors, option.locations) == reach
                and front.holds(
                    time_ns - option.time_ns, energy_nj - option.energy_nj * self.energy
                )
            )
            time_ns -= option.time_ns
            energy_nj -= option.energy_nj * self.energy
            unit -= option.units
            found.append(option)
        return tuple(reversed(found))

    def _trace_ending(self, shape: StageShape, time_ns: int, energy_nj: int) -> tuple[Option, ...]:
        found: list[Option] = []
        unit, locations, processors = shape.begin, shape.locations_in, shape.processors
        while unit < shape.end:
            option, processors = next(
                (option, mask)
                for option in self.options(unit, locations)
                for mask, front in self._ending[unit + option.units]
                .get(option.locations, {})
                .items()
                if mask | option.processors == processors
                and front.holds(
                    time_ns - option.time_ns, energy_nj - option.energy_nj * self.energy
                )
            )
            time_ns -= option.time_ns
            energy_nj -= option.energy_nj * self.energy
            unit, locations = unit + option.units, option.locations
            found.append(option)
        return tuple(found)

    def _list_steps(self, begin: int, locations: Locations, processors: int) -> _Steps:
        def inside(unit: int, at: Locations) -> Identical:
            options = self.options(unit, at)
            return self._identical([o for o in options if not o.processors & ~processors])

        return _Steps([], self._walk(begin, sys.maxsize, locations, inside))

    def _walk(
        self,
        begin: int,
        stop: int,
        locations: Locations,
        identical: Callable[[int, Locations], Identical],
        within: Collection[int] | None = None,
    ) -> Iterator[dict[Reach, TimeEnergy]]:
        """Yield, unit by unit, the front of each reach; only sets of processors `within` count."""
        fronts: dict[Reach, TimeEnergy] = {(0, locations): START}
        ahead: dict[int, dict[Reach, list[TimeEnergy]]] = {}  # by the unit before which they end
        for unit in range(begin, stop):
            steps = {at: identical(unit, at) for _, at in fronts}
            for (mask, at), front in fronts.items():
                for (count, processors, out), step in steps[at].items():
                    used = mask | processors
                    if within is None or used in within:
                        end = ahead.setdefault(unit + count, {})
                        end.setdefault((used, out), []).append(front.then(step))
            behind = ahead.pop(unit + 1, {})
            fronts = {reach: merged(parts) for reach, parts in behind.items()}
            if self._tolerance:
                fronts = self._tolerance.thinned(fronts, begin, unit + 1)
            yield fronts

    def _identical(self, options: Sequence[Option]) -> Identical:
        """Return what options of as many units on the same processors take, by locations behind."""
        groups: dict[tuple[int, int, Locations], list[Option]] = {}
        for option in options:
            key = (option.units, option.processors, option.locations)
            groups.setdefault(key, []).append(option)
        return {
            key: TimeEnergy(
                np.array([option.time_ns for option in group], np.int64),
                np.array([option.energy_nj * self.energy for option in group], np.int64),
            )
            for key, group in groups.items()
        }


@dataclass(frozen=True, slots=True)
class _Steps:
    """Fronts behind each unit of a stage, made as far as they were asked for."""

    made: list[dict[Reach, TimeEnergy]]
    more: Iterator[dict[Reach, TimeEnergy]]
