"""How fronts and configurations show themselves in Jupyter: a picture and a table, all escaped.

Pictures are images with their data in the address: what stands in one cannot meet ids or styles of
another, or of the notebook.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from parapipe.figures.axes import picture
from parapipe.files.titles import model_title
from parapipe.formats.flat_front import front_frame
from parapipe.formats.front import ConfigurationRow

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from parapipe.front.configurations import Configurations
    from parapipe.front.planned_configuration import PlannedConfiguration

SHOWN = {
    "id": "id",
    "names": "named",
    "stages": "stages [subgraphs]",
    "latency_s": "latency, ms",
    "throughput_fps": "frames/s",
    "energy_j": "mJ per frame",
    "gap": "gap",
}
"""Columns of the table, and their titles."""


def front_html(front: Configurations[Any]) -> str:
    """Return the picture of a front, its named configurations, and all of them behind a fold."""
    document = front.document
    named = [row for row in document.configurations if row.names]
    title = f"{model_title(document.model)} on {document.platform}, {len(front)} configurations"
    every = _table(document.configurations)
    drawn = _picture(front.plot(), title)
    supposed = f"<p>{escape(document.conversion)}</p>" if document.conversion else ""
    return (
        f"<div><p><b>{escape(title)}</b></p>{supposed}{drawn}{_table(named)}"
        f"<details><summary>all configurations</summary>{every}</details></div>"
    )


def configuration_html(made: PlannedConfiguration) -> str:
    """Return the figures of a configuration, and its schedule as a picture."""
    names = f" ({', '.join(made.names)})" if made.names else ""
    title = f"{made.id}{names}: {made.drawing}"
    figures = (
        f"{made.latency_s * 1e3:.1f} ms, {made.throughput_fps:.2f} frames/s, "
        f"{made.energy_j * 1e3:.1f} mJ per frame, {made.kind}"
    )
    drawn = _picture(made.plot_gantt(), title)
    return f"<div><p><b>{escape(title)}</b><br>{escape(figures)}</p>{drawn}</div>"


def _table(rows: Sequence[ConfigurationRow]) -> str:
    table = front_frame(rows)[list(SHOWN)].rename(columns=SHOWN)
    for scaled in ("latency, ms", "mJ per frame"):
        table[scaled] *= 1e3
    return str(table.to_html(index=False, float_format="{:.4g}".format))


def _picture(ax: Axes, title: str) -> str:
    data = b64encode(picture(ax)).decode()
    return f'<img alt="{escape(title)}" src="data:image/svg+xml;base64,{data}">'
