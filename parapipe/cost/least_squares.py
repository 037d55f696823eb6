"""Least squares with coefficients that are never negative, and fits by nearest neighbours.

Each measured operator stands for a box of operators near to it: every amount of work within a tenth
of its own. In its box the fit is off by some ratio, most of which (one operator's time is noisy) is
taken for true. Where it took longer than the fit, so do all that do at least as much of everything;
where shorter, so do all that do at most as much: the highest and the lowest of functions that
nowhere fall with work, which therefore don't fall either. This takes the place of the centroids of
k-means that the Para-Pipe paper uses on its BST board.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_ROUNDS = 30
_FULL_WEIGHT = 0.05  # relative errors up to here count squared, larger ones by their size
_UNCHANGED = 1e-6  # share by which no coefficient changes any more
_ZERO = 1e-10  # what of a gradient or a coefficient is rounding, columns and target scaled to 1


def nonnegative(design: Array, target: Array, guess: Array | None = None) -> Array:
    """Return the non-negative x that minimises |design x − target|.

    The active-set method of Lawson and Hanson, Solving Least Squares Problems (1974), chapter 23,
    on the normal equations of columns scaled to length 1. Of columns that are multiples of each
    other the first is used.

    Parameters
    ----------
    design
        Shape (rows, columns), non-negative.
    target
        Shape (rows,).
    guess
        An x that may be near the one to be found: the search begins with its positive columns.
    """
    scale = np.linalg.norm(design, axis=0)
    length = float(np.linalg.norm(target))
    if not length:
        return np.zeros(design.shape[1])
    scaled = design / np.where(scale > 0, scale, 1)
    gram = scaled.T @ scaled
    first = [] if guess is None else np.flatnonzero(guess).tolist()
    x = _solve_active_set(gram, scaled.T @ target / length, _independent_columns(gram), first)
    return x * length / np.where(scale > 0, scale, 1)


def _independent_columns(gram: Array) -> list[int]:
    """Return the columns that are neither zero nor a multiple of an earlier one."""
    columns: list[int] = []
    for i, row in enumerate(gram.tolist()):
        if row[i] > 0 and all(row[j] < 1 - 1e-12 for j in columns):
            columns.append(i)
    return columns


def _solve_active_set(gram: Array, product: Array, usable: list[int], first: list[int]) -> Array:
    x = np.zeros(len(gram))
    chosen: list[int] = []
    if first and set(first) <= set(usable):
        begin = _solve_columns(gram, product, first)
        if (begin > 0).all():
            chosen, x[first] = first, begin
    refused: set[int] = set()
    for _ in range(10 * len(gram)):
        gradient = (product - gram @ x).tolist()
        left = [i for i in usable if i not in chosen and i not in refused]
        new = max(left, key=gradient.__getitem__, default=None)  # of equals the first
        if new is None or gradient[new] <= _ZERO:
            break
        chosen.append(new)
        while chosen:
            solved = _solve_columns(gram, product, chosen)
            if new in chosen and solved[chosen.index(new)] <= _ZERO:
                # Rounding alone made it look useful; trying it again would go round in circles.
                chosen.remove(new)
                refused.add(new)
                continue
            if (solved > 0).all():
                x = np.zeros(len(gram))
                x[chosen] = solved
                break
            x, chosen = _step_towards(x, chosen, solved)
    return x


def _solve_columns(gram: Array, product: Array, chosen: list[int]) -> Array:
    """Return the coefficients of the chosen columns that fit best, whatever their sign."""
    part = gram.take(chosen, 0).take(chosen, 1)
    coefficients: Array = np.linalg.lstsq(part, product[chosen], rcond=1e-12)[0].astype(float)
    return coefficients


def _step_towards(x: Array, chosen: list[int], solved: Array) -> tuple[Array, list[int]]:
    """Go from x towards the solution until the first coefficient is zero, and drop that one."""
    now = x[chosen]
    falling = solved <= 0
    share = float(np.min(now[falling] / (now[falling] - solved[falling])))
    moved = now + share * (solved - now)
    moved[falling & (moved <= moved[falling].min() + _ZERO)] = 0
    moved = np.maximum(moved, 0)
    stepped = np.zeros_like(x)
    stepped[chosen] = moved
    return stepped, [i for i, value in zip(chosen, moved, strict=True) if value > 0]


def robust_nonnegative(design: Array, target: Array, offset: Array | None = None) -> Array:
    """Return non-negative x with small relative errors of design x + offset, outliers bearable.

    Iteratively reweighted least squares on (design x + offset − target) / target with Huber's
    weights: a row far off counts by its error, not by its square.

    Parameters
    ----------
    target
        Shape (rows,), positive.
    offset
        Shape (rows,); zero by default.
    """
    offset = np.zeros_like(target) if offset is None else offset
    weight = np.ones_like(target)
    x = np.zeros(design.shape[1])
    for _ in range(_ROUNDS):
        row = weight / target
        before, x = x, nonnegative(design * row[:, None], (target - offset) * row, x)
        if (np.abs(x - before) <= _UNCHANGED * np.abs(before)).all():
            break
        error = np.abs(design @ x + offset - target) / target
        weight = np.sqrt(_FULL_WEIGHT / np.maximum(error, _FULL_WEIGHT))
    return x


def relative_errors(x: Array, design: Array, target: Array) -> Array:
    """Return |design x / target − 1| of each row."""
    errors: Array = np.abs(design @ x / target - 1)
    return errors


def left_out_errors(design: Array, target: Array, groups: Sequence[Hashable]) -> Array:
    """Return the relative errors of rows, each predicted by a robust fit to the other groups."""
    errors = np.empty_like(target)
    for group in dict.fromkeys(groups):
        out = np.array([each == group for each in groups])
        x = robust_nonnegative(design[~out], target[~out])
        errors[out] = relative_errors(x, design[out], target[out])
    return errors


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
        times_s, (deciding,) = self._correct(amounts[None], coefficients)
        if deciding < 0:
            return Decision(float(times_s[0]), amounts)
        i = int(deciding)
        low, high, above = self._reaches
        counted = np.minimum(amounts, high[i]) if above[i] else np.maximum(amounts, low[i])
        return Decision(float(times_s[0]), counted, float(self.ratios[i]), i)

    def times_s(self, amounts: Array, coefficients: Array, *, leave_out: bool = False) -> Array:
        """Return the corrected seconds of many operators.

        Parameters
        ----------
        amounts
            Shape (operators, amounts).
        leave_out
            They are the measured ones, none of which is asked for itself.
        """
        parts = np.array_split(np.arange(len(amounts)), len(amounts) // _AT_ONCE + 1)
        return np.concatenate(
            [self._correct(amounts[i], coefficients, i if leave_out else None)[0] for i in parts]
        )

    def _correct(
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
        low, high, above = self._reaches
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
    def _reaches(self) -> tuple[Array, Array, NDArray[np.bool_]]:
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
    neighbours = Neighbours(amounts, (times_s / fitted) ** _TRUST)
    corrected = neighbours.times_s(amounts, coefficients, leave_out=True)
    error, fit_error = (float(np.abs(t / times_s - 1).mean()) for t in (corrected, fitted))
    return neighbours if fit_error > _ROUNDING and error <= fit_error * (1 + _ROUNDING) else None
