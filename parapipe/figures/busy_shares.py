"""Utilisation: what share of a period each processor computes, moves data and waits."""

from __future__ import annotations

from matplotlib.axes import Axes

from parapipe.digits import plain
from parapipe.documents.front import ConfigurationRow
from parapipe.figures.palette import IDLE, Looks


def plot_utilisation(row: ConfigurationRow, looks: Looks, ax: Axes) -> None:
    """Draw a bar of 100 % for each processor used on `ax`, in percent of the period."""
    for at, processor in enumerate(row.processors):
        busy = 100 * processor.busy_s / row.period_s
        moved = 100 * processor.transfer_s / row.period_s
        look = looks[processor.name]
        ax.barh(at, 100, color=IDLE, height=0.6)
        ax.barh(at, busy, color=look.colour, hatch=look.hatch, edgecolor="white", height=0.6)
        ax.barh(at, moved, left=busy, color="0.35", height=0.6)
        moves = f", moves data {moved:.0f} %" if moved else ""
        ax.text(101, at, f"computes {busy:.0f} %{moves}", va="center", fontsize=8)
    names = [processor.name for processor in row.processors]
    ax.set_yticks(range(len(names)), names, parse_math=False)
    ax.invert_yaxis()
    ax.set_xlim(0, 100)
    ax.set_xlabel(f"share of the period of {plain(row.period_s * 1e3)} ms (%)")
    ax.set_ylabel("processor")
