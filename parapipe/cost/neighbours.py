"""What the nearest measured operators say of a fitted time, without more work ever being cheaper.

Each measured operator stands for a box of operators near to it: every amount of work within a tenth
of its own. In its box the fit is off by some ratio, most of which (one operator's time is noisy) is
taken for true. Where it took longer than the fit, so do all that do at least as much of everything;
where shorter, so do all that do at most as much: the highest and the lowest of functions that
nowhere fall with work, which therefore don't fall either. This takes the place of the centroids of
k-means that the Para-Pipe paper uses on its BST board.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from parapipe.cost.least_squares import Array

_ROUNDING = 1e-9  # share by which two errors may differ and still be equal
_REACH = 1.1  # how far from a measured operator it counts, as a ratio of each amount
_TRUST = 2 / 3  # share of the logarithm of a ratio that is taken for true


class Decision(NamedTuple):
    """What a corrected time is: coefficients times these amounts, times the ratio.

    Parameters
    ----------
    amounts
        Shape (amounts,): the operator's, within reach of the neighbour.
    neighbour
        Which of the measured operators decides; None if none does.
    """

    time_s: float
    amounts: Array
    ratio: float = 1.0
    neighbour: int | None = None


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Measured operators of one kind.

    Parameters
    ----------
    amounts
        Shape (operators, amounts).
    ratios
        Shape (operators,): by what the fit is multiplied near each.
    """

    amounts: Array
    ratios: Array

    def decide(
        self, amounts: Array, coefficients: Array, *, without: int | None = None
    ) -> Decision:
        """Return the fit's seconds for these amounts, corrected by the neighbours.

        Parameters
        ----------
        without
            One of them that is not asked.
        """
        found = Decision(float(amounts @ coefficients), amounts)
        low, high, above = self._sides
        for sign, near, limit, limited in (
            (1, above & (amounts >= low).all(axis=1), high, np.minimum),
            (-1, ~above & (amounts <= high).all(axis=1), low, np.maximum),
        ):
            if without is not None:
                near[without] = False
            rows = np.flatnonzero(near)
            if not len(rows):
                continue
            counted = limited(amounts, limit[rows])
            times_s = counted @ coefficients * self.ratios[rows]
            best = int((sign * times_s).argmax())
            if sign * times_s[best] > sign * found.time_s:
                i = int(rows[best])
                found = Decision(float(times_s[best]), counted[best], float(self.ratios[i]), i)
        return found

    @cached_property
    def _sides(self) -> tuple[Array, Array, NDArray[np.bool_]]:
        """Ends of each one's reach, and whether it took longer than the fit."""
        return self.amounts / _REACH, self.amounts * _REACH, self.ratios > 1


def neighbours_of(amounts: Array, times_s: Array, coefficients: Array) -> Neighbours | None:
    """Return the neighbours of a fit unless they predict each other worse, or the fit is exact.

    Where both are equally good, but for rounding, networks left out are predicted better with
    neighbours (GPU of the A311D: 8.5 % off in the median, in place of 9.8 %).

    Parameters
    ----------
    amounts
        Shape (operators, amounts): those that were measured.
    times_s
        Shape (operators,).
    coefficients
        Shape (amounts,): the fit.
    """
    fitted = amounts @ coefficients
    if not (fitted > 0).all():
        return None
    found = Neighbours(amounts, (times_s / fitted) ** _TRUST)
    corrected = np.array(
        [found.decide(own, coefficients, without=i).time_s for i, own in enumerate(amounts)]
    )
    error, fit_error = (float(np.abs(t / times_s - 1).mean()) for t in (corrected, fitted))
    return found if fit_error > _ROUNDING and error <= fit_error * (1 + _ROUNDING) else None
