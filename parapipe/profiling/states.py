"""How far a processor's state moves its times: its heat, its clock, what else the machine does."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from math import log, sqrt
from statistics import fmean, variance
from time import monotonic, sleep

import numpy as np

from parapipe.profiling.figures import convolutions, time_s
from parapipe.profiling.providers import CPU_PROVIDER

SAMPLES = 20
BURST_S = 0.1
LEAST_RUNS = 5
COUNT, EXTENT = 4, 28  # convolutions in a row, and what they work on


def state_spread(processors: Sequence[Sequence[int]], watch_s: float) -> float:
    """Watch CPU processors for a while; return how far times move between two moments.

    At each of some moments, each processor opens a session of some convolutions anew and runs it
    for a tenth of a second; the median run counts, by its own clock where the processor is one
    core. Returned is the root mean square of the logarithm of the ratio between two moments, of
    all processors together.
    """
    found: Mapping[int, list[float]] = {p: [] for p in range(len(processors))}
    begin_s = monotonic()
    for number in range(SAMPLES):
        sleep(max(begin_s + number * watch_s / SAMPLES - monotonic(), 0.0))
        for p, cores in enumerate(processors):
            found[p].append(log(burst_s(cores)))
    return sqrt(2 * fmean(variance(each) for each in found.values()))


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
