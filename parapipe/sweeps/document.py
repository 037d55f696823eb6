"""The format of sweep.json, published as JSON Schema; the page and the file of a sweep."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from parapipe.documents.figure_table import FIGURES, choice_figures, page_entries
from parapipe.documents.front_folder import front_frame
from parapipe.documents.front_schema import FrontDocument
from parapipe.errors import ArgumentError, SweepError
from parapipe.files.documents import read_document
from parapipe.files.mistakes import Mistake, did_you_mean
from parapipe.files.record import PositiveFigure, Row
from parapipe.files.yaml_file import FileKind, WholeFile, parse_as, read_yaml_text
from parapipe.platform.fields import Many, Name, Text
from parapipe.search.options import MapOptions, option_names

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


SCRIPTS = ("elements.js", "numbers.js", "sweep.js")


def sweep_page(document: SweepDocument, fronts: Sequence[tuple[SweepRow, FrontDocument]]) -> bytes:
    """Return index.html: which board for a model, and which model on a board, at what demands.

    It is made as the report of a front is: one file that needs no network, names are data only.
    """
    from parapipe.figures.page import filled_page  # takes time to load

    figures = choice_figures()
    columns = ("id", "drawing", *(each.field for each in figures))
    data = {
        "parapipe": document.parapipe,
        "results": [row.to_json() for row in document.results],
        "figures": page_entries(figures),
        "columns": columns,
        "configurations": {
            row.name: [[getattr(each, name) for name in columns] for each in front.configurations]
            for row, front in fronts
        },
    }
    count = len(document.results)
    return filled_page("sweep.html", SCRIPTS, f"Sweep of {count} results", data)


def load_sweep_document(folder: Path) -> SweepDocument:
    """Read sweep.json; raise a SweepError as `read_document` says."""
    return read_document(
        folder / DOCUMENT, SweepDocument, schema=SCHEMA, what="sweep", error=SweepError
    )


DEFAULT = "default"
"""Name of the options of a sweep that names none."""
_KIND = FileKind("sweep file", SweepError, "give the path of a YAML file, as docs/sweep.md shows")


class SweepFile(WholeFile):
    """A sweep as it is written down.

    Parameters
    ----------
    models, platforms
        As for `map`; paths are relative to the folder of the file.
    options
        Options of `map` by their names in Python, such as `time_limit_s`, under a name for them.
        Each model is mapped on each platform with each of them.
    """

    format: Literal["parapipe/sweep/1"] = Field(alias="schema")
    models: Annotated[Many[Text], Field(min_length=1)]
    platforms: Annotated[Many[Text], Field(min_length=1)]
    options: dict[Name, dict[str, Any]] = Field(default={DEFAULT: {}}, min_length=1)

    @classmethod
    def contradictions(cls, raw: object) -> Iterable[Mistake]:
        """Find what is wrong with the options of `map`."""
        options = raw.get("options") if isinstance(raw, dict) else None
        for name, values in options.items() if isinstance(options, dict) else ():
            if isinstance(values, dict):
                yield from _mistakes_of_options(str(name), values)


def _mistakes_of_options(name: str, values: Mapping[str, Any]) -> Iterable[Mistake]:
    names = option_names(lambda option: option.changes_results)
    unknown = [each for each in values if each not in names]
    for each in unknown:
        text = f"is no option of map that a sweep takes{did_you_mean(str(each), names)}"
        yield Mistake(("options", name, each), text)
    try:
        MapOptions(**{each: value for each, value in values.items() if each not in unknown})
    except ArgumentError as error:
        yield Mistake(("options", name), error.complaint)


def load_sweep_file(path: Path) -> SweepFile:
    """Read a sweep file.

    Raises
    ------
    SweepError
        It cannot be read or is wrong; then `mistakes` holds every mistake with its line.
    """
    return parse_as(SweepFile, read_yaml_text(path, _KIND), str(path), _KIND)
