"""The format of sweep.json, published as JSON Schema, and the table over all fronts of a sweep."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from parapipe.errors import SweepError
from parapipe.files.documents import read_document
from parapipe.files.record import PositiveFigure, Row
from parapipe.formats.figure_table import FIGURES
from parapipe.formats.flat_front import front_frame
from parapipe.formats.front import FrontDocument

if TYPE_CHECKING:
    from pandas import DataFrame

SCHEMA: Literal["parapipe/sweep-results/1"] = "parapipe/sweep-results/1"
DOCUMENT = "sweep.json"
RESULTS = "results"
"""Folder of the fronts, each in one of its own."""


class SweepRow(Row):
    """A model on a platform with some options, and what came of it."""

    name: str
    """Of this row alone; its front lies in the folder results/NAME."""
    model: str
    """As it was given: a path or `zoo:NAME`."""
    platform: str
    """As it was given: a path or the name of a shipped one."""
    options: str
    """Name of the options."""
    error: str | None = None
    """Why there is no front; left out if there is one."""
    configurations: int = 0
    """Of the front."""
    latency_s: PositiveFigure | None = None
    """The least latency of the front."""
    throughput_fps: PositiveFigure | None = None
    """The most throughput of the front, in frames per second."""
    energy_j: PositiveFigure | None = None
    """The least energy of the front, in joules per frame."""


class SweepDocument(Row):
    """All results of a sweep, in its order: models, then platforms, then options."""

    schema_version: Literal["parapipe/sweep-results/1"] = Field(alias="schema")
    """Version of this format."""
    parapipe: str
    """Version that wrote it."""
    options: dict[str, dict[str, Any]]
    """Options of `map` that are not at their defaults, by name."""
    results: tuple[SweepRow, ...]
    """One for each model, platform and name of options."""

    def __repr__(self) -> str:
        """Return a line."""
        failed = sum(each.error is not None for each in self.results)
        return f"<sweep: {len(self.results)} results, {failed} of them failed>"


def figures_of(front: FrontDocument) -> dict[str, Any]:
    """Return what a row says of a front."""
    rows = front.configurations
    return {
        "configurations": len(rows),
        **{
            each.field: (min if each.best == "least" else max)(
                getattr(row, each.field) for row in rows
            )
            for each in FIGURES
            if each.field in SweepRow.model_fields
        },
    }


def sweep_frame(fronts: Iterable[tuple[SweepRow, FrontDocument]]) -> DataFrame:
    """Return one row per configuration of all fronts, units in the column names."""
    from pandas import DataFrame, concat

    frames = []
    for row, front in fronts:
        frame = front_frame(front.configurations)
        for place, key in enumerate(("name", "model", "platform", "options")):
            title = "result" if key == "name" else key
            frame.insert(place, title, getattr(row, key))
        frames.append(frame.astype(object))
    if not frames:
        return DataFrame()
    return concat(frames, ignore_index=True).infer_objects()


def load_sweep_document(folder: Path) -> SweepDocument:
    """Read sweep.json; raise a SweepError as `read_document` says."""
    return read_document(
        folder / DOCUMENT, SweepDocument, schema=SCHEMA, what="sweep", error=SweepError
    )
