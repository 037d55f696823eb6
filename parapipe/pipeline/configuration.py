"""A configuration: a whole mapping, stage by stage, with its latency, period and energy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["sequential", "pipe-only", "para-only", "hybrid"]


def kind_of(stages: int, parallel: bool) -> Kind:
    """Return the kind, given the number of stages and whether one uses several processors."""
    if stages == 1:
        return "para-only" if parallel else "sequential"
    return "hybrid" if parallel else "pipe-only"


@dataclass(frozen=True, slots=True)
class Placement:
    """Where and when one operator runs within its stage.

    Parameters
    ----------
    operator
        Index into the graph's operators.
    processor
        Index into the platform's processors.
    start_s, end_s
        Seconds from the start of the stage.
    """

    operator: int
    processor: int
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class Move:
    """A transfer that keeps something busy.

    Parameters
    ----------
    tensor
        Name of the tensor.
    source, target
        Processors it goes from and to, by their indices.
    resource
        What it keeps busy: a processor's index, or a shared link's behind those.
    start_s, end_s
        Seconds from the start of the receiving stage.
    """

    tensor: str
    source: int
    target: int
    resource: int
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class Stage:
    """A contiguous run of units on processors that no other stage uses.

    Parameters
    ----------
    processors
        Platform indices of the processors that run at least one operator, ascending.
    first_unit, last_unit
        Range of the partition's units, both inclusive.
    placements
        All operators of the stage in order of start.
    time_s
        Seconds of the stage, the transfer from the previous stage included.
    moves
        Transfers to its processors that keep something busy, in order of start.
    """

    processors: tuple[int, ...]
    first_unit: int
    last_unit: int
    placements: tuple[Placement, ...]
    time_s: float
    moves: tuple[Move, ...] = ()


@dataclass(frozen=True, slots=True)
class Configuration:
    """Stages in order, and what they give.

    Parameters
    ----------
    latency_s
        One frame through all stages: the sum of stage times.
    period_s
        Seconds between frames as the paper defines them: the longest stage.
    sustained_period_s
        What an executor with one thread per processor and two slots per channel reaches.
    input_s, output_s
        Seconds to load a frame on the first stage's processor and to read the result on the
        last one's; in none of the figures above.
    energy_j
        Joules of the used processors per frame, equation (8) times the period.
    board_energy_j
        The same with the board's idle power.
    proven, gap
        Whether every schedule's objective is proven, and the largest of their gaps.
    """

    stages: tuple[Stage, ...]
    latency_s: float
    period_s: float
    sustained_period_s: float
    input_s: float
    output_s: float
    energy_j: float
    board_energy_j: float
    proven: bool
    gap: float

    @property
    def kind(self) -> Kind:
        """What the stages amount to."""
        parallel = any(len(stage.processors) > 1 for stage in self.stages)
        return kind_of(len(self.stages), parallel)

    @property
    def throughput_fps(self) -> float:
        """Frames per second: the reciprocal of the period."""
        return 1 / self.period_s

    @property
    def frames_per_joule(self) -> float:
        """Frames per joule of the processors."""
        return 1 / self.energy_j
