"""The Pareto front as a picture: latency against throughput, energy as colour."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from parapipe.report.front_document import ConfigurationRow

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_front(configurations: Sequence[ConfigurationRow], ax: Axes) -> None:
    """Draw every configuration on `ax`.

    Points on the front are filled and coloured by energy per frame; named ones carry their name;
    a line joins the paper's front, of latency and throughput alone.

    Parameters
    ----------
    configurations
        Those of a front document.
    ax
        Axes to draw on, in milliseconds and frames per second.
    """
    front = [row for row in configurations if row.pareto]
    others = [row for row in configurations if not row.pareto]
    points = ax.scatter(
        [row.latency_s * 1e3 for row in front],
        [row.throughput_fps for row in front],
        c=[row.energy_j * 1e3 for row in front],
        cmap="cividis",
        s=36,
        zorder=3,
        label="Pareto front (latency, throughput, energy)",
    )
    ax.scatter(
        [row.latency_s * 1e3 for row in others],
        [row.throughput_fps for row in others],
        facecolors="none",
        edgecolors="0.35",
        marker="s",
        s=36,
        zorder=3,
        label="named, not on the front",
    )
    stairs = sorted(
        (row for row in configurations if row.pareto_latency_throughput),
        key=lambda row: row.latency_s,
    )
    ax.step(
        [row.latency_s * 1e3 for row in stairs],
        [row.throughput_fps for row in stairs],
        where="post",
        color="0.6",
        linewidth=1,
        zorder=2,
        label="front of latency and throughput",
    )
    for place, row in enumerate(row for row in configurations if row.names):
        ax.annotate(
            ", ".join(row.names),
            (row.latency_s * 1e3, row.throughput_fps),
            xytext=(6, 6 if place % 2 else -10),
            textcoords="offset points",
            fontsize=7,
        )
    ax.set_xlabel("latency (ms)")
    ax.set_ylabel("throughput (frames/s)")
    ax.grid(visible=True, linewidth=0.3)
    ax.legend(fontsize=7, loc="best")
    if front:
        figure = ax.get_figure()
        if figure is not None:
            figure.colorbar(points, ax=ax, label="energy per frame (mJ)")
