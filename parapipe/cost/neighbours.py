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

import numpy as np

from parapipe.cost.least_squares import Array

_REACH = 1.1  # how far from a measured operator it counts, as a ratio of each amount
_TRUST = 2 / 3  # share of the logarithm of a ratio that is taken for true


@dataclass(frozen=True, slots=True, eq=False)
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

    def correct(self, amounts: Array, coefficients: Array) -> float:
        """Return the fit's seconds for these amounts, corrected by the neighbours."""
        time_s = float(amounts @ coefficients)
        above = self.ratios > 1
        slow, fast = self.amounts[above], self.amounts[~above]
        reached = (amounts >= slow / _REACH).all(axis=1)
        raised = np.minimum(amounts, slow[reached] * _REACH) @ coefficients
        time_s = max(time_s, *map(float, raised * self.ratios[above][reached]), 0.0)
        reached = (amounts <= fast * _REACH).all(axis=1)
        lowered = np.maximum(amounts, fast[reached] / _REACH) @ coefficients
        return min([time_s, *map(float, lowered * self.ratios[~above][reached])])

    def without(self, operator: int) -> Neighbours:
        """Return all but one of them."""
        return Neighbours(
            np.delete(self.amounts, operator, axis=0), np.delete(self.ratios, operator)
        )


def neighbours_of(amounts: Array, times_s: Array, coefficients: Array) -> Neighbours | None:
    """Return the neighbours of a fit if they predict each other better than the fit does.

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
        [found.without(i).correct(amounts[i], coefficients) for i in range(len(amounts))]
    )
    better = np.abs(corrected / times_s - 1).mean() < np.abs(fitted / times_s - 1).mean()
    return found if better else None
