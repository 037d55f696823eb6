"""All stages that units can form of which no processor has more segments than it may.

A processor serves one stage of a pipeline, so a limit of its segments is a limit inside a stage.
While a stage is built unit by unit, ways that differ in what later segments depend on are kept
apart (`SegmentState`). Bounds of the rest come from the stages without a limit: they hold.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from parapipe.problems.time_energy import Locations, TimeEnergy
from parapipe.processes.deadline import Deadline
from parapipe.search.stages.options import Option, Options
from parapipe.search.stages.stage_table import Stages, StageShape, StageTable
from parapipe.search.stages.stage_times import StageFilter
from parapipe.search.stages.unit_schedules import Choice
from parapipe.segment_search.counting import START, SegmentCounter

MOST_WAYS = 400  # to reach a boundary from the beginning of a stage; the shortest ones are kept

_Way = tuple[int, Locations, int]  # processors used, locations behind, and state of segments
_Front = TimeEnergy | Any


@dataclass(slots=True)
class UnitOptions:
    """What stages with a limit are made of.

    `thinned` tells whether there were too many ways to keep all of them.
    """

    options: Options
    counter: SegmentCounter
    thinned: bool = False


class LimitedStages(StageTable):
    """The stages of a table that keep a limit.

    Parameters
    ----------
    table
        Those without a limit, between the same boundaries.
    units
        What they are made of.
    cuts
        Numbers of units before the boundaries.
    """

    def __init__(
        self, table: StageTable, units: UnitOptions, cuts: Sequence[int], deadline: Deadline
    ) -> None:
        super().__init__(table.options, energy=table.energy, deadline=deadline)
        self._table, self._units, self._cuts = table, units, cuts
        self._steps_of: dict[int, tuple[Option, _Front]] = {}

    def beginning(
        self, begin: int, stop: int, places: Sequence[Locations], wanted: StageFilter
    ) -> Stages:
        """Yield the stages from a unit on that end before or at `stop`, as of `StageTable`."""
        for locations in places:
            walk = self._ways(begin, locations, stop, wanted.parts)
            for end, reached in enumerate(self._at_boundaries(begin, walk), start=begin + 1):
                for (mask, behind), front in self._fronts_of(reached).items():
                    if mask in wanted.sets[end]:
                        yield StageShape(begin, end, locations, behind, mask), front

    def last_stages(
        self, begin: int, units: int, places: Sequence[Locations], sets: Collection[int]
    ) -> Stages:
        """Yield the last stages that begin at a unit, as of `StageTable`."""
        parts = [_subsets(sets)] * (units + 1)
        for locations in places:
            *_, (_, reached) = self._ways(begin, locations, units, parts)
            for (mask, _), front in self._fronts_of(reached).items():
                if mask in sets:
                    yield StageShape(begin, units, locations, (), mask), front

    def at_cuts(self, cuts: Sequence[int]) -> LimitedStages:
        """Return the stages that begin and end at some of the boundaries alone."""
        fine = [self._cuts[cut] for cut in cuts]
        return LimitedStages(self._table.at_cuts(cuts), self._units, fine, self._deadline)

    def trace(self, shape: StageShape, time_ns: int, energy_nj: int) -> tuple[Option, ...]:
        """Return options, in order, that a stage is made of for this time and energy."""
        parts = [_subsets([shape.processors])] * (shape.end + 1)
        ways = dict(self._ways(shape.begin, shape.locations_in, shape.end, parts))
        begin, unit = self._cuts[shape.begin], self._cuts[shape.end]
        target = next(
            way
            for way, front in ways[unit].items()
            if way[:2] == (shape.processors, shape.locations)
            and self._fronts.holds(front, time_ns, energy_nj)
        )
        options: list[Option] = []
        while unit > begin:
            option, target = next(
                (option, way)
                for start in range(unit - 1, begin - 1, -1)
                for way, front in ways.get(start, {}).items()
                for option, reached in self._steps_from(start, way)
                if start + option.units == unit
                and reached == target
                and self._fronts.holds(
                    front, time_ns - option.time_ns, energy_nj - option.energy_nj * self.energy
                )
            )
            time_ns -= option.time_ns
            energy_nj -= option.energy_nj * self.energy
            unit -= option.units
            options.append(option)
        return tuple(reversed(options))

    def _fronts_of(self, ways: Mapping[_Way, _Front]) -> dict[tuple[int, Locations], TimeEnergy]:
        """Return what ways to a boundary may take, by processors and locations."""
        parts: dict[tuple[int, Locations], list[_Front]] = {}
        for (mask, at, _), front in ways.items():
            parts.setdefault((mask, at), []).append(front)
        fronts = self._fronts
        return {key: fronts.as_front(fronts.merge(some)) for key, some in parts.items() if key[0]}

    def _at_boundaries(
        self, begin: int, walk: Iterator[tuple[int, dict[_Way, _Front]]]
    ) -> Iterator[dict[_Way, _Front]]:
        """Yield those ways that lead to a boundary behind the one where they begin."""
        ends = {*self._cuts[begin + 1 :]}
        return (ways for unit, ways in walk if unit in ends)

    def _ways(
        self, begin: int, locations: Locations, end: int, parts: Sequence[Collection[int]]
    ) -> Iterator[tuple[int, dict[_Way, _Front]]]:
        """Yield each number of units up to a boundary, and the ways to there.

        Parameters
        ----------
        parts
            By boundary: what units before it may use.
        """
        fronts = self._fronts
        ahead: dict[int, dict[_Way, list[_Front]]] = {
            self._cuts[begin]: {(0, locations, START): [fronts.start]}
        }
        last = self._cuts[end]
        for unit in range(self._cuts[begin], last + 1):
            self._deadline.check()
            here = {way: fronts.merge(some) for way, some in ahead.pop(unit, {}).items()}
            if not self.energy:
                here = self._undominated(here)
            if len(here) > MOST_WAYS:
                self._units.thinned = True
                least = {w: int(fronts.as_front(each).time_ns.min()) for w, each in here.items()}
                here = {way: here[way] for way in sorted(here, key=least.__getitem__)[:MOST_WAYS]}
            yield unit, here
            for way, front in here.items() if unit < last else ():
                for option, reached in self._steps_from(unit, way):
                    behind = unit + option.units
                    if behind <= last and reached[0] in parts[bisect_left(self._cuts, behind)]:
                        step = fronts.then(front, self._step(option))
                        ahead.setdefault(behind, {}).setdefault(reached, []).append(step)

    def _steps_from(self, unit: int, way: _Way) -> Iterator[tuple[Option, _Way]]:
        """Yield what may come next, up to the next cut if not all are, and the way behind it."""
        mask, at, state = way
        every = len(self._cuts) > self._cuts[-1]  # one may lead past others: they are ideals
        next_cut = self._cuts[-1 if every else bisect_right(self._cuts, unit)]
        for option in self._units.options(unit, at):
            if unit + option.units <= next_cut:
                assert isinstance(option.choice, Choice)
                behind = self._units.counter.after(state, option.choice)
                if behind is not None:
                    yield option, (mask | option.processors, option.locations, behind)

    def _step(self, option: Option) -> _Front:
        if id(option) not in self._steps_of:
            self._steps_of[id(option)] = option, self._fronts.of([option])
        return self._steps_of[id(option)][1]

    def _undominated(self, ways: dict[_Way, int]) -> dict[_Way, int]:
        """Leave out ways for which another has no more segments anywhere and takes no longer.

        Only ways between which nothing else differs that counts later are compared.
        """
        states = self._units.counter.states
        groups: dict[tuple[object, ...], list[_Way]] = {}
        for way in ways:
            mask, at, number = way
            state = states[number]
            may_go_on = tuple(ends for _, _, ends in state.counts)
            groups.setdefault((mask, at, may_go_on, state.makers, state.received), []).append(way)
        kept: dict[_Way, int] = {}
        for group in groups.values():
            best: list[tuple[int, ...]] = []
            for way in sorted(group, key=lambda way: (ways[way], states[way[2]].counts)):
                counts = tuple(count for _, count, _ in states[way[2]].counts)
                if not any(all(map(int.__le__, other, counts)) for other in best):
                    best.append(counts)
                    kept[way] = ways[way]
        return kept


def _subsets(sets: Iterable[int]) -> Collection[int]:
    """Return the bit masks of all subsets of some sets."""
    every: set[int] = set()
    for mask in sets:
        part = mask
        while part:
            every.add(part)
            part = (part - 1) & mask
    return every
