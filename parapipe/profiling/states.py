"""How far a processor's state moves its times: its heat, its clock, what else the machine does."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import sqrt
from statistics import NormalDist, fmean
from time import monotonic, sleep

import numpy as np
import numpy.typing as npt

from parapipe.profiling.figures import convolutions, time_s
from parapipe.profiling.providers import CPU_PROVIDER

SAMPLES = 20
BURST_S = 0.1
LEAST_RUNS = 5
COUNT, EXTENT = 4, 28  # convolutions in a row, and what they work on


@dataclass(frozen=True, slots=True)
class StateSpread:
    """Standard deviations of the logarithm of the ratio of times between two moments.

    Parameters
    ----------
    state
        On a processor.
    common
        What of it all processors share.
    """

    state: float
    common: float


STEADY = StateSpread(0.0, 0.0)


def watched_states(processors: Sequence[Sequence[int]], watch_s: float) -> StateSpread:
    """Watch CPU processors for a while; return how far times move between two moments.

    At each of some moments, each processor opens a session of some convolutions anew and runs it
    for a tenth of a second; the median run counts, by its own clock where the processor is one
    core.
    """
    found: list[list[float]] = [[] for _ in processors]
    begin_s = monotonic()
    for number in range(SAMPLES):
        sleep(max(begin_s + number * watch_s / SAMPLES - monotonic(), 0.0))
        for times_s, cores in zip(found, processors, strict=True):
            times_s.append(burst_s(cores))
    return state_spread(found)


def state_spread(times_s: Sequence[Sequence[float]]) -> StateSpread:
    """Return how far times move between two moments.

    Variances are those of medians of absolute deviations, as a disturbed moment says nothing of all
    others; covariances come from variances of sums and differences (Gnanadesikan and Kettenring,
    1972).

    Parameters
    ----------
    times_s
        Of each processor at each moment.
    """
    logarithms = np.log(times_s)
    state = sqrt(2 * fmean(_variance(each) for each in logarithms))
    pairs = [
        (_variance(one + other) - _variance(one - other)) / 4
        for one, other in combinations(logarithms, 2)
    ]
    common = sqrt(2 * max(fmean(pairs), 0.0)) if pairs else 0.0
    return StateSpread(state, min(common, state))


def _variance(values: npt.NDArray[np.float64]) -> float:
    away = np.median(np.abs(values - np.median(values)))
    return float((away / NormalDist().inv_cdf(0.75)) ** 2)


def burst_s(cores: Sequence[int], *, own: bool = True) -> float:
    """Return the median seconds of some convolutions, in a new session on some cores.

    Parameters
    ----------
    own
        Whether a single core counts only what its thread works, not what it waits for others.
    """
    from parapipe.profiling.measure import bound, session, thread_state_kept

    with thread_state_kept():
        os.sched_setaffinity(0, cores)
        text = convolutions(COUNT, EXTENT).SerializeToString()
        opened = session(text, len(cores), CPU_PROVIDER, {})
        binding, end_s = bound(opened), monotonic() + BURST_S
        times_s: list[float] = []
        while len(times_s) < LEAST_RUNS or monotonic() < end_s:
            threads = len(cores) if own else 0
            times_s.append(time_s(lambda: opened.run_with_iobinding(binding), 1, threads))
    return float(np.median(times_s))
