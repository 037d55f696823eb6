"""What has begun and ended, what runs, and where tensors are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import exp
from typing import Any, NamedTuple, TypeAlias

from parapipe.strategies.work import Job

# Takes the arrays that pieces read and nobody of them makes, by name; returns those that are read
# elsewhere, by name.
Replace: TypeAlias = Callable[[Mapping[str, Any]], Mapping[str, Any]]


@dataclass(slots=True)
class Frames:
    """Numbers of frames, most of them all those below a number."""

    below: int = 0
    others: set[int] = field(default_factory=set)

    def __contains__(self, frame: int) -> bool:
        return frame < self.below or frame in self.others

    def add(self, frame: int) -> None:
        """Add one."""
        if frame == self.below and not self.others:
            self.below += 1
            return
        self.others.add(frame)
        while self.below in self.others:
            self.others.remove(self.below)
            self.below += 1


@dataclass(slots=True)
class Place:
    """Where a tensor of a micro-batch is.

    Parameters
    ----------
    processor, made_s
        Who made it, and when.
    readers
        Tasks that are yet to read it.
    came_s
        By each processor that has asked for it: when it should have it, as predicted then, and when
        it really has it, which a strategy cannot know beforehand.
    """

    processor: int
    made_s: float
    readers: int
    came_s: dict[int, tuple[float, float]] = field(default_factory=dict)


@dataclass(slots=True)
class Pace:
    """What a processor takes for its work, by what was predicted; the past fades.

    Parameters
    ----------
    window_s
        Of predicted seconds of work, after which a time counts e times less.
    """

    window_s: float
    took_s: float = 0.0
    predicted_s: float = 0.0

    def add(self, took_s: float, predicted_s: float) -> None:
        """Count something that has ended."""
        kept = exp(-predicted_s / self.window_s) if self.window_s else 0.0
        self.took_s = kept * self.took_s + took_s
        self.predicted_s = kept * self.predicted_s + predicted_s

    @property
    def factor(self) -> float:
        """How many times longer than predicted it takes; 1 as long as nothing is known."""
        return self.took_s / self.predicted_s if self.predicted_s else 1.0


class Running(NamedTuple):  # one is made for every job
    """What a processor does.

    Parameters
    ----------
    jobs
        Mostly one; several that it was given to do as one.
    begin_s, end_s
        When it should begin, once all that it reads has arrived, and when it should end: as
        predicted when the processor took it.
    replace
        What is called in their place, if anything.
    """

    jobs: tuple[Job, ...]
    begin_s: float
    end_s: float
    replace: Replace | None = None

    @property
    def job(self) -> Job:
        """The only job, or the first."""
        return self.jobs[0]

    @property
    def time_s(self) -> float:
        """What was predicted for them."""
        return self.end_s - self.begin_s
