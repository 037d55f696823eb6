"""All stages that units can form: every worthwhile time and energy, and how to get them.

A long network has many possible stages, and only few of them end up in a configuration. So each way
to run one is kept as two numbers, and the options it is made of are found again when asked for.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np

from parapipe.problems.time_energy import (
    FRONTS,
    START,
    TIMES,
    Locations,
    Reach,
    TimeEnergy,
    UnitTolerance,
)
from parapipe.processes.deadline import Deadline
from parapipe.search.stages.options import Identical, Option, Options
from parapipe.search.stages.stage_times import NEVER, StageFilter, StageTimes


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


Stages = Iterator[tuple[StageShape, TimeEnergy]]


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
    deadline
        When to raise an OverError in place of making more stages with energy.
    """

    def __init__(
        self,
        options: Options,
        *,
        energy: bool = True,
        tolerance: UnitTolerance | None = None,
        deadline: Deadline | None = None,
    ) -> None:
        self.energy = energy
        self._deadline = deadline or Deadline()
        self._tolerance = tolerance
        self._fronts = FRONTS if energy else TIMES
        self.options = options
        self._every_identical = cache(lambda unit, at: self._group_identical(options(unit, at)))
        self._steps = lru_cache(maxsize=64)(self._list_steps)
        self.cached_trace = lru_cache(maxsize=1 << 14)(self.trace)
        self.places = cache(self._list_places)
        """Locations that live tensors may have at each boundary, by number of units."""
        self.times = cache(lambda units: StageTimes(self.places(units), self._every_identical))
        self.endings = cache(self.ending)
        self._ending: list[dict[Locations, dict[int, TimeEnergy]]] = []

    def beginning(
        self, begin: int, stop: int, places: Sequence[Locations], wanted: StageFilter
    ) -> Stages:
        """Yield the stages from a unit on that end before or at `stop`, and all they may take.

        Parameters
        ----------
        stop
            The first unit that is in none of them.
        places
            Each holds locations of the tensors that are live before the first.
        wanted
            Those that are yielded.
        """
        if not self.energy:
            yield from self._least_times(begin, stop, places, wanted, len(wanted.sets) - 1)
            return
        for locations in places:
            steps = self._walk(begin, stop, locations, self._every_identical, wanted.parts)
            for end, reached in enumerate(steps, start=begin + 1):
                self._deadline.check()
                sets = wanted.sets[end]
                for (mask, behind), front in reached.items():
                    if mask in sets:
                        yield StageShape(begin, end, locations, behind, mask), front

    def _list_between(self, begin: int, end: int, units: int) -> Stages:
        """Yield all stages from one boundary to another."""
        places = self.places(units)[begin]
        if not self.energy:
            sets = [()] * end + [range(sys.maxsize)]
            yield from self._least_times(begin, end, places, StageFilter(sets, ()), units)
            return
        for locations in places:
            self._deadline.check()
            *_, reached = self._walk(begin, end, locations, self._every_identical)
            for (mask, out), front in reached.items():
                yield StageShape(begin, end, locations, out, mask), front

    def _least_times(
        self, begin: int, stop: int, places: Sequence[Locations], wanted: StageFilter, units: int
    ) -> Stages:
        every, times = self.places(units), self.times(units)
        numbers = [every[begin].index(locations) for locations in places]
        steps = times.walk(begin, stop, numbers, wanted.parts or None)
        for end, reached in enumerate(steps, start=begin + 1):
            if sets := [mask for mask in times.sets if mask in wanted.sets[end]]:
                here = reached[:, :, sets]
                where = np.argwhere(here < NEVER)
                times_ns = here[tuple(where.T)].tolist()
                for (i, out, at), time_ns in zip(where.tolist(), times_ns, strict=True):
                    shape = StageShape(begin, end, places[i], every[end][out], sets[at])
                    yield shape, TimeEnergy(np.array([time_ns]), START.energy_nj)

    def at_cuts(self, cuts: Sequence[int]) -> StageTable:
        """Return a table in which all units between two cuts are one.

        Parameters
        ----------
        cuts
            Boundaries, ascending; both ends of the network are among them.
        """

        @cache
        def options_from(number: int) -> dict[Locations, list[Option]]:
            begin, end = cuts[number : number + 2]
            options: dict[Locations, list[Option]] = {}
            for shape, front in self._list_between(begin, end, cuts[-1]):
                some = options.setdefault(shape.locations_in, [])
                for time_ns, energy_nj in front.pairs():
                    choice = _JoinedUnits(self, shape, time_ns, energy_nj)
                    mask, behind = shape.processors, shape.locations
                    some.append(Option(mask, behind, time_ns, energy_nj, choice))
            return options

        tolerance = self._tolerance and self._tolerance.at_cuts(cuts)
        return StageTable(
            lambda number, locations: options_from(number).get(locations, ()),
            energy=self.energy,
            tolerance=tolerance,
            deadline=self._deadline,
        )

    def _list_places(self, units: int) -> list[list[Locations]]:
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
        if not self.energy:
            return [
                {
                    at: {
                        mask: TimeEnergy(np.array([time_ns]), START.energy_nj)
                        for mask, time_ns in enumerate(row)
                        if time_ns < NEVER
                    }
                    for at, row in zip(some, times.tolist(), strict=True)
                }
                for some, times in zip(places, self.times(units).ending(), strict=True)
            ]
        start, _, then, merge, as_front, _ = self._fronts
        behind: list[dict[Locations, dict[int, Any]]] = [{(): {0: start}}]
        for unit in reversed(range(units)):
            here: dict[Locations, dict[int, Any]] = {}
            for locations in places[unit]:
                self._deadline.check()
                parts: dict[int, list[Any]] = {}
                identical = self._every_identical(unit, locations)
                for (count, processors, out), step in identical.items():
                    for mask, front in behind[-count].get(out, {}).items():
                        parts.setdefault(mask | processors, []).append(then(front, step))
                here[locations] = {mask: merge(fronts) for mask, fronts in parts.items()}
                if self._tolerance:
                    alone: Mapping[Reach, Any] = {
                        (mask, ()): front for mask, front in here[locations].items()
                    }
                    thinned = self._tolerance.thin(alone, unit, units)
                    here[locations] = {mask: front for (mask, _), front in thinned.items()}
            behind.append(here)
        self._ending = [
            {
                at: {mask: as_front(front) for mask, front in some.items()}
                for at, some in each.items()
            }
            for each in reversed(behind)
        ]
        return self._ending

    def last_stages(
        self, begin: int, units: int, places: Sequence[Locations], sets: Collection[int]
    ) -> Stages:
        """Yield the last stages of so many units that begin at one of them, and all they may take.

        Parameters
        ----------
        places
            As of `beginning`.
        sets
            Bit masks of the processors of those that are yielded.
        """
        for locations in places:
            for mask, front in self.endings(units)[begin].get(locations, {}).items():
                if mask in sets:
                    yield StageShape(begin, units, locations, (), mask), front

    def trace(self, shape: StageShape, time_ns: int, energy_nj: int) -> tuple[Option, ...]:
        """Return options, in order, that a stage is made of for this time and energy.

        A last stage whose fronts were thinned is found again in what `ending` has
        returned, any other as `beginning` has made it.
        """
        from_ending = self._tolerance and shape.end == len(self._ending) - 1
        trace = self._trace_ending if from_ending else self._trace_first
        options: list[Option] = []
        for option in trace(shape, time_ns, energy_nj):
            part = option.choice
            options += part.options() if isinstance(part, _JoinedUnits) else (option,)
        return tuple(options)

    def _trace_first(self, shape: StageShape, time_ns: int, energy_nj: int) -> tuple[Option, ...]:
        steps = self._steps(shape.begin, shape.locations_in, shape.processors)
        while len(steps.fronts) < shape.end - shape.begin:
            steps.fronts.append(next(steps.more))
        fronts = [{(0, shape.locations_in): self._fronts.start}, *steps.fronts]
        options: list[Option] = []
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
                and self._fronts.holds(
                    front, time_ns - option.time_ns, energy_nj - option.energy_nj * self.energy
                )
            )
            time_ns -= option.time_ns
            energy_nj -= option.energy_nj * self.energy
            unit -= option.units
            options.append(option)
        return tuple(reversed(options))

    def _trace_ending(self, shape: StageShape, time_ns: int, energy_nj: int) -> tuple[Option, ...]:
        options: list[Option] = []
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
            options.append(option)
        return tuple(options)

    def _list_steps(self, begin: int, locations: Locations, processors: int) -> _Steps:
        def inside(unit: int, at: Locations) -> Identical:
            every = self._every_identical(unit, at)
            return {key: front for key, front in every.items() if not key[1] & ~processors}

        return _Steps([], self._walk(begin, sys.maxsize, locations, inside))

    def _walk(
        self,
        begin: int,
        stop: int,
        locations: Locations,
        identical: Callable[[int, Locations], Identical],
        parts: Sequence[Collection[int]] | None = None,
    ) -> Iterator[dict[Reach, Any]]:
        """Yield, unit by unit, the front of each reach; of sets of processors, `parts` alone."""
        start, _, then, merge, *_ = self._fronts
        fronts: dict[Reach, Any] = {(0, locations): start}
        ahead: dict[int, dict[Reach, list[Any]]] = {}  # by the unit before which they end
        for unit in range(begin, stop):
            steps = {
                at: [
                    (
                        unit + count,
                        processors,
                        out,
                        step,
                        None if parts is None else parts[unit + count],
                    )
                    for (count, processors, out), step in identical(unit, at).items()
                    if parts is None or processors in parts[unit + count]  # these hold subsets, too
                ]
                for at in dict.fromkeys(at for _, at in fronts)
            }
            for (mask, at), front in fronts.items():
                for end, processors, out, step, allowed in steps[at]:
                    used = mask | processors
                    if allowed is None or used in allowed:
                        reached = ahead.setdefault(end, {})
                        reached.setdefault((used, out), []).append(then(front, step))
            behind = ahead.pop(unit + 1, {})
            fronts = {reach: merge(some) for reach, some in behind.items()}
            if self._tolerance:
                fronts = self._tolerance.thin(fronts, begin, unit + 1)
            yield fronts

    def _group_identical(self, options: Sequence[Option]) -> Identical:
        """Return what options of as many units on the same processors take, by locations behind."""
        groups: dict[tuple[int, int, Locations], list[Option]] = {}
        for option in options:
            key = (option.units, option.processors, option.locations)
            groups.setdefault(key, []).append(option)
        return {key: self._fronts.of(group) for key, group in groups.items()}


@dataclass(frozen=True, slots=True)
class _JoinedUnits:
    """Some units as one, and how their options are found again."""

    table: StageTable
    shape: StageShape
    time_ns: int
    energy_nj: int

    def options(self) -> tuple[Option, ...]:
        """Return what it is made of."""
        return self.table.cached_trace(self.shape, self.time_ns, self.energy_nj)


@dataclass(frozen=True, slots=True)
class _Steps:
    """Fronts behind each unit of a stage, made as far as they were asked for."""

    fronts: list[dict[Reach, Any]]
    more: Iterator[dict[Reach, Any]]
