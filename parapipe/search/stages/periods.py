"""Pipelines of which no stage takes longer than a limit, by bounds of requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from parapipe.processes.deadline import Deadline
from parapipe.search.stages.labels import first_of_each
from parapipe.search.stages.relaxed import Ask, Numbers, Relaxed, Stretch


class Pipeline(NamedTuple):
    """Stages, with what each asks for, and the time of the longest one in seconds."""

    stages: list[tuple[Stretch, list[Ask]]]
    longest_s: float


class Periods:
    """Pipelines of stages that share no processor; identical processors are used in turn.

    Parameters
    ----------
    replicas
        Sets of processors that may take turns on a stage of one, by the bit mask of their first.
    """

    def __init__(
        self, relaxed: Relaxed, replicas: Mapping[int, Sequence[int]] = MappingProxyType({})
    ) -> None:
        self.relaxed = relaxed
        every = [0, *relaxed.sets]
        firsts = [(first, mask) for first, sets in replicas.items() for mask in sets]
        pairs = [
            (i, own, j, turns)
            for i, before in enumerate(every)
            for j, used in enumerate(every)
            if before < used and before & used == before
            for added in [used & ~before]
            for own, turns in [
                (added, 1),
                *((first, mask.bit_count()) for first, mask in firsts if mask == added),
            ]
        ]
        # of each processors before a stage, its own, and all up to it; the first are ascending
        self._before, self._masks, self._after, self._turns = np.array(pairs).T
        self._first = first_of_each(self._before)
        self._used = np.array(every)

    def within(self, limit_s: float, deadline: Deadline) -> Pipeline | None:
        """Return a pipeline of which no stage takes longer than that; None if there is none.

        A stage that r processors take turns on may take r times as long.

        A stage begins where the one before it has left the tensors. OverError at the deadline.
        """
        units = self.relaxed.units
        # From the end: what is left to do of a stage, by [place, pair] at each boundary. That is
        # nothing where a stage may end, since further ones can do the rest.
        left = [np.zeros((1, len(self._masks)))]
        ends = [np.ones((1, len(self._masks)), bool)]
        early = self._early(limit_s)
        for unit in reversed(range(units)):
            deadline.check()
            here = np.full((len(self.relaxed.places[unit]), len(self._masks)), inf)
            for number, step in enumerate(self.relaxed.steps[unit]):
                behind = left[units - step.run.end]
                some = np.flatnonzero(np.isfinite(behind).any(axis=0) & early[unit])
                ways_s = self.relaxed.allowed(unit, number)[:, :, self._masks[some]]
                least_s = (ways_s + behind[step.out[:, :, None], some]).min(axis=1)
                here[:, some] = np.minimum(here[:, some], least_s)
            here[here > limit_s * self._turns] = inf
            fits = np.zeros((len(here), len(self._used)), bool)
            begun = np.logical_or.reduceat(np.isfinite(here), self._first, axis=1)
            fits[:, self._before[self._first]] = begun
            ends.append(fits[:, self._after])
            left.append(np.where(ends[-1], 0.0, here))
        return self._pipeline(left[::-1], ends[::-1]) if fits[0, 0] else None

    def _early(self, limit_s: float) -> NDArray[np.bool_]:
        """Tell where a stage may run a unit: [unit, pair].

        Processors before it are a stage each at most, and so is what it has run itself.
        """
        relaxed = self.relaxed
        until_s = np.full((relaxed.units + 1, 1 << relaxed.count), inf)  # [boundary, set]
        until_s[0] = 0.0
        for unit, some in enumerate(relaxed.steps):
            for number, step in enumerate(some):
                taken_s = until_s[unit] + relaxed.allowed(unit, number).min(axis=(0, 1))
                until_s[step.run.end] = np.minimum(until_s[step.run.end], taken_s)
        most_s = limit_s * (self._turns + np.bitwise_count(self._used[self._before]))
        found: NDArray[np.bool_] = until_s[:, self._used[self._after]] <= most_s
        return found

    def _pipeline(self, left: Sequence[Numbers], ends: Sequence[NDArray[np.bool_]]) -> Pipeline:
        """Return the stages: of all that may come next, one that takes the least time."""
        units, stages, longest_s = self.relaxed.units, [], 0.0
        unit = place = used = 0
        while unit < units:
            begin, at, asked = unit, place, []
            time_s, pair, step, way = self._next(left, unit, place, self._before == used)
            longest_s = max(longest_s, time_s)
            mask, alone = int(self._masks[pair]), np.arange(len(self._masks)) == pair
            while True:
                asked.append(self.relaxed.ask(unit, step, place, way, mask))
                run = self.relaxed.steps[unit][step]
                unit, place = run.run.end, int(run.out[place, way])
                if ends[unit][place, pair]:
                    break
                _, _, step, way = self._next(left, unit, place, alone)
            stages.append((Stretch(begin, at, unit, mask), asked))
            used = int(self._after[pair])
        return Pipeline(stages, longest_s)

    def _next(
        self, left: Sequence[Numbers], unit: int, place: int, allowed: NDArray[np.bool_]
    ) -> tuple[float, int, int, int]:
        """Return the least time for the rest of a stage: that, pair, number of step, and column.

        Of what r processors take turns on, an r-th of the time.
        """
        pairs, best = np.flatnonzero(allowed), (inf, 0, 0, 0)
        for number, step in enumerate(self.relaxed.steps[unit]):
            ways_s = self.relaxed.allowed(unit, number)[place][:, self._masks[pairs]]
            ways_s = (ways_s + left[step.run.end][step.out[place]][:, pairs]) / self._turns[pairs]
            column, i = (int(n) for n in np.unravel_index(ways_s.argmin(), ways_s.shape))
            best = min(best, (float(ways_s[column, i]), int(pairs[i]), number, column))
        return best
