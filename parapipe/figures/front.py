"""The Pareto front as a picture: latency against throughput, energy as colour."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from parapipe.figures.axes import LABELS_PT, below, own_axes
from parapipe.formats.front import ConfigurationRow

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
LABEL_GAP = 11  # points between labels that would overlap
LABEL_REACH = 110  # points across that a label may cover
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
    ax.legend(title=_title(others), alignment="left", ncols=len(MARKERS) + 1, **below(ax))
    _labels(ax, [row for row in drawn if row.names])


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


def _labels(ax: Axes, rows: Sequence[ConfigurationRow]) -> None:
    """Write names beside their points, pushed apart where they would overlap."""
    scale = 72 / ax.figure.dpi
    placed: list[tuple[float, float]] = []
    for row in sorted(rows, key=lambda row: (row.throughput_fps, -row.latency_s)):
        point = (row.latency_s * 1e3, row.throughput_fps)
        across, up = (value * scale for value in ax.transData.transform(point))
        level = up + 4
        for other_across, other_level in placed:
            if abs(across - other_across) < LABEL_REACH and abs(level - other_level) < LABEL_GAP:
                level = other_level + LABEL_GAP
        placed.append((across, level))
        label = ax.annotate(
            ", ".join(row.names),
            point,
            xytext=(9, level - up),
            textcoords="offset points",
            fontsize=7,
            va="center",
            arrowprops={
                "arrowstyle": "-",
                "linewidth": 0.4,
                "color": "0.5",
                "relpos": (0, 0.5),
                "patchA": None,
                "shrinkA": 0,
                "shrinkB": 0,  # nothing to cut
            },
        )
        label.set_in_layout(False)  # or a long one would squeeze the axes


def _title(others: Sequence[ConfigurationRow]) -> str:
    """Return what stands over the legend: configurations far beyond the front too."""
    beyond = "".join(
        f"\nnot drawn: {', '.join(row.names)}: {row.latency_s * 1e3:.1f} ms, "
        f"{row.throughput_fps:.2f} fps"
        for row in others
    )
    return f"filled: on the front{beyond}"
