"""How fronts and configurations show themselves in Jupyter: a picture and a table, all escaped.

Pictures are images with their data in the address: what stands in one cannot meet ids or styles of
another, or of the notebook.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Collection, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from parapipe.digits import plain
from parapipe.figures.axes import picture
from parapipe.files.titles import model_title
from parapipe.formats.figure_table import DRAWN, SHOWN_FIELDS
from parapipe.formats.flat_front import front_frame
from parapipe.formats.front import ConfigurationRow
from parapipe.formats.shown_rows import shown_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from parapipe.front.configurations import Configurations
    from parapipe.front.planned_configuration import PlannedConfiguration

SHOWN = {
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
    every = _table(rows, medians)
    drawn = _picture(front.plot(), title)
    supposed = f"<p>{escape(document.conversion)}</p>" if document.conversion else ""
    return (
        f"<div><p><b>{escape(title)}</b></p>{supposed}{drawn}{_table(named, medians)}"
        f"<details><summary>all configurations</summary>{every}</details></div>"
    )


def configuration_html(made: PlannedConfiguration, front: Sequence[ConfigurationRow]) -> str:
    """Return the figures of a configuration, and its schedule as a picture."""
    names = f" ({', '.join(made.names)})" if made.names else ""
    title = f"{made.id}{names}: {made.drawing}"
    rows, medians = shown_rows(front)
    row = next(row for row in rows if row.id == made.id)
    marks = {key: "~" if key in medians else "" for key in SHOWN_FIELDS}
    figures = (
        f"{marks['latency_s']}{row.latency_s * 1e3:.1f} ms, "
        f"{marks['throughput_fps']}{row.throughput_fps:.2f} frames/s, "
        f"{marks['energy_j']}{row.energy_j * 1e3:.1f} mJ per frame, {made.kind}"
        + ("; ~: median of draws" if medians else "")
    )
    drawn = _picture(made.plot_gantt(), title)
    return f"<div><p><b>{escape(title)}</b><br>{escape(figures)}</p>{drawn}</div>"


def _table(rows: Sequence[ConfigurationRow], medians: Collection[str]) -> str:
    table = front_frame(rows)[list(SHOWN)]
    for each in DRAWN:
        table[each.field] *= each.scale
    told = {key: ", median of draws" * (key in medians) for key in SHOWN}
    table = table.rename(columns={key: f"{title}{told[key]}" for key, title in SHOWN.items()})
    return str(table.to_html(index=False, float_format=plain))


def _picture(ax: Axes, title: str) -> str:
    data = b64encode(picture(ax)).decode()
    return f'<img alt="{escape(title)}" src="data:image/svg+xml;base64,{data}">'
