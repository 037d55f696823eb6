"""Utilisation of processors and energy of configurations, as bars."""

from __future__ import annotations

from matplotlib.axes import Axes

from parapipe.digits import plain
from parapipe.documents.front_schema import ConfigurationRow, FrontDocument
from parapipe.figures.palette import IDLE, STATIC_ALPHA, Looks


def plot_utilisation(row: ConfigurationRow, looks: Looks, ax: Axes) -> None:
    """Draw a bar of 100 % for each processor used on `ax`, in percent of the period."""
    for at, processor in enumerate(row.processors):
        busy = 100 * processor.busy_s / row.period_s
        moving = 100 * processor.transfer_s / row.period_s
        look = looks[processor.name]
        ax.barh(at, 100, color=IDLE, height=0.6)
        ax.barh(at, busy, color=look.colour, hatch=look.hatch, edgecolor="white", height=0.6)
        ax.barh(at, moving, left=busy, color="0.35", height=0.6)
        moves = f", moves data {moving:.0f} %" if moving else ""
        ax.text(101, at, f"computes {busy:.0f} %{moves}", va="center", fontsize=8)
    names = [processor.name for processor in row.processors]
    ax.set_yticks(range(len(names)), names, parse_math=False)
    ax.invert_yaxis()
    ax.set_xlim(0, 100)
    ax.set_xlabel(f"share of the period of {plain(row.period_s * 1e3)} ms (%)")
    ax.set_ylabel("processor")


REFERENCE = "sequential"


def plot_energy(
    front: FrontDocument, looks: Looks, ax: Axes, *, reference: str = REFERENCE
) -> None:
    """Draw a stacked bar for each configuration that has a name: dynamic, then static energy.

    On `ax`, 1 is the energy per frame of the reference, a configuration by its id or name.

    Raises
    ------
    FrontError
        There is no such configuration.
    """
    one = front.configuration(reference)
    named = [row for row in front.configurations if row.names]
    for at, row in enumerate(named):
        _plot_energies(row, one.energy_j, looks, at, ax)
    ax.axhline(1, color="0.3", linewidth=0.8, linestyle="--", zorder=0)
    ax.set_xticks(
        range(len(named)), [", ".join(row.names) for row in named], rotation=30, ha="right",
        fontsize=8, parse_math=False,
    )  # fmt: skip
    ax.set_ylabel(f"energy per frame ({reference} = 1, {plain(one.energy_j * 1e3)} mJ)")
    ax.set_xlabel("configuration")
    used = {processor.name for row in named for processor in row.processors}
    for name, look in looks.items():
        if name in used:
            ax.bar(0, 0, color=look.colour, hatch=look.hatch, edgecolor="white", label=name)
    ax.bar(0, 0, color="0.6", alpha=STATIC_ALPHA, label="pale: static")
    ax.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1.01, 1), borderaxespad=0)


def _plot_energies(row: ConfigurationRow, one_j: float, looks: Looks, at: int, ax: Axes) -> None:
    bottom = 0.0
    for processor in sorted(row.processors, key=lambda each: list(looks).index(each.name)):
        look = looks[processor.name]
        still_j = processor.static_power_w * row.frame_s
        for joules, alpha in ((processor.dynamic_energy_j, 1.0), (still_j, STATIC_ALPHA)):
            ax.bar(
                at, joules / one_j, bottom=bottom, color=look.colour, hatch=look.hatch,
                edgecolor="white", alpha=alpha, width=0.65,
            )  # fmt: skip
            bottom += joules / one_j
    ax.text(at, bottom, f"{bottom:.2f}", ha="center", va="bottom", fontsize=8)
