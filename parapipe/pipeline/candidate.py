"""A configuration as the search over stages sees it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from parapipe.pipeline.configuration import Configuration
from parapipe.pipeline.mapping import Kind, kind_of
from parapipe.pipeline.stage_table import StageShape, StageTable


@dataclass(frozen=True, slots=True)
class ChosenStage:
    """A stage as the search sees it: its shape, and which of its times and dynamic energies.

    `replicas` is a bit mask of the processors that take turns on it, or 0.
    """

    shape: StageShape
    time_ns: int
    energy_nj: int
    replicas: int = 0

    @property
    def processors(self) -> int:
        """Bit mask of the processors that it uses."""
        return self.replicas or self.shape.processors

    @property
    def every_ns(self) -> int:
        """Least time between its frames."""
        return every_ns(self.time_ns, self.replicas)


def every_ns(time_ns: int, replicas: int) -> int:
    """Return the least time between the frames of a stage, in whole nanoseconds, rounded up."""
    return -(-time_ns // max(1, replicas.bit_count()))


@dataclass(frozen=True, slots=True)
class StageCandidate:
    """A configuration as the search over stages sees it: `configure` makes a `Configuration` of it.

    `energy_nj` holds static energy, too: of the processors used, over one period. `found_in` knows
    the schedules behind it, and `table` is the number of the cost table that they rest on.
    """

    stages: tuple[ChosenStage, ...]
    latency_ns: int
    period_ns: int
    energy_nj: float
    found_in: StageTable = field(repr=False, compare=False)
    table: int = 0

    @property
    def processors(self) -> tuple[int, ...]:
        """Bit mask of the processors that each stage uses."""
        return tuple(stage.processors for stage in self.stages)

    @property
    def kind(self) -> Kind:
        """What the stages amount to."""
        if any(stage.replicas for stage in self.stages):
            return "replicated"
        return kind_of([mask.bit_count() for mask in self.processors])

    @property
    def nano_objectives(self) -> tuple[float, float, float]:
        """What the front trades: latency and period in nanoseconds, energy in nanojoules."""
        return (self.latency_ns, self.period_ns, self.energy_nj)


Candidate: TypeAlias = StageCandidate | Configuration
"""What there is to choose from."""
