"""The shortest period that stages can have, by bounds of requests or by known schedules."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import numpy as np

from parapipe.graph.partition import Partition
from parapipe.pipeline.relaxed import Numbers, Relaxed, Stretch, Whole

_Taken = tuple[int, Whole, Numbers]  # where a last stage begins, processors, longest stages


class Periods:
    """Pipelines of stages that share no processor; identical processors are used in turn."""

    def __init__(self, relaxed: Relaxed, partition: Partition) -> None:
        self.relaxed = relaxed
        self._live = [tuple(names) for names in partition.boundaries]
        self._makers = [
            np.array([[each[0] for each in at] for at in some], np.int64).reshape(len(some), -1)
            for some in relaxed.places
        ]
        every = [0, *relaxed.sets]
        pairs = [
            (i, used & ~before, j)
            for j, used in enumerate(every)
            for i, before in enumerate(every[:j])
            if before & used == before
        ]
        self._before, self._masks, self._after = np.array(pairs).T

    def least(self, most_s: float = inf, *, known: bool = False) -> tuple[float, list[Stretch]]:
        """Return the least time of the longest stage, in seconds, and the stages.

        A stage begins where those before it have left the tensors: each on a processor of the stage
        that made it, whichever that is.

        Parameters
        ----------
        most_s
            Longer stages are of no interest.
        known
            Whether known schedules alone count.

        Returns
        -------
        That time, or `most_s` if all others are longer.
        """
        # by boundary: [all processors used, place]; stages share none, identical ones are in turn
        found = [
            np.full((1 + len(self.relaxed.sets), len(some)), inf) for some in self.relaxed.places
        ]
        found[0][0, 0] = 0.0
        taken: list[list[_Taken]] = [[] for _ in found]
        for end in range(1, self.relaxed.units + 1):
            for begin, times_s in self.relaxed.stages_to(end, known=known):
                if times_s.min() > most_s:
                    break
                least_s = found[begin].min(axis=1)
                some = np.flatnonzero(least_s[self._before] <= most_s)
                some = some[times_s.min(axis=0)[self._masks[some]] <= most_s]
                if len(some):
                    longest_s = np.maximum(
                        found[begin][self._before[some]], times_s[:, self._masks[some]].T
                    )
                    taken[end].append((begin, some, longest_s))
                    self._left(begin, end, some, longest_s, found[end])
        shortest_s = float(found[-1].min())
        if shortest_s == inf:
            return most_s, []
        # rounded down by a share that is more than sums of doubles lose
        return shortest_s * (1 - 1e-9), self._stages(found, taken)

    def _left(self, begin: int, end: int, some: Whole, longest_s: Numbers, found: Numbers) -> None:
        """Tell all places behind a stage what the best way there takes."""
        before, behind, new = self._stay(begin, end)
        order = np.argsort(before, kind="stable")
        keys, first = np.unique(before[order], return_index=True)
        least = np.minimum.reduceat(longest_s[:, order], first, axis=1)
        at = np.minimum(np.searchsorted(keys, behind), len(keys) - 1)
        there = np.where(
            (keys[at] == behind) & (new & ~self._masks[some, None] == 0), least[:, at], inf
        )
        rows, first = np.unique(self._after[some], return_index=True)  # ascending
        found[rows] = np.minimum(found[rows], np.minimum.reduceat(there, first, axis=0))

    def _stay(self, begin: int, end: int) -> tuple[Whole, Whole, Whole]:
        """Return where tensors are that are live at both boundaries, and where new ones are.

        Returns
        -------
        A number for each place of the first and each of the second boundary, and a mask for each
        of the second.
        """
        names, makers = self._live[begin], self._makers
        before = np.zeros(len(makers[begin]), np.int64)
        behind, new = (np.zeros(len(makers[end]), np.int64) for _ in range(2))
        for i, name in enumerate(self._live[end]):
            if name in names:
                behind = behind * self.relaxed.count + makers[end][:, i]
                before = before * self.relaxed.count + makers[begin][:, names.index(name)]
            else:
                new |= 1 << makers[end][:, i]
        return before, behind, new

    def _stages(self, found: Sequence[Numbers], taken: Sequence[Sequence[_Taken]]) -> list[Stretch]:
        """Return the stages of the best pipeline, the first one first."""
        end, stages = self.relaxed.units, []
        row, place = (int(i) for i in np.unravel_index(found[end].argmin(), found[end].shape))
        while end:
            limit_s = found[end][row, place]
            for begin, some, longest_s in taken[end]:
                before, behind, new = self._stay(begin, end)
                fits = (self._after[some] == row) & (new[place] & ~self._masks[some] == 0)
                ways_s = np.where(fits[:, None] & (before == behind[place]), longest_s, inf)
                if ways_s.min() <= limit_s:
                    break
            pair, place = (int(i) for i in np.unravel_index(ways_s.argmin(), ways_s.shape))
            pair = int(some[pair])
            stages.append(Stretch(begin, place, end, int(self._masks[pair])))
            end, row = begin, int(self._before[pair])
        return stages[::-1]
