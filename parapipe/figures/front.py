"""The Pareto front as a picture: latency against throughput, energy as colour."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING

from parapipe.documents.figure_table import DRAWN
from parapipe.documents.front_folder import shown_rows
from parapipe.documents.front_schema import ConfigurationRow
from parapipe.figures.axes import LABELS_PT, below, figure_of, own_axes
from parapipe.figures.point_labels import label_points

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
NARROWER = 0.9  # than axes that a layout may still make narrower: a legend
FONT_PT = 7.0  # of the legend
LETTER_PT = 4.2  # width of a letter of the legend, at most on average
LEGEND_PT = 30  # height of the legend, with a line of title
LINE_PT = 8.5  # of each further line


def front_axes(configurations: Sequence[ConfigurationRow]) -> Axes:
    """Return axes on a figure of their own, with room for all that `plot_front` writes."""
    rows, _ = shown_rows(configurations)
    lines = len(rows) - len(_within_reach(rows))
    below_pt = LABELS_PT + LEGEND_PT + LINE_PT * lines
    return own_axes(8, 4.5 + below_pt / 144, beside_in=(0.6, below_pt / 72, 0.0, 0.35))


def plot_front(configurations: Sequence[ConfigurationRow], ax: Axes) -> None:
    """Draw every configuration on `ax`.

    Points on the front are filled and coloured by energy per frame, the others are hollow; the
    marker is the kind. Named ones carry their name, and a line joins the paper's front, of
    latency and throughput alone. Axes are in milliseconds and frames per second; that of latency
    is logarithmic where some take more than `WIDE` times the least. A figure is shown by medians of
    the draws of costs, and its axis says so, if the stated one of a row is outside of its interval.
    """
    configurations, medians = shown_rows(configurations)
    labels = {
        each.field: f"{each.words}{', median of draws' * (each.field in medians)} ({each.unit})"
        for each in DRAWN
    }
    slot = ax.get_position()
    front = [row for row in configurations if row.pareto]
    visible = _within_reach(configurations)
    energies = [row.energy_j * 1e3 for row in front]
    for kind, marker in MARKERS.items():
        filled = [row for row in visible if row.kind == kind and row.pareto]
        if filled:
            energy = min(energies), max(energies), labels["energy_j"]
            _plot_points(ax, filled, marker, kind, energy)
        ax.scatter(
            *_coordinates([row for row in visible if row.kind == kind and not row.pareto]),
            facecolors="none",
            edgecolors="0.35",
            marker=marker,
            zorder=3,
        )
    ax.step(
        *_coordinates(
            _stair_steps(row for row in configurations if medians or row.pareto_latency_throughput)
        ),
        where="post",
        color="0.6",
        linewidth=1,
        zorder=2,
        label="front of latency and throughput",
    )
    ax.margins(y=0.1)  # labels above the uppermost points
    ax.set_xlabel(labels["latency_s"])
    ax.set_ylabel(labels["throughput_fps"])
    ax.grid(visible=True, linewidth=0.3)
    ax.margins(x=0.12, y=0.08)
    _scale_latency_axis(ax, [row.latency_s for row in visible])
    others = [row for row in configurations if row not in visible]
    first = "filled: on the front" + ", by the stated costs" * bool(medians)
    _place_legend(ax, slot, others, first)
    if _fit_labels(ax):
        _place_legend(ax, slot, others, first)
        _fit_labels(ax)
    named = sorted(
        (row for row in visible if row.names), key=lambda row: (row.throughput_fps, -row.latency_s)
    )
    label_points(ax, [(row.names, _point(row)) for row in named], [_point(row) for row in visible])


def _stair_steps(configurations: Iterable[ConfigurationRow]) -> list[ConfigurationRow]:
    """Return those that no other beats in latency and throughput as they are shown."""
    steps: list[ConfigurationRow] = []
    for row in sorted(configurations, key=lambda row: (row.latency_s, -row.throughput_fps)):
        if not steps or row.throughput_fps > steps[-1].throughput_fps:
            steps.append(row)
    return steps


def _within_reach(configurations: Sequence[ConfigurationRow]) -> list[ConfigurationRow]:
    reach_s = MARGIN * max(row.latency_s for row in configurations if row.pareto)
    return [row for row in configurations if row.latency_s <= reach_s]


def _scale_latency_axis(ax: Axes, latencies_s: Sequence[float]) -> None:
    """Give small latencies as much room as great ones, if some are far greater than others."""
    from matplotlib.ticker import LogLocator, NullLocator

    if max(latencies_s) <= WIDE * min(latencies_s):
        return
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter("{x:g}")


def _coordinates(rows: Sequence[ConfigurationRow]) -> tuple[list[float], list[float]]:
    return [row.latency_s * 1e3 for row in rows], [row.throughput_fps for row in rows]


def _point(row: ConfigurationRow) -> tuple[float, float]:
    return row.latency_s * 1e3, row.throughput_fps


def _plot_points(
    ax: Axes,
    rows: Sequence[ConfigurationRow],
    marker: str,
    kind: str,
    energy: tuple[float, float, str],
) -> None:
    least_mj, most_mj, energy_label = energy
    points = ax.scatter(
        *_coordinates(rows),
        c=[row.energy_j * 1e3 for row in rows],
        cmap="plasma",
        vmin=least_mj,
        vmax=most_mj,
        edgecolors="0.35",
        linewidths=0.5,
        marker=marker,
        zorder=3,
        label=kind,
    )
    figure = ax.get_figure()
    if figure is not None and not any(other.get_label() == "<colorbar>" for other in figure.axes):
        figure.colorbar(points, ax=ax, label=energy_label)


def _colour_bars(ax: Axes) -> list[Axes]:
    return [each for each in figure_of(ax).axes if each.get_label() == "<colorbar>"]


def _place_legend(ax: Axes, slot: Bbox, others: Sequence[ConfigurationRow], first: str) -> None:
    """Put the legend under the axes, no wider than they were, and make room for it there."""
    figure = figure_of(ax)
    edge = EDGE_PT * figure.dpi / 72
    bars = _colour_bars(ax)
    alone = len(figure.axes) == 1 + len(bars)
    left = ax.get_position().x0
    width = (slot.x1 - left) * figure.bbox.width
    if alone:
        width = (1 - left) * figure.bbox.width - edge
    if figure.get_layout_engine() is not None:  # what is wider would squeeze the axes
        figure.draw_without_rendering()
        width = NARROWER * ax.get_window_extent().width
    for columns in range(len(MARKERS) + 1, 0, -1):
        title = "\n".join([first, *_describe_hidden(others, width * 72 / figure.dpi)])
        legend = ax.legend(title=title, alignment="left", ncols=columns, **below(ax))
        box = legend.get_window_extent()
        if box.width <= width:
            break
    else:
        small = FONT_PT * width / box.width
        style = below(ax) | {"fontsize": small, "title_fontsize": small}
        legend = ax.legend(title=title, alignment="left", ncols=1, **style)
        box = legend.get_window_extent()
    if figure.get_layout_engine() is not None:
        return
    floor = edge if alone else slot.y0 * figure.bbox.height - LABELS_PT * figure.dpi / 72
    up = (floor - box.y0) / figure.bbox.height
    if up > 0:
        for each in (ax, *bars):
            place = each.get_position()
            each.set_position((place.x0, place.y0 + up, place.width, place.height - up))


def _fit_labels(ax: Axes) -> bool:
    """Write the labels of axes so that they end within the figure; tell whether the axes moved."""
    figure = figure_of(ax)
    if figure.get_layout_engine() is not None:
        figure.draw_without_rendering()  # only then do axes have their place
    box = ax.get_window_extent()
    across, up = (box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2
    wide = 2 * min(across, figure.bbox.width - across)
    high = 2 * min(up, figure.bbox.height - up)
    if ax.yaxis.label.get_window_extent().height > high:
        ax.set_ylabel(ax.get_ylabel().replace(", ", ",\n"))
    for text, side, room in (
        *((each.yaxis.label, "height", high) for each in _colour_bars(ax)),
        (ax.yaxis.label, "height", high),
        (ax.xaxis.label, "width", wide if figure.get_layout_engine() is None else box.width),
        (ax.title, "width", wide),
    ):
        extent = getattr(text.get_window_extent(), side)
        if extent > room:
            text.set_fontsize(text.get_fontsize() * room / extent)
    if figure.get_layout_engine() is not None:
        return False
    written = ax.yaxis.get_tightbbox()
    beyond = EDGE_PT * figure.dpi / 72 - written.x0 if written else 0.0
    if beyond <= 0:
        return False
    place, right = ax.get_position(), beyond / figure.bbox.width
    ax.set_position((place.x0 + right, place.y0, place.width - right, place.height))
    return True


def _describe_hidden(others: Sequence[ConfigurationRow], width_pt: float) -> list[str]:
    """Return what stands in the legend of configurations far beyond the front."""
    lines = []
    for row in others:
        figures = f"{row.latency_s * 1e3:.1f} ms, {row.throughput_fps:.2f} fps"
        text = f"not drawn: {', '.join(row.names)}: {figures}"
        lines += wrap(text, max(20, int(width_pt / LETTER_PT)), subsequent_indent="  ")
    return lines
