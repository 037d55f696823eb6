"""Runs of consecutive units on one stage: every worthwhile time and energy, and how to get them.

A long network has many runs, and only few of them end up in a configuration. So a run is kept as
two numbers, and the options it is made of are found again when they are asked for.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from parapipe.pipeline.fronts import START, Front, Homes, Reach, merged
from parapipe.pipeline.grain import Grain


@dataclass(frozen=True, slots=True)
class Option:
    """One way to run a unit, or a span of units at one go.

    Parameters
    ----------
    processors
        Bit mask of the processors that run at least one operator.
    homes
        Home of each tensor that is live behind it.
    time_ns, energy_nj
        Makespan and dynamic energy. Integers, so that sums do not depend on their order.
    choice
        Whatever the caller needs to find the schedule again.
    units
        How many units it runs.
    """

    processors: int
    homes: Homes
    time_ns: int
    energy_nj: int
    choice: int
    units: int = 1


Options = Callable[[int, Homes], Sequence[Option]]


@dataclass(frozen=True, slots=True)
class Run:
    """Units `begin` to `end` (exclusive) on one stage, given where it starts and what it takes.

    Parameters
    ----------
    homes_in, homes
        Homes of the tensors that are live before and behind it.
    processors
        Bit mask of the processors used.
    """

    begin: int
    end: int
    homes_in: Homes
    homes: Homes
    processors: int


class Runs:
    """All runs that the options of units allow.

    Parameters
    ----------
    options
        `options(u, homes)`: all ways to run unit u, or a span from u on, if the tensors that are
        live before it have these homes.
    energy
        False: energy counts as 0, so each run has its least time alone.
    grain
        How exact the fronts have to be; entirely if not given.
    """

    def __init__(
        self, options: Options, *, energy: bool = True, grain: Grain | None = None
    ) -> None:
        self.energy = energy
        self._grain = grain
        self._options = options
        self._steps = lru_cache(maxsize=64)(self._list_steps)
        self._ending: list[dict[Homes, dict[int, Front]]] = []

    def beginning(
        self, begin: int, stop: int, homes: Homes, within: Collection[int] | None = None
    ) -> Iterator[tuple[Run, Front]]:
        """Yield every run that starts at a unit and ends before or at `stop`, and all it may take.

        Parameters
        ----------
        stop
            The first unit that is in none of them.
        homes
            Homes of the tensors that are live before the first.
        within
            Bit masks: all sets of processors that are asked for, their subsets included; all there
            are if not given.
        """
        steps = self._walk(begin, stop, homes, self._options, within)
        for end, reached in enumerate(steps, start=begin + 1):
            for (mask, behind), front in reached.items():
                yield Run(begin, end, homes, behind, mask), front

    def ending(self, units: int) -> list[dict[Homes, dict[int, Front]]]:
        """Return what every run to the last unit may take, by first unit, homes and processors.

        All are made at once from the end, each out of that which starts a unit later: to make them
        one by one from their beginnings would take `units` times as long.
        """
        homes_before: list[dict[Homes, None]] = [{} for _ in range(units + 1)]
        homes_before[0][()] = None
        for unit in range(units):
            for homes in homes_before[unit]:
                for option in self._options(unit, homes):
                    homes_before[unit + option.units][option.homes] = None  # in the order met
        made: list[dict[Homes, dict[int, Front]]] = [{(): {0: START}}]
        for unit in reversed(range(units)):
            here: dict[Homes, dict[int, Front]] = {}
            for homes in homes_before[unit]:
                parts: dict[int, list[Front]] = {}
                alike = self._alike(self._options(unit, homes))
                for (count, processors, out), step in alike.items():
                    for mask, front in made[-count].get(out, {}).items():
                        parts.setdefault(mask | processors, []).append(front.then(step))
                here[homes] = {mask: merged(fronts) for mask, fronts in parts.items()}
                if self._grain:
                    alone: dict[Reach, Front] = {(m, ()): f for m, f in here[homes].items()}
                    lighter = self._grain.lighter(alone, unit, units)
                    here[homes] = {mask: front for (mask, _), front in lighter.items()}
            made.append(here)
        self._ending = made[::-1]
        return self._ending

    def trace(self, run: Run, time_ns: int, energy_nj: int) -> tuple[Option, ...]:
        """Return options, in order, that the run is made of for this time and energy.

        A run to the last unit whose fronts were made lighter is found again in what `ending` has
        returned, any other as `beginning` has made it.
        """
        if self._grain and run.end == len(self._ending) - 1:
            return self._trace_ending(run, time_ns, energy_nj)
        steps = self._steps(run.begin, run.homes_in, run.processors)
        while len(steps.made) < run.end - run.begin:
            steps.made.append(next(steps.more))
        fronts = [{(0, run.homes_in): START}, *steps.made]
        found: list[Option] = []
        reach: Reach = (run.processors, run.homes)
        unit = run.end
        while unit > run.begin:
            option, reach = next(
                (option, (mask, at))
                for begin in range(unit - 1, run.begin - 1, -1)
                for (mask, at), front in fronts[begin - run.begin].items()
                for option in self._options(begin, at)
                if begin + option.units == unit
                and (mask | option.processors, option.homes) == reach
                and front.holds(
                    time_ns - option.time_ns, energy_nj - option.energy_nj * self.energy
                )
            )
            time_ns -= option.time_ns
            energy_nj -= option.energy_nj * self.energy
            unit -= option.units
            found.append(option)
        return tuple(reversed(found))

    def _trace_ending(self, run: Run, time_ns: int, energy_nj: int) -> tuple[Option, ...]:
        found: list[Option] = []
        unit, homes, processors = run.begin, run.homes_in, run.processors
        while unit < run.end:
            option, processors = next(
                (option, mask)
                for option in self._options(unit, homes)
                for mask, front in self._ending[unit + option.units].get(option.homes, {}).items()
                if mask | option.processors == processors
                and front.holds(
                    time_ns - option.time_ns, energy_nj - option.energy_nj * self.energy
                )
            )
            time_ns -= option.time_ns
            energy_nj -= option.energy_nj * self.energy
            unit, homes = unit + option.units, option.homes
            found.append(option)
        return tuple(found)

    def _list_steps(self, begin: int, homes: Homes, processors: int) -> _Steps:
        def inside(unit: int, at: Homes) -> list[Option]:
            return [o for o in self._options(unit, at) if not o.processors & ~processors]

        return _Steps([], self._walk(begin, sys.maxsize, homes, inside))

    def _walk(
        self,
        begin: int,
        stop: int,
        homes: Homes,
        options: Options,
        within: Collection[int] | None = None,
    ) -> Iterator[dict[Reach, Front]]:
        """Yield, unit by unit, the front of each reach; only sets of processors `within` count."""
        fronts: dict[Reach, Front] = {(0, homes): START}
        ahead: dict[int, dict[Reach, list[Front]]] = {}  # by the unit before which they end
        for unit in range(begin, stop):
            steps = {at: self._alike(options(unit, at)) for _, at in fronts}
            for (mask, at), front in fronts.items():
                for (count, processors, out), step in steps[at].items():
                    used = mask | processors
                    if within is None or used in within:
                        end = ahead.setdefault(unit + count, {})
                        end.setdefault((used, out), []).append(front.then(step))
            behind = ahead.pop(unit + 1, {})
            fronts = {reach: merged(parts) for reach, parts in behind.items()}
            if self._grain:
                fronts = self._grain.lighter(fronts, begin, unit + 1)
            yield fronts

    def _alike(self, options: Sequence[Option]) -> dict[tuple[int, int, Homes], Front]:
        """Return what options of as many units on the same processors take, by homes behind."""
        groups: dict[tuple[int, int, Homes], list[Option]] = {}
        for option in options:
            key = (option.units, option.processors, option.homes)
            groups.setdefault(key, []).append(option)
        return {
            key: Front(
                np.array([option.time_ns for option in group], np.int64),
                np.array([option.energy_nj * self.energy for option in group], np.int64),
            )
            for key, group in groups.items()
        }


@dataclass(frozen=True, slots=True)
class _Steps:
    """Fronts behind each unit of a run, made as far as they were asked for."""

    made: list[dict[Reach, Front]]
    more: Iterator[dict[Reach, Front]]
