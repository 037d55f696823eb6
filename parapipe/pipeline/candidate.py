"""A configuration as the search sees it."""

from __future__ import annotations

from dataclasses import dataclass, field

from parapipe.pipeline.mapping import Kind, kind_of
from parapipe.pipeline.stage_table import StageShape, StageTable


@dataclass(frozen=True, slots=True)
class ChosenStage:
    """A stage as the search sees it: its shape, and which of its times and dynamic energies."""

    shape: StageShape
    time_ns: int
    energy_nj: int


@dataclass(frozen=True, slots=True)
class Candidate:
    """A configuration as the search sees it.

    `energy_nj` holds static energy, too: of the processors used, over one period. `found_in` knows
    the schedules behind it, and `cost_table` is the number of the cost table that they rest on.
    """

    stages: tuple[ChosenStage, ...]
    latency_ns: int
    period_ns: int
    energy_nj: float
    found_in: StageTable = field(repr=False, compare=False)
    cost_table: int = 0

    @property
    def processors(self) -> tuple[int, ...]:
        """Bit mask of the processors that each stage uses."""
        return tuple(stage.shape.processors for stage in self.stages)

    @property
    def kind(self) -> Kind:
        """What the stages amount to."""
        return kind_of([mask.bit_count() for mask in self.processors])

    @property
    def objectives(self) -> tuple[float, float, float]:
        """What the front trades: latency, period, energy."""
        return (self.latency_ns, self.period_ns, self.energy_nj)
