"""Offsets in an arena of a given size: a buffer that fits nowhere pushes others out of its way.

Buffers that end too high are taken out. Then one of them after the other is put where it fits, else
where the least stands in its way; what stands there is taken out as well. Each buffer has a weight,
which grows whenever it fits nowhere: what is hard to place is not pushed out again at once. This is
the ejection pool of Nagata and Braysy (A powerful route minimization heuristic for the vehicle
routing problem with time windows, Operations Research Letters 37, 2009) with offsets in place of
routes.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from random import Random

import numpy as np
import numpy.typing as npt

from parapipe.solvers.memory.offsets import FirstFits, Packing, ceil_to

Offsets = npt.NDArray[np.int64]
Weights = npt.NDArray[np.float64]

PATIENCE = 3000
"""After so many changes in vain, an arena that is half as much smaller is looked for first."""
WEIGHTS = 1000
"""Weights are whole numbers, at first from 1 to this, so that sums are the same everywhere."""
OUTSIDE = 1 << 60
"""The offset of what is taken out: beyond every arena."""


class Ejections:
    """An arena that gets smaller and smaller; equal calls return equal arenas.

    Parameters
    ----------
    start
        Where buffers lie at first.
    seed
        Of choices among places where as much stands in the way.
    """

    def __init__(self, fits: FirstFits, start: Packing, seed: int) -> None:
        self._fits, self._best, self._random = fits, start, Random(seed)
        self._size = fits.problem.size_bytes
        self._met = [(met, self._size[met]) for met in fits.overlaps]
        self._offset = np.array(start.offset_bytes, dtype=np.int64)
        area = self._size * np.array(fits.life, dtype=np.float64)
        self._first_weight = np.ceil(WEIGHTS * np.sqrt(area / area.max()))
        self._weight = self._first_weight
        self._least_top = max(
            (ceil_to(fits.floor, fits.steps[b]) + fits.sizes[b] for b in fits.others), default=0
        )
        self._top = start.size_bytes
        self._out: list[tuple[float, int]] = []  # a heap

    def least(self, enough_bytes: int, most: int) -> Packing:
        """Return the smallest arena that is found, or the first of at most `enough_bytes`.

        Parameters
        ----------
        most
            Changes: buffers that are put somewhere.
        """
        since = 0
        for n in range(most):
            if not self._out:
                since = n
                if not self._goes_on(enough_bytes):
                    break
            elif n - since == PATIENCE:
                since = n
                self._set_top((self._top + self._best.size_bytes) // 2)
            self._put(heappop(self._out)[1])
        return self._best

    def _goes_on(self, enough_bytes: int) -> bool:
        """Keep what has been found, and take out what ends too high; return if anything does."""
        ends = self._offset + self._size
        size_bytes = int(ends.max())
        if size_bytes < self._best.size_bytes:
            self._best = Packing(size_bytes, self._offset.tolist())
        self._set_top(enough_bytes)
        self._take_out([b for b in self._fits.others if ends[b] > self._top])
        return bool(self._out)

    def _set_top(self, size_bytes: int) -> None:
        """Look for an arena of so many bytes, less those that offsets cannot make use of."""
        unit = self._fits.problem.unit_bytes
        self._top = max(size_bytes // unit * unit, self._least_top)
        self._weight = self._first_weight.copy()

    def _take_out(self, buffers: Sequence[int]) -> None:
        """Take buffers out; the larger and heavier they are, the sooner they are put back."""
        for b in buffers:
            heappush(self._out, (-self._weight[b] * self._size[b], b))
        self._offset[buffers] = OUTSIDE

    def _put(self, b: int) -> None:
        """Put a buffer where it fits, else where the least weight stands in its way."""
        (met, sizes), size = self._met[b], self._size[b]
        low, weights = self._offset[met], self._weight[met]
        high = low + sizes
        # Below the end of a buffer that is put there lies `begun`, of which `ended` ends below it.
        lows, begun = _sort_with_sums(low - size, weights)
        highs, ended = _sort_with_sums(high, weights)
        places = self._places(b, lows, highs)
        weight = (
            begun[lows.searchsorted(places, "left")] - ended[highs.searchsorted(places, "right")]
        )
        (at,) = (weight == np.minimum.reduce(weight)).nonzero()
        if not weight[at[0]]:
            self._offset[b] = np.minimum.reduce(places[at])
            return
        self._weight[b] += self._first_weight[b]
        place = places[at[int(self._random.random() * len(at))]]
        self._take_out(met[(low < place + size) & (high > place)].tolist())
        self._offset[b] = place

    def _places(self, b: int, lows: Offsets, highs: Offsets) -> Offsets:
        """Return the offsets of a buffer at which it touches another one or an end.

        Parameters
        ----------
        lows, highs
            Where it ends with the begin of another one, and begins with the end of one.
        """
        floor, last, step = self._fits.floor, self._top - self._size[b], self._fits.steps[b]
        up = len(highs) + 1
        places: Offsets = np.empty(2 * up, dtype=np.int64)
        places[: up - 1], places[up - 1], places[up:-1], places[-1] = highs, floor, lows, last
        if step > 1:
            places[:up] = -(-places[:up] // step) * step
            places[up:] = places[up:] // step * step
        inside: Offsets = places[(places >= floor) & (places <= last)]
        return inside


def _sort_with_sums(keys: Offsets, weights: Weights) -> tuple[Offsets, Weights]:
    """Return keys in ascending order, and the sums of the weights of the first ones of them."""
    order, sums = keys.argsort(), np.zeros(len(keys) + 1)
    np.add.accumulate(weights[order], out=sums[1:])
    return keys[order], sums
