"""The Pareto front as a picture: latency against throughput, energy as colour."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap
from typing import TYPE_CHECKING

from parapipe.figures.axes import LABELS_PT, below, own_axes
from parapipe.figures.free_places import label_points
from parapipe.formats.front import ConfigurationRow

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.transforms import Bbox

MARKERS = {
    "sequential": "D",
    "pipe-only": "^",
    "para-only": "s",
    "hybrid": "o",
    "interleaved": "v",
    "replicated": "P",
}
WIDE = 5  # times the least latency: where others are drawn beyond, the axis is logarithmic
MARGIN = 1.15  # a named configuration this much beyond the front's range is named, not drawn
EDGE_PT = 4  # between the legend and the edge of the figure
LETTER_PT = 4.2  # width of a letter of the legend, at most on average
LEGEND_PT = 30  # height of the legend, with a line of title
LINE_PT = 8.5  # of each further line


def front_axes(configurations: Sequence[ConfigurationRow]) -> Axes:
    """Return axes on a figure of their own, with room for all that `plot_front` writes."""
    lines = len(configurations) - len(_drawn(configurations))
    below_pt = LABELS_PT + LEGEND_PT + LINE_PT * lines
    return own_axes(8, 4.5 + below_pt / 144, beside_in=(0.6, below_pt / 72, 0.0, 0.35))


def plot_front(configurations: Sequence[ConfigurationRow], ax: Axes) -> None:
    """Draw every configuration on `ax`.

    Points on the front are filled and coloured by energy per frame, the others are hollow; the
    marker is the kind. Named ones carry their name, and a line joins the paper's front, of
    latency and throughput alone. Axes are in milliseconds and frames per second; that of latency
    is logarithmic where some take more than `WIDE` times the least.
    """
    slot = ax.get_position()
    front = [row for row in configurations if row.pareto]
    drawn = _drawn(configurations)
    energies = [row.energy_j * 1e3 for row in front]
    for kind, marker in MARKERS.items():
        filled = [row for row in drawn if row.kind == kind and row.pareto]
        if filled:
            _points(ax, filled, marker, kind, (min(energies), max(energies)))
        ax.scatter(
            *_places([row for row in drawn if row.kind == kind and not row.pareto]),
            facecolors="none",
            edgecolors="0.35",
            marker=marker,
            zorder=3,
        )
    stairs = [row for row in configurations if row.pareto_latency_throughput]
    ax.step(
        *_places(sorted(stairs, key=lambda row: row.latency_s)),
        where="post",
        color="0.6",
        linewidth=1,
        zorder=2,
        label="front of latency and throughput",
    )
    ax.margins(y=0.1)  # labels above the uppermost points
    ax.set_xlabel("latency (ms)")
    ax.set_ylabel("throughput (frames/s)")
    ax.grid(visible=True, linewidth=0.3)
    ax.margins(x=0.12, y=0.08)
    _spread(ax, [row.latency_s for row in drawn])
    others = [row for row in configurations if row not in drawn]
    _legend(ax, slot, others)
    named = sorted(
        (row for row in drawn if row.names), key=lambda row: (row.throughput_fps, -row.latency_s)
    )
    label_points(
        ax,
        [(row.names, _point(row)) for row in named],
        [_point(row) for row in drawn],
    )


def _drawn(configurations: Sequence[ConfigurationRow]) -> list[ConfigurationRow]:
    reach_s = MARGIN * max(row.latency_s for row in configurations if row.pareto)
    return [row for row in configurations if row.latency_s <= reach_s]


def _spread(ax: Axes, latencies_s: Sequence[float]) -> None:
    """Give small latencies as much room as great ones, if some are far greater than others."""
    from matplotlib.ticker import LogLocator, NullLocator

    if max(latencies_s) <= WIDE * min(latencies_s):
        return
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter("{x:g}")


def _places(rows: Sequence[ConfigurationRow]) -> tuple[list[float], list[float]]:
    return [row.latency_s * 1e3 for row in rows], [row.throughput_fps for row in rows]


def _point(row: ConfigurationRow) -> tuple[float, float]:
    return row.latency_s * 1e3, row.throughput_fps


def _points(
    ax: Axes,
    rows: Sequence[ConfigurationRow],
    marker: str,
    kind: str,
    energy_mj: tuple[float, float],
) -> None:
    points = ax.scatter(
        *_places(rows),
        c=[row.energy_j * 1e3 for row in rows],
        cmap="plasma",
        vmin=energy_mj[0],
        vmax=energy_mj[1],
        edgecolors="0.35",
        linewidths=0.5,
        marker=marker,
        zorder=3,
        label=kind,
    )
    figure = ax.get_figure()
    if figure is not None and not any(other.get_label() == "<colorbar>" for other in figure.axes):
        figure.colorbar(points, ax=ax, label="energy per frame (mJ)")


def _legend(ax: Axes, slot: Bbox, others: Sequence[ConfigurationRow]) -> None:
    """Put the legend under the axes, no wider than they were, and make room for it there."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    width = slot.width * figure.bbox.width
    for columns in range(len(MARKERS) + 1, 0, -1):
        title = _title(others, width * 72 / figure.dpi)
        legend = ax.legend(title=title, alignment="left", ncols=columns, **below(ax))
        box = legend.get_window_extent()
        if box.width <= width:
            break
    if figure.get_layout_engine() is not None:
        return
    alone = all(each is ax or each.get_label() == "<colorbar>" for each in figure.axes)
    floor = (
        EDGE_PT * figure.dpi / 72
        if alone
        else slot.y0 * figure.bbox.height - LABELS_PT * figure.dpi / 72
    )
    up = (floor - box.y0) / figure.bbox.height
    if up > 0:
        for each in (ax, *(each for each in figure.axes if each.get_label() == "<colorbar>")):
            place = each.get_position()
            each.set_position((place.x0, place.y0 + up, place.width, place.height - up))


def _title(others: Sequence[ConfigurationRow], width_pt: float) -> str:
    """Return what stands over the legend: configurations far beyond the front too."""
    lines = ["filled: on the front"]
    for row in others:
        told = f"{row.latency_s * 1e3:.1f} ms, {row.throughput_fps:.2f} fps"
        text = f"not drawn: {', '.join(row.names)}: {told}"
        lines += wrap(text, max(20, int(width_pt / LETTER_PT)), subsequent_indent="  ")
    return "\n".join(lines)
