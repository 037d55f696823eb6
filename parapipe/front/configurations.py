"""The configurations of a front: by id, name or place, as tables and as pictures.

Pictures are images with their data in the address: what stands in one cannot meet ids or styles of
another, or of the notebook.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Collection, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from pydantic import PrivateAttr

from parapipe.digits import plain
from parapipe.documents.figure_table import DRAWN, SHOWN_FIELDS
from parapipe.documents.front_folder import FrontFolder, front_frame, shown_rows
from parapipe.documents.front_schema import ConfigurationRow, FrontDocument
from parapipe.errors import NoConfigurationError
from parapipe.figures.axes import in_lines, own_axes, picture, write_picture
from parapipe.figures.palette import Look, looks
from parapipe.files.atomic import write_atomically
from parapipe.files.titles import model_title
from parapipe.plan.schema import Plan
from parapipe.uncertainty.samples import SampledFront

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame


COLUMNS = {
    "id": "id",
    "names": "named",
    "stages": "stages [subgraphs]",
    **{each.field: each.heading for each in DRAWN},
    "gap": "gap",
}
"""Columns of the table, and their titles."""


def front_html(front: Configurations[Any]) -> str:
    """Return the picture of a front, its named configurations, and all of them behind a fold."""
    document = front.document
    rows, medians = shown_rows(document.configurations)
    named = [row for row in rows if row.names]
    title = f"{model_title(document.model)} on {document.platform}, {len(front)} configurations"
    all_rows = _table_html(rows, medians)
    picture_html = _picture_html(front.plot(), title)
    conversion = f"<p>{escape(document.conversion)}</p>" if document.conversion else ""
    return (
        f"<div><p><b>{escape(title)}</b></p>{conversion}{picture_html}{_table_html(named, medians)}"
        f"<details><summary>all configurations</summary>{all_rows}</details></div>"
    )


def configuration_html(
    configuration: PlannedConfiguration, front: Sequence[ConfigurationRow]
) -> str:
    """Return the figures of a configuration, and its schedule as a picture."""
    names = f" ({', '.join(configuration.names)})" if configuration.names else ""
    title = f"{configuration.id}{names}: {configuration.drawing}"
    rows, medians = shown_rows(front)
    row = next(row for row in rows if row.id == configuration.id)
    marks = {key: "~" if key in medians else "" for key in SHOWN_FIELDS}
    figures = (
        f"{marks['latency_s']}{row.latency_s * 1e3:.1f} ms, "
        f"{marks['throughput_fps']}{row.throughput_fps:.2f} frames/s, "
        f"{marks['energy_j']}{row.energy_j * 1e3:.1f} mJ per frame, {configuration.kind}"
        + ("; ~: median of draws" if medians else "")
    )
    picture_html = _picture_html(configuration.plot_gantt(), title)
    return f"<div><p><b>{escape(title)}</b><br>{escape(figures)}</p>{picture_html}</div>"


def _table_html(rows: Sequence[ConfigurationRow], medians: Collection[str]) -> str:
    table = front_frame(rows)[list(COLUMNS)]
    for each in DRAWN:
        table[each.field] *= each.scale
    suffix = {key: ", median of draws" * (key in medians) for key in COLUMNS}
    table = table.rename(columns={key: f"{title}{suffix[key]}" for key, title in COLUMNS.items()})
    return str(table.to_html(index=False, float_format=plain))


def _picture_html(ax: Axes, title: str) -> str:
    data = b64encode(picture(ax)).decode()
    return f'<img alt="{escape(title)}" src="data:image/svg+xml;base64,{data}">'


TITLE_PT = 10.0


class PlannedConfiguration(ConfigurationRow):
    """A configuration with the figures that front.json holds, its plan and its pictures."""

    _front: FrontDocument = PrivateAttr()

    def __init__(self, row: ConfigurationRow, front: FrontDocument) -> None:
        super().__init__(**dict(row))
        self._front = front

    def plan(self) -> Plan:
        """Return the plan; it has passed its verifier."""
        raise NotImplementedError

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw its schedule, as `plot_gantt` does."""
        return self.plot_gantt(ax)

    def plot_gantt(self, ax: Axes | None = None) -> Axes:
        """Draw its schedule on `ax`, or on a figure of its own: operators, transfers, waiting."""
        from parapipe.figures.gantt import plot_gantt

        ax = self._set_title(ax or own_axes(9, 2.6), pad=16)
        plot_gantt(self.plan(), self._processor_looks(), ax)
        return ax

    def plot_utilisation(self, ax: Axes | None = None) -> Axes:
        """Draw on `ax`, or on a figure of its own, how much of a period processors work."""
        from parapipe.figures.bar_charts import plot_utilisation

        ax = self._set_title(ax or own_axes(7, 2.2))
        plot_utilisation(self, self._processor_looks(), ax)
        return ax

    def plot_network(self, ax: Axes | None = None) -> Axes:
        """Draw on `ax`, or on a figure of its own, the network as it is cut and placed."""
        from parapipe.figures.network import plot_network

        ax = self._set_title(ax or own_axes(9, 4))
        members = [[each.id for each in inside] for inside in self._front.members]
        plot_network(self.plan(), members, self._processor_looks(), ax)
        return ax

    def _set_title(self, ax: Axes, pad: float | None = None) -> Axes:
        title = f"{model_title(self._front.model)} on {self._front.platform}: {self.drawing}"
        lines = in_lines(title, ax, TITLE_PT)
        ax.set_title(lines, fontsize=TITLE_PT, pad=pad, parse_math=False)
        return ax

    def _processor_looks(self) -> Mapping[str, Look]:
        return looks(processor.name for processor in self._front.processors)

    def _repr_html_(self) -> str:
        return configuration_html(self, self._front.configurations)


Row = TypeVar("Row", bound=PlannedConfiguration)


class Configurations(Generic[Row]):
    """What a front in memory and one read from a folder have in common."""

    __slots__ = ()

    document: FrontDocument
    """What front.json holds."""
    configurations: tuple[Row, ...]
    """By ascending latency, as in the document."""

    @property
    def drawn(self) -> SampledFront | None:
        """What the configurations take in draws of the costs, if there are any."""
        raise NotImplementedError

    def content(self) -> FrontFolder:
        """Return the document with the plan of each configuration, the solve log and the draws."""
        raise NotImplementedError

    def __len__(self) -> int:
        return len(self.configurations)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.configurations)

    @overload
    def __getitem__(self, key: str | int) -> Row: ...
    @overload
    def __getitem__(self, key: slice) -> tuple[Row, ...]: ...
    def __getitem__(self, key: str | int | slice) -> Row | tuple[Row, ...]:
        """Return the configuration with an id ("c07"), a name ("hybrid-T") or a place; or a slice.

        Raises
        ------
        NoConfigurationError
            There is none.
        """
        if isinstance(key, slice):
            return self.configurations[key]
        return self.configurations[self.document.place(key)]

    def __contains__(self, key: object) -> bool:
        """Tell whether there is a configuration with this id or name, or whether it is one."""
        if not isinstance(key, str):
            return any(each == key for each in self.configurations)
        try:
            self.document.place(key)
        except NoConfigurationError:
            return False
        return True

    def to_json(self) -> dict[str, Any]:
        """Return the document of front.json as plain data."""
        return self.document.to_json()

    def to_pandas(self) -> DataFrame:
        """Return one row per configuration, units in the column names."""
        return front_frame(self.document.configurations)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the front on `ax`, or on a figure of its own."""
        from parapipe.figures.front import front_axes, plot_front

        rows = self.document.configurations
        ax = self._set_title(ax or front_axes(rows))
        plot_front(rows, ax)
        return ax

    def plot_energy(self, ax: Axes | None = None, *, reference: str = "sequential") -> Axes:
        """Draw on `ax`, or on a figure of its own, the energy of configurations that have a name.

        Parameters
        ----------
        reference
            Id or name of the configuration whose energy is 1.
        """
        from parapipe.figures.bar_charts import plot_energy

        ax = self._set_title(ax or own_axes(8, 4.5))
        by_processor = looks(processor.name for processor in self.document.processors)
        plot_energy(self.document, by_processor, ax, reference=reference)
        return ax

    def write_figure(self, path: str | Path) -> None:
        """Draw the front into a file: PNG, PDF or SVG, as its name ends.

        Raises
        ------
        OutputError
            The name ends in none of them, or the file cannot be written.
        """
        write_picture(self.plot(), Path(path))

    def write_report(self, path: str | Path) -> None:
        """Write the front as one HTML page that needs no network.

        Raises
        ------
        OutputError
            The file cannot be written.
        """
        from parapipe.figures.page import page

        write_atomically(Path(path), page(self.content()))

    def _set_title(self, ax: Axes) -> Axes:
        title = f"{model_title(self.document.model)} on {self.document.platform}"
        ax.set_title(title, parse_math=False)
        return ax

    def _repr_html_(self) -> str:
        return front_html(self)
