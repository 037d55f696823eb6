"""Frames that come at random times: the worst case of a model that shares a pattern.

A pattern that repeats as fast as it can has a turn for a model every so many seconds. A frame takes
the first turn that begins after it came and that no earlier frame has. With arrivals of a Poisson
process that is a queue with one server, seen at its turns.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

FRAMES = 100_000
WARM_UP = 1_000


@dataclass(frozen=True, slots=True)
class AtRandom:
    """What frames get that come at random, at the rate that is asked on average.

    Parameters
    ----------
    utilisation
        Share of the turns that frames take.
    p99_s
        99 of 100 frames are through within this time after they came; None if there are as many
        frames as turns, or more: then more and more wait.
    """

    utilisation: float
    p99_s: float | None


def at_random(rate_fps: float, turn_s: float, latency_s: float, seed: int = 0) -> AtRandom:
    """Simulate frames that come at random.

    Parameters
    ----------
    rate_fps
        Frames a second, on average.
    turn_s
        Time between two turns.
    latency_s
        From the begin of a turn to the end of its frame.
    seed
        Of the arrivals.
    """
    utilisation = rate_fps * turn_s
    if utilisation >= 1:
        return AtRandom(utilisation, None)
    draw = np.random.default_rng(seed)
    came = np.cumsum(draw.exponential(1 / utilisation, FRAMES))  # in turns
    number = np.arange(FRAMES)
    turn = np.maximum.accumulate(np.ceil(came) - number) + number
    wait_s = float(np.quantile((turn - came)[WARM_UP:], 0.99)) * turn_s
    return AtRandom(utilisation, wait_s + latency_s)
