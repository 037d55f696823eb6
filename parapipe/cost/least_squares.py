"""Least squares with coefficients that are never negative, for some dozens of columns."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

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
    x = _active_set(gram, scaled.T @ target / length, _usable(gram), first)
    return x * length / np.where(scale > 0, scale, 1)


def _usable(gram: Array) -> list[int]:
    """Return the columns that are neither zero nor a multiple of an earlier one."""
    kept: list[int] = []
    for i, row in enumerate(gram.tolist()):
        if row[i] > 0 and all(row[j] < 1 - 1e-12 for j in kept):
            kept.append(i)
    return kept


def _active_set(gram: Array, product: Array, usable: list[int], first: list[int]) -> Array:
    x = np.zeros(len(gram))
    chosen: list[int] = []
    if first and set(first) <= set(usable):
        begin = _solved(gram, product, first)
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
            solved = _solved(gram, product, chosen)
            if new in chosen and solved[chosen.index(new)] <= _ZERO:
                # Rounding alone made it look useful; trying it again would go round in circles.
                chosen.remove(new)
                refused.add(new)
                continue
            if (solved > 0).all():
                x = np.zeros(len(gram))
                x[chosen] = solved
                break
            x, chosen = _step(x, chosen, solved)
    return x


def _solved(gram: Array, product: Array, chosen: list[int]) -> Array:
    """Return the coefficients of the chosen columns that fit best, whatever their sign."""
    part = gram.take(chosen, 0).take(chosen, 1)
    found: Array = np.linalg.lstsq(part, product[chosen], rcond=1e-12)[0].astype(float)
    return found


def _step(x: Array, chosen: list[int], solved: Array) -> tuple[Array, list[int]]:
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
    found: Array = np.abs(design @ x / target - 1)
    return found


def left_out_errors(design: Array, target: Array, groups: Sequence[Hashable]) -> Array:
    """Return the relative errors of rows, each predicted by a robust fit to the other groups."""
    errors = np.empty_like(target)
    for group in dict.fromkeys(groups):
        out = np.array([each == group for each in groups])
        x = robust_nonnegative(design[~out], target[~out])
        errors[out] = relative_errors(x, design[out], target[out])
    return errors
