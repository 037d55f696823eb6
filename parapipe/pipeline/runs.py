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
from numpy.typing import NDArray

# Processors that hold a tensor: the one that made it, then those with a copy, ascending.
Home = tuple[int, ...]
Homes = tuple[Home, ...]
Reach = tuple[int, Homes]  # processors used so far, homes of the tensors behind


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


@dataclass(frozen=True, slots=True)
class Front:
    """Times, ascending, and energies, descending: no pair is at least as good as another."""

    time_ns: NDArray[np.int64]
    energy_nj: NDArray[np.int64]

    def holds(self, time_ns: int, energy_nj: int) -> bool:
        """Tell whether the pair is on the front."""
        at = int(np.searchsorted(self.time_ns, time_ns))
        return (
            at < len(self.time_ns)
            and int(self.time_ns[at]) == time_ns
            and int(self.energy_nj[at]) == energy_nj
        )


class Runs:
    """All runs that the options of units allow.

    Parameters
    ----------
    options
        `options(u, homes)`: all ways to run unit u, or a span from u on, if the tensors that are
        live before it have these homes.
    energy
        False: energy counts as 0, so each run has its least time alone.
    """

    def __init__(self, options: Options, *, energy: bool = True) -> None:
        self.energy = energy
        self._options = options
        self._steps = lru_cache(maxsize=64)(self._list_steps)

    def beginning(
        self, begin: int, units: int, homes: Homes, within: Collection[int]
    ) -> Iterator[tuple[Run, Front]]:
        """Yield every run that starts at a unit and ends before the last, and all it may take.

        Parameters
        ----------
        units
            Number of units there are.
        homes
            Homes of the tensors that are live before the first.
        within
            Bit masks: all sets of processors that are asked for, their subsets included.
        """
        steps = _steps(begin, units - 1, homes, self._options, energy=self.energy, within=within)
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
        made: list[dict[Homes, dict[int, Front]]] = [{(): {0: _START}}]
        for unit in reversed(range(units)):
            here: dict[Homes, dict[int, Front]] = {}
            for homes in homes_before[unit]:
                parts: dict[int, list[Front]] = {}
                for option in self._options(unit, homes):
                    for mask, front in made[-option.units].get(option.homes, {}).items():
                        parts.setdefault(mask | option.processors, []).append(
                            _after(front, option, self.energy)
                        )
                here[homes] = {mask: _merge(fronts) for mask, fronts in parts.items()}
            made.append(here)
        return made[::-1]

    def trace(self, run: Run, time_ns: int, energy_nj: int) -> tuple[Option, ...]:
        """Return options, in order, that the run is made of for this time and energy."""
        steps = self._steps(run.begin, run.homes_in, run.processors)
        while len(steps.made) < run.end - run.begin:
            steps.made.append(next(steps.more))
        fronts = [{(0, run.homes_in): _START}, *steps.made]
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

    def _list_steps(self, begin: int, homes: Homes, processors: int) -> _Steps:
        def inside(unit: int, at: Homes) -> list[Option]:
            return [o for o in self._options(unit, at) if not o.processors & ~processors]

        return _Steps([], _steps(begin, sys.maxsize, homes, inside, energy=self.energy))


@dataclass(frozen=True, slots=True)
class _Steps:
    """Fronts behind each unit of a run, made as far as they were asked for."""

    made: list[dict[Reach, Front]]
    more: Iterator[dict[Reach, Front]]


_START = Front(np.zeros(1, np.int64), np.zeros(1, np.int64))


def _steps(
    begin: int,
    units: int,
    homes: Homes,
    options: Options,
    *,
    energy: bool,
    within: Collection[int] | None = None,
) -> Iterator[dict[Reach, Front]]:
    """Yield, unit by unit, the front of each reach; processors outside `within` are not used."""
    front: dict[Reach, Front] = {(0, homes): _START}
    ahead: dict[int, dict[Reach, list[Front]]] = {}  # by the unit before which they end
    for unit in range(begin, units):
        for (mask, at), reached in front.items():
            for option in options(unit, at):
                used = mask | option.processors
                if within is None or used in within:
                    end = ahead.setdefault(unit + option.units, {})
                    end.setdefault((used, option.homes), []).append(_after(reached, option, energy))
        front = {reach: _merge(parts) for reach, parts in ahead.pop(unit + 1, {}).items()}
        yield front


def _after(front: Front, option: Option, energy: bool) -> Front:
    return Front(front.time_ns + option.time_ns, front.energy_nj + option.energy_nj * energy)


def _merge(parts: Sequence[Front]) -> Front:
    if len(parts) == 1:
        return parts[0]
    time_ns = np.concatenate([part.time_ns for part in parts])
    energy_nj = np.concatenate([part.energy_nj for part in parts])
    order = np.lexsort((energy_nj, time_ns))
    time_ns, energy_nj = time_ns[order], energy_nj[order]
    least = np.minimum.accumulate(energy_nj)
    kept = np.concatenate(([True], energy_nj[1:] < least[:-1]))
    return Front(time_ns[kept], energy_nj[kept])
