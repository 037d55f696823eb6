"""Frames that come at random times: the worst case of a model that shares a pattern.

A pattern that repeats as fast as it can has a turn for a model every so many seconds. A frame takes
the first turn that begins after it came and that no earlier frame has. With arrivals of a Poisson
process that is a queue with one server, seen at its turns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

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


def simulate_random_arrivals(
    rate_fps: float, turn_s: float, latency_s: float, seed: int = 0
) -> AtRandom:
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
    wait_s = float(np.quantile((_assigned_turns(np.ceil(came)) - came)[WARM_UP:], 0.99)) * turn_s
    return AtRandom(utilisation, wait_s + latency_s)


def latencies_through_turns(
    rate_fps: float, turns: Sequence[tuple[float, float]], seed: int | Sequence[int]
) -> list[float]:
    """Let frames come at random while turns were taken; return how long each took, in seconds.

    Frames for which no turn is left do not count.

    Parameters
    ----------
    rate_fps
        Frames a second, on average, from the begin of the first turn to that of the last.
    turns
        Begin and end of each, in seconds.
    seed
        Of the arrivals.
    """
    begin_s, end_s = np.array(sorted(turns)).T
    for_s, draw = begin_s[-1] - begin_s[0], np.random.default_rng(seed)
    came_s = begin_s[0] + np.sort(draw.uniform(0.0, for_s, draw.poisson(rate_fps * for_s)))
    turn = _assigned_turns(np.searchsorted(begin_s, came_s))
    served = turn < len(begin_s)
    took_s: list[float] = (end_s[turn[served]] - came_s[served]).tolist()
    return took_s


def _assigned_turns(first: Any) -> Any:  # noqa: ANN401 - arrays of integers or whole numbers
    """Return the turn that each frame takes: the first one, or the next after earlier frames'."""
    number = np.arange(len(first))
    return np.maximum.accumulate(first - number) + number
