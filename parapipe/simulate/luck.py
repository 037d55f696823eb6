"""Chance in a simulation: times that vary, and processors that other programs use too."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import log, sqrt
from random import Random

DISTURBED = 2.0  # times as long, as with half of a processor


class Jitter:
    """Factors of one task's times, frame after frame.

    They are log-normal: positive, of mean 1 and the standard deviation asked for. A task's factors
    depend on its name and the seed alone, so runs that differ in queues or admission meet the same.
    """

    def __init__(self, share: float, seed: int, name: str) -> None:
        self._sigma = sqrt(log(1 + share * share))
        self._draw = _Drawn(f"{seed} {name}", self._factor)

    def of_frame(self, frame: int) -> float:
        """Return the factor of a frame."""
        return self._draw.of_frame(frame)

    def _factor(self, random: Random) -> float:
        return random.lognormvariate(-self._sigma * self._sigma / 2, self._sigma)


class _Drawn:
    """Numbers by frame that do not depend on when they are asked for."""

    def __init__(self, seed: str, draw: Callable[[Random], float]) -> None:
        self._random, self._draw = Random(seed), draw
        self._drawn: list[float] = []

    def of_frame(self, frame: int) -> float:
        while len(self._drawn) <= frame:
            self._drawn.append(self._draw(self._random))
        return self._drawn[frame]


@dataclass(frozen=True, slots=True)
class Luck:
    """What times are multiplied by.

    Parameters
    ----------
    jitter
        Standard deviation of the times of tasks and transfers, as a share of them.
    disturbed
        By a processor's name: share of the frames, drawn at random, in which another program takes
        half of it, so that its tasks take twice as long.
    seed
        Of both.
    """

    jitter: float = 0.0
    disturbed: Mapping[str, float] = field(default_factory=dict)
    seed: int = 0
    _jitters: dict[str, Jitter] = field(default_factory=dict, repr=False)
    _programs: dict[str, _Drawn] = field(default_factory=dict, repr=False)

    @property
    def is_none(self) -> bool:
        """Whether all takes what was predicted."""
        return not self.jitter and not self.disturbed

    def of(self, name: str, frame: int) -> float:
        """Return the factor of what varies, by a name that nothing else has."""
        if not self.jitter:
            return 1.0
        if name not in self._jitters:
            self._jitters[name] = Jitter(self.jitter, self.seed, name)
        return self._jitters[name].of_frame(frame)

    def of_processor(self, processor: str, frame: int) -> float:
        """Return the factor of all that a processor does for a frame."""
        share = self.disturbed.get(processor, 0.0)
        if not share:
            return 1.0
        if processor not in self._programs:
            seed = f"{self.seed} other programs on {processor}"
            self._programs[processor] = _Drawn(seed, lambda random: random.random())
        return DISTURBED if self._programs[processor].of_frame(frame) < share else 1.0
