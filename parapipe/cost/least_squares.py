"""Least squares with coefficients that are never negative, for a handful of columns."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_ROUNDS = 30
_FULL_WEIGHT = 0.05  # relative errors up to here count squared, larger ones by their size


def nonnegative(design: Array, target: Array) -> Array:
    """Return the non-negative x that minimises |design x − target|, exactly.

    The optimum is the ordinary solution for those columns whose coefficient is positive, so all
    sets of columns are tried: meant for ten columns at most.

    Parameters
    ----------
    design
        Shape (rows, columns), non-negative.
    target
        Shape (rows,).
    """
    columns = design.shape[1]
    scale = np.linalg.norm(design, axis=0)
    scaled = design / np.where(scale > 0, scale, 1)
    best = np.zeros(columns)
    least = float(target @ target)
    for size in range(1, columns + 1):
        for chosen in map(list, combinations(np.flatnonzero(scale > 0), size)):
            x, *_ = np.linalg.lstsq(scaled[:, chosen], target, rcond=None)
            error = scaled[:, chosen] @ x - target
            if (x >= 0).all() and float(error @ error) < least * (1 - 1e-12):
                least = float(error @ error)
                best = np.zeros(columns)
                best[chosen] = x / scale[chosen]
    return best


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
        before, x = x, nonnegative(design * row[:, None], (target - offset) * row)
        if np.allclose(x, before, rtol=1e-6, atol=0):
            break
        error = np.abs(design @ x + offset - target) / target
        weight = np.sqrt(_FULL_WEIGHT / np.maximum(error, _FULL_WEIGHT))
    return x
