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
_AT_ONCE = 256  # operators whose neighbours are compared at one go
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

    def decide(self, amounts: Array, coefficients: Array) -> Decision:
        """Return the fit's seconds for these amounts, corrected by the neighbours."""
        times_s, (deciding,) = self._decided(amounts[None], coefficients)
        if deciding < 0:
            return Decision(float(times_s[0]), amounts)
        i = int(deciding)
        low, high, above = self._sides
        counted = np.minimum(amounts, high[i]) if above[i] else np.maximum(amounts, low[i])
        return Decision(float(times_s[0]), counted, float(self.ratios[i]), i)

    def times_s(self, amounts: Array, coefficients: Array, *, apart: bool = False) -> Array:
        """Return the corrected seconds of many operators.

        Parameters
        ----------
        amounts
            Shape (operators, amounts).
        apart
            They are the measured ones, none of which is asked for itself.
        """
        parts = np.array_split(np.arange(len(amounts)), len(amounts) // _AT_ONCE + 1)
        return np.concatenate(
            [self._decided(amounts[i], coefficients, i if apart else None)[0] for i in parts]
        )

    def _decided(
        self, amounts: Array, coefficients: Array, without: NDArray[np.int64] | None = None
    ) -> tuple[Array, NDArray[np.int64]]:
        """Return the seconds of operators, and which neighbour decides on each; -1 if none does.

        Parameters
        ----------
        without
            For each of them the neighbour that is not asked.
        """
        times_s = amounts @ coefficients
        numbers, deciding = np.arange(len(amounts)), np.full(len(amounts), -1)
        low, high, above = self._sides
        each = amounts[:, None]
        for sign, near, counted in (
            (1, above & (each >= low).all(2), np.minimum(each, high)),
            (-1, ~above & (each <= high).all(2), np.maximum(each, low)),
        ):
            if without is not None:
                near[numbers, without] = False
            there_s = np.where(near, sign * (counted @ coefficients * self.ratios), -np.inf)
            best = there_s.argmax(1)
            best_s = there_s[numbers, best]
            better = best_s > sign * times_s
            times_s = np.where(better, sign * best_s, times_s)
            deciding = np.where(better, best, deciding)
        return times_s, deciding

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
    corrected = found.times_s(amounts, coefficients, apart=True)
    error, fit_error = (float(np.abs(t / times_s - 1).mean()) for t in (corrected, fitted))
    return found if fit_error > _ROUNDING and error <= fit_error * (1 + _ROUNDING) else None
