"""Rates of a processor, fitted to the times of whole networks with a prior.

A network takes the sum over its operators of

    launch + max(compute / ratio of compute, move / ratio of bandwidth),

with the seconds of `compute` at the processor's peak and of `move` at its bandwidth, and a ratio of
each for every operator class. A handful of times cannot tell so many figures. So each ratio is that
of the prior times what few factors say: one `speed` for all that goes with the processor's clock
and width, one `streaming` for products of a vector with constants, which wait for the memory, one
`launch`, and one for each class. Their logarithms have mean 0 and the deviations below, those of
times a deviation of `NOISE`; what is most likely is found by damped Gauss-Newton steps.

The deviations are the orders of what two boards differ by, no result of a fit: of the classes from
0.05 to 0.3, the errors of networks left out hardly change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from parapipe.platform.fields import OPERATOR_CLASSES

Array = NDArray[np.float64]

PRODUCTS = frozenset({"conv1x1", "conv3x3", "conv-other", "depthwise", "gemm", "matmul"})
STREAMING = frozenset({"gemm"})
"""Classes that wait for the memory, whatever the clock: each constant is multiplied once."""
NOISE = 0.03
SPEED, STREAM, LAUNCH, CLASS = 1.0, 0.3, 0.5, 0.2
_STEPS = 60
_HALVINGS = 12
_CONVERGED = 1e-10


@dataclass(frozen=True, slots=True)
class Part:
    """An operator.

    Parameters
    ----------
    compute_s, move_s
        Seconds at the processor's peak, and at its bandwidth.
    """

    operator_class: str
    compute_s: float
    move_s: float


@dataclass(frozen=True, slots=True)
class NetworkWork:
    """A network on a processor.

    Parameters
    ----------
    fixed_s
        Seconds that no rate changes: casts.
    """

    parts: tuple[Part, ...]
    fixed_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Rates:
    """Nominal figures of a processor.

    Parameters
    ----------
    launch_s
        Seconds to start an operator.
    compute, bandwidth
        Ratios by operator class, of all classes.
    """

    launch_s: float
    compute: Mapping[str, float]
    bandwidth: Mapping[str, float]

    def time_s(self, network: NetworkWork) -> float:
        """Return the seconds of a network."""
        return network.fixed_s + sum(
            self.launch_s
            + max(
                part.compute_s / self.compute[part.operator_class],
                part.move_s / self.bandwidth[part.operator_class],
            )
            for part in network.parts
        )


def fit_rates(networks: Sequence[NetworkWork], times_s: Sequence[float], prior: Rates) -> Rates:
    """Return the most likely rates, given times and a prior.

    Parameters
    ----------
    times_s
        Positive, one for each network.
    """
    target = np.log(np.array(times_s))
    deviation = np.array([SPEED, STREAM, LAUNCH, *[CLASS] * len(OPERATOR_CLASSES)])

    def residuals(factors: Array) -> tuple[Array, Array]:
        rows = [_time_and_slope(network, prior, factors) for network in networks]
        times, slopes = np.array([t for t, _ in rows]), np.array([s for _, s in rows])
        off = np.concatenate([(np.log(times) - target) / NOISE, factors / deviation])
        return off, np.vstack([slopes / times[:, None] / NOISE, np.diag(1 / deviation)])

    factors = np.zeros(len(deviation))
    off, slopes = residuals(factors)
    for _ in range(_STEPS):
        step = np.linalg.lstsq(slopes, -off, rcond=None)[0]
        for halving in range(_HALVINGS):
            nearer = factors + step / 2**halving
            off_there, slopes_there = residuals(nearer)
            if off_there @ off_there < off @ off:
                break
        else:
            break
        moved = float(np.abs(nearer - factors).max())
        factors, off, slopes = nearer, off_there, slopes_there
        if moved < _CONVERGED:
            break
    return _rates_of(prior, factors)


def _rates_of(prior: Rates, factors: Array) -> Rates:
    speed, stream, launch, *own = np.exp(factors).tolist()
    of_class = dict(zip(OPERATOR_CLASSES, own, strict=True))
    compute = {
        name: ratio * speed * (1.0 if name in STREAMING else of_class[name])
        if name in PRODUCTS
        else ratio
        for name, ratio in prior.compute.items()
    }
    bandwidth = {
        name: ratio * stream
        if name in STREAMING
        else ratio
        if name in PRODUCTS
        else ratio * speed * of_class[name]
        for name, ratio in prior.bandwidth.items()
    }
    return Rates(prior.launch_s * launch, compute, bandwidth)


def _time_and_slope(network: NetworkWork, prior: Rates, factors: Array) -> tuple[float, Array]:
    """Return the seconds of a network, and how they change with each factor."""
    rates = _rates_of(prior, factors)
    slope = np.zeros(len(factors))
    time_s = network.fixed_s
    for part in network.parts:
        name = part.operator_class
        compute_s = part.compute_s / rates.compute[name]
        move_s = part.move_s / rates.bandwidth[name]
        time_s += rates.launch_s + max(compute_s, move_s)
        slope[2] += rates.launch_s
        if compute_s >= move_s and name in PRODUCTS:
            slope[0] -= compute_s
            if name not in STREAMING:
                slope[3 + OPERATOR_CLASSES.index(name)] -= compute_s
        elif compute_s < move_s and name in STREAMING:
            slope[1] -= move_s
        elif compute_s < move_s and name not in PRODUCTS:
            slope[0] -= move_s
            slope[3 + OPERATOR_CLASSES.index(name)] -= move_s
    return time_s, slope
