"""Offsets in an arena of a given size: a buffer that fits nowhere pushes others out of its way.

Buffers that end too high are taken out. Then one of them after the other is put where it fits, else
where the least stands in its way; what stands there is taken out in turn. Each buffer has a weight,
which grows whenever it fits nowhere: what is hard to place is not pushed out again at once. This is
the ejection pool of Nagata and Braysy (A powerful route minimization heuristic for the vehicle
routing problem with time windows, Operations Research Letters 37, 2009) with offsets in place of
routes.
"""

from __future__ import annotations

from random import Random

import numpy as np
import numpy.typing as npt

from parapipe.mapping.memory.buffers import ArenaProblem
from parapipe.mapping.memory.first_fit import FirstFits, Placed, ceil_to

Offsets = npt.NDArray[np.int64]

STEP, SHARE = 0.01, 0.5
"""The next arena is smaller by this share, or by this share of what is missing if that is more."""
WEIGHTS = 1000
"""Weights are whole numbers from 1 to this, so that sums are the same on all machines."""


class Ejections:
    """An arena that gets smaller step by step; equal calls return equal arenas.

    Parameters
    ----------
    seed
        Of choices among places where as much stands in the way.
    """

    def __init__(self, problem: ArenaProblem, seed: int = 0) -> None:
        fits = FirstFits(problem)
        area = problem.size_bytes * np.array(fits.life, dtype=np.float64)
        self._fits, self._random = fits, Random(seed)
        self._met: list[Offsets] = [np.array(each, dtype=np.int64) for each in fits.met]
        self._size = problem.size_bytes
        self._first_weight = np.ceil(WEIGHTS * np.sqrt(area / area.max()))
        self._weight = self._first_weight.copy()
        self._urgent: list[float] = (self._first_weight * self._size).tolist()
        self._least_top = max(
            (ceil_to(fits.floor, fits.steps[b]) + fits.sizes[b] for b in fits.others), default=0
        )
        self._best: Placed | None = None
        self._offset = np.empty(0, dtype=np.int64)
        self._top = 0
        self._out: list[int] = []

    def least(self, enough_bytes: int, most: int) -> Placed:
        """Return the smallest arena so far, or the first of at most `enough_bytes`.

        Parameters
        ----------
        most
            Buffers that are put anywhere after the first fits; another call goes on from there.
        """
        if self._best is None:
            self._best = self._fits.least(enough_bytes)
            self._offset = np.array(self._best.offset_bytes, dtype=np.int64)
        for _ in range(most):
            if not self._out and self._is_done(enough_bytes):
                break
            self._put(self._out.pop(self._next()))
        return self._best

    def _is_done(self, enough_bytes: int) -> bool:
        """Keep what has been found, and go on with a smaller arena, if that is to be."""
        size_bytes = int((self._offset + self._size).max())
        self._best = Placed(size_bytes, self._offset.tolist())
        missing_bytes = size_bytes - enough_bytes
        if missing_bytes <= 0:
            return True
        less_bytes = max(1, int(STEP * size_bytes), int(SHARE * missing_bytes))
        self._top = max(enough_bytes, size_bytes - less_bytes, self._least_top)
        ends = self._offset + self._size
        self._out = [b for b in self._fits.others if ends[b] > self._top]
        self._offset[self._out] = -1
        return not self._out

    def _next(self) -> int:
        """Return the place of the largest buffer among those that are out."""
        return max(range(len(self._out)), key=lambda i: self._urgent[self._out[i]])

    def _put(self, b: int) -> None:
        """Put a buffer where it fits, else where the least weight stands in its way."""
        met = self._met[b]
        met = met[self._offset[met] >= 0]
        low = self._offset[met]
        high = low + self._size[met]
        places = self._places(b, low, high)
        above = low < (places + self._size[b])[:, None]
        in_its_way = above & (high > places[:, None])
        weight = in_its_way @ self._weight[met]
        least = weight.min()
        if not least:
            self._offset[b] = places[int(weight.argmin())]
            return
        self._weight[b] += self._first_weight[b]
        place = self._random.choice(np.flatnonzero(weight == least).tolist())
        ejected = met[in_its_way[place]]
        self._offset[ejected] = -1
        self._out.extend(ejected.tolist())
        self._offset[b] = places[place]

    def _places(self, b: int, low: Offsets, high: Offsets) -> Offsets:
        """Return the offsets of a buffer at which it touches another one or an end, in order."""
        floor, last, step = self._fits.floor, self._top - int(self._size[b]), self._fits.steps[b]
        up, down = np.append(high, floor), np.append(low - self._size[b], last)
        places = np.concatenate((-(-up // step) * step, down // step * step))
        return np.unique(places[(places >= floor) & (places <= last)])
