"""What a front was made of and with, in the document of front.json."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from parapipe.files.record import Figure, PositiveFigure, Row
from parapipe.pipeline.options import MOST_DRAWS
from parapipe.plan.schema import OperatingPoint
from parapipe.platform.precision import Precision


class Options(Row):
    """What the front was made with."""

    mapper: str
    """Name of the mapper."""
    granularity: Literal["onnx", "fused"]
    """Whether activations are mapped with the operator before them."""
    precision: Precision = "model"
    """What the model is planned in: as it stands, or as after conversion to this type."""
    split: Literal["none", "auto"] = "none"
    """Whether operators may be split over several processors."""
    interleave: Literal["none", "auto"] = "none"
    """Whether processors may take operators of several frames in turn."""
    objectives: tuple[str, ...]
    """What the front trades."""
    max_memory_bytes: float | dict[str, float] | None = None
    """The most memory that a configuration may need at one moment, of all memories together or by
    memory; none if there is no limit."""
    recompute: bool = False
    """Whether tensors may be made again in place of keeping them."""
    schedules: str
    """What kind of schedules the search chose from."""
    proves: tuple[str, ...]
    """What `proven` and `gap` speak of."""
    time_limit_s: PositiveFigure
    """For one subgraph on one set of processors."""
    seed: int
    """Of the solvers and the draws."""
    draws: int = Field(default=0, ge=0, le=MOST_DRAWS)
    """Draws of the costs behind `intervals` and `chances`."""
    robust: float | None = None
    """The quantile of which a front was asked for; none if none was."""
    deterministic: bool
    """Whether mappers counted their work in place of wall time."""
    resolution: Figure
    """Configurations that another one matches to within this share in every objective are left
    out of the front, unless they have a name or are on the paper's front."""
    energy_resolution: Figure | None
    """For every configuration that any schedules make there is one, before such are left out, that
    is larger by at most this share in latency, period and energy each. null if no share is known:
    the mapper's own schedules are all there was to choose from, or time ran out."""
    energy_resolution_asked: Figure | None
    """What that share was to be at most. null if the mapper's own schedules are all there was."""
    energy_timed_out: bool
    """Whether time limits kept that share from being less."""


class Inputs(Row):
    """What the front was made of, as it was given; paths are those of the folder it was made in."""

    platform: str
    """Name of a shipped platform, or path of a file."""
    profiles: tuple[str, ...]
    """CSV files of measured times; none: those beside the platform's file, or the shipped ones."""
    dims: dict[str, int]
    """Values of named dimensions."""
    shapes: dict[str, tuple[int, ...] | tuple[str, tuple[int, ...]]]
    """Shapes of inputs and of results that depend on values, some with a data type before."""
    rules: str | None
    """File of rules for the work of operators."""


class DvfsRow(Row):
    """The operating points of a processor that configurations were searched for at."""

    operating_points: tuple[OperatingPoint, ...]
    """The default one first."""
    listed: int
    """How many the platform lists."""
    switching_up_s: Figure | None
    """Until the clock has a higher point, none if the platform does not say. A processor keeps its
    point while a configuration runs, so that this is in no figure."""
    switching_down_s: Figure | None
    """Until the clock has a lower point."""
