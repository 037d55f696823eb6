"""The pattern of several models: how many frames of each, in how long."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from parapipe.errors import ArgumentError

MOST_FRAMES = 24  # in a pattern
RESOLUTION = 0.05  # share by which a pattern may give more frames than are asked


@dataclass(frozen=True, slots=True)
class Pattern:
    """Frames of each model in one repeating pattern.

    Parameters
    ----------
    frames
        Of each model.
    period_s
        Seconds in which they come: the common period of the rates.
    excess
        Share by which a model gets more frames than are asked, at most.
    """

    frames: tuple[int, ...]
    period_s: float
    excess: float


def pattern(rates_fps: Sequence[float]) -> Pattern:
    """Return the shortest pattern that gives each model its rate, or at most 5 % more.

    The candidates are all patterns of at most `MOST_FRAMES` frames in which the rate of some model
    is met exactly; if none is within `RESOLUTION`, the one that gives least too much.

    Raises
    ------
    ArgumentError
        If one rate is so much greater than another that no pattern is short enough.
    """
    exact = [Fraction(rate).limit_denominator(10**9) for rate in rates_fps]
    found: list[tuple[bool, Fraction, int, tuple[int, ...], Fraction]] = []
    for rate in exact:
        for count in range(1, MOST_FRAMES + 1):
            period = count / rate
            frames = tuple(ceil(each * period) for each in exact)
            if sum(frames) > MOST_FRAMES:
                break
            excess = max(n / (each * period) for n, each in zip(frames, exact, strict=True)) - 1
            near = excess <= RESOLUTION
            found.append((not near, Fraction(0) if near else excess, sum(frames), frames, period))
    if not found:
        raise ArgumentError(
            f"rates of {', '.join(f'{rate:g}' for rate in rates_fps)} frames/s need more than "
            f"{MOST_FRAMES} frames in a pattern: ask for rates that are nearer to each other"
        )
    *_, frames, period = min(found)
    excess = max(n / (each * period) for n, each in zip(frames, exact, strict=True)) - 1
    return Pattern(frames, float(period), float(excess))
