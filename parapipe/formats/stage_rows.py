"""A stage of a configuration and its processors, as front.json has them."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from parapipe.files.record import Figure, Row
from parapipe.plan.schema import OperatingPoint


class ProcessorRow(Row):
    """A processor of a stage, and what it does for a frame."""

    name: str
    """Name, as in the platform."""
    operating_point: OperatingPoint
    """The point that the figures hold for."""
    busy_s: Figure
    """Seconds of a frame in which it runs operators."""
    transfer_s: Figure
    """Seconds of a frame in which it sends or receives, whatever stage that is for."""
    dynamic_energy_j: Figure
    """Joules of its operators per frame: αV²f·U of equation (8), times their seconds."""
    static_power_w: Figure
    """Watts as long as the configuration uses it: βV of equation (8)."""


class StageRow(Row):
    """A stage of a configuration."""

    processors: Annotated[tuple[ProcessorRow, ...], Field(min_length=1)]
    """Those that run at least one operator, in the platform's order."""
    first_operator: str
    """Id of its first operator in the stored order."""
    last_operator: str
    """Id of its last operator in the stored order."""
    subgraphs: tuple[int, ...]
    """Numbers, from 1, of the subgraphs it runs, wholly or in part."""
    time_s: Figure
    """One frame, the transfer from the previous stage included. Where the period is less than that
    of a stage, seconds from the start of a period to its last end."""
    in_turn: bool = False
    """Whether its processors take turns on frames, each for its own; they are identical then, and
    each one's figures are its share."""
