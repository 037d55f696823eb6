"""What `run.py --json` of an exported folder prints, and its figures beside the predicted ones."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal

from pydantic import ConfigDict, Field

from parapipe.documents.comparison import Pair
from parapipe.errors import ComparisonError
from parapipe.files.documents import read_document
from parapipe.files.mistakes import listed
from parapipe.files.record import Figure, PositiveFigure, Row
from parapipe.files.titles import stages_title

SCHEMA: Final = "parapipe/board-run/1"
PACED = 1.005
"""A period this much beyond the time between frames means that frames queue."""


class MeasuredFigure(Row):
    """A figure of a run."""

    predicted: Figure
    """As the plan says."""
    measured: Figure | None
    """None of too few frames."""


class MeasuredSegment(Row):
    """A segment of a run."""

    name: str
    """Its id."""
    predicted_s: Figure
    """As the plan says."""
    measured_s: PositiveFigure
    """Mean over frames, but for the first fifth."""
    elsewhere: dict[str, str] = Field(default_factory=dict)
    """What runs the nodes that its processor does not, by the node's name."""

    def sentence(self) -> str:
        """Say what ran elsewhere than planned, and the time that is lost; empty if nothing did."""
        if not self.elsewhere:
            return ""
        lost_s = self.measured_s - self.predicted_s
        lost = f"{lost_s * 1e3:.2f} ms a frame longer" if lost_s > 0 else "no longer"
        where = " and ".join(dict.fromkeys(self.elsewhere.values()))
        return (
            f"in segment {self.name}, {where} ran {listed(list(self.elsewhere))}; the segment "
            f"took {lost} than predicted"
        )


class BoardRun(Row):
    """A run of an exported folder on its board; what is not compared is not listed."""

    model_config = ConfigDict(extra="ignore")

    schema_version: Literal["parapipe/board-run/1"] = Field(alias="schema")
    """Version of this format."""
    model: str
    """Path as the user gave it, or `zoo:NAME`."""
    platform: str
    """Name of the platform that it was planned for."""
    stages: tuple[tuple[str, ...], ...]
    """Processors of each stage."""
    frames: int
    """How many were run."""
    pace_s: PositiveFigure | None
    """Seconds between frames as they were admitted; none if as fast as they were taken."""
    latency_s: MeasuredFigure
    """One frame through all stages."""
    period_s: MeasuredFigure
    """Time between frames."""
    segments: tuple[MeasuredSegment, ...]
    """Those that differ most come first."""


def read_board_run(path: Path) -> BoardRun:
    """Read what `run.py --json` printed; ComparisonError if it cannot be read or is wrong."""
    return read_document(path, BoardRun, schema=SCHEMA, what="board-run", error=ComparisonError)


def pairs_of_board_run(run: BoardRun) -> Iterator[Pair]:
    """Yield latency, period and the work of each segment, where they compare.

    Frames that queue for admission say nothing of the latency, and frames that come more slowly
    than planned nothing of the period.
    """
    name = (run.model, stages_title(run.stages, ()))
    latency, period, pace_s = run.latency_s, run.period_s, run.pace_s
    queued = pace_s is None or (period.measured or 0.0) > PACED * pace_s
    if latency.measured and not queued:
        yield Pair(*name, "latency", latency.predicted, latency.measured)
    if period.measured and (pace_s is None or pace_s <= PACED * period.predicted):
        yield Pair(*name, "period", period.predicted, period.measured)
    for each in run.segments:
        yield Pair(*name, "work of a segment", each.predicted_s, each.measured_s, each.name)
