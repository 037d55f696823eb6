"""The pictures of docs/paper.md, each named after what it shows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import paper_published as published
from benchmarks.paper_runs import METHODS, Row, Solving
from parapipe import ParetoFront
from parapipe.documents.comparison import METRICS, Pair
from parapipe.figures.axes import own_axes, picture
from parapipe.figures.bar_charts import plot_energy
from parapipe.figures.comparison import plot_comparison
from parapipe.figures.gantt import plot_gantt
from parapipe.figures.palette import COLOURS, HATCHES, Look, looks
from parapipe.files.atomic import write_atomically

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FOLDER = Path(__file__).parents[1] / "docs/paper"
REFERENCE = "Layer-switched"
LOOK = {name: Look(COLOURS[i], HATCHES[i]) for i, name in enumerate(METHODS)}
ONE_IN = (8.4, 3.2)
HIGHEST = 3.0
"""Bars beyond it are cut, and tell how high they are."""


def write(name: str, ax: Axes) -> None:
    """Write the figure of axes into the page's folder."""
    FOLDER.mkdir(exist_ok=True)
    write_atomically(FOLDER / f"{name}.svg", picture(ax))


def panels(rows: int, columns: int, size_in: tuple[float, float]) -> list[Axes]:
    """Return axes of one figure, row by row."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(size_in[0] * columns, size_in[1] * rows), layout="constrained")
    return list(figure.subplots(rows, columns, squeeze=False).ravel())


def grouped(values: Mapping[str, Mapping[str, float]], look: Mapping[str, Look], ax: Axes) -> None:
    """Draw bars side by side: a group for each key, a bar for each look that it has a value for."""
    width = 0.84 / len(look)
    for i, (name, drawn) in enumerate(look.items()):
        at = [
            g + (i - (len(look) - 1) / 2) * width
            for g, v in enumerate(values.values())
            if name in v
        ]
        heights = [value[name] for value in values.values() if name in value]
        ax.bar(
            at, heights, width, color=drawn.colour, hatch=drawn.hatch, edgecolor="white",
            linewidth=0.3, label=name, zorder=3,
        )  # fmt: skip
    ax.set_xticks(range(len(values)), list(values), fontsize=8, parse_math=False)
    ax.grid(visible=True, axis="y", linewidth=0.3)


def plot_methods(rows: Sequence[Row], figure: str, ax: Axes) -> None:
    """Draw latency or throughput of every method, 1 being the reference's.

    Parameters
    ----------
    rows
        Of one platform.
    figure
        "latency" or "throughput".
    """

    def value(row: Row) -> float:
        return row.latency_s if figure == "latency" else row.throughput_fps

    one = {row.model: value(row) for row in rows if row.method == REFERENCE}
    values = {
        model: {row.method: value(row) / one[model] for row in rows if row.model == model}
        for model in one
    }
    highest = max(max(each.values()) for each in values.values())
    grouped(values, {name: LOOK[name] for name in METHODS}, ax)
    ax.axhline(1, color="0.3", linewidth=0.8, linestyle="--")
    if highest > HIGHEST:  # it would squeeze all the others
        ax.set_ylim(0, HIGHEST)
        for box in (
            patch.get_extents().transformed(ax.transData.inverted()) for patch in ax.patches
        ):
            if box.y1 > HIGHEST:
                ax.text(
                    (box.x0 + box.x1) / 2, HIGHEST, f"{box.y1:.3g}", ha="center", va="bottom",
                    fontsize=7,
                )  # fmt: skip
    ax.set_ylabel(f"{figure} ({REFERENCE} = 1)")
    ax.set_xlabel("network")


def methods(rows: Sequence[Row], platform: str) -> None:
    """Draw latency above throughput."""
    above, below = panels(2, 1, (10.0, 3.0))
    own = [row for row in rows if row.platform == platform]
    plot_methods(own, "latency", above)
    plot_methods(own, "throughput", below)
    below.legend(
        fontsize=7, ncols=len(METHODS), loc="upper center", bbox_to_anchor=(0.5, -0.22),
        frameon=False,
    )  # fmt: skip
    above.set_title(platform, fontsize=10, pad=12)
    write(f"methods-{platform}", above)


def subgraph_times(found: ParetoFront) -> None:
    """Draw what each subgraph takes on each processor."""
    made = found.configurations[0]
    costs, name = made.costs, made.graph.source.name
    look = looks(costs.processors)
    values = {
        str(number): {
            each: 1e3 * sum(costs.time_s(v, p) for v in subgraph.operators)
            for p, each in enumerate(costs.processors)
        }
        for number, subgraph in enumerate(found.partition.subgraphs, start=1)
    }
    ax = own_axes(*ONE_IN)
    grouped(values, look, ax)
    ax.set_xlabel(f"subgraph of {name.removeprefix('zoo:')}")
    ax.set_ylabel("time, one operator at a time (ms)")
    ax.legend(fontsize=8)
    write("subgraph-times", ax)


def schedules(found: ParetoFront, names: Iterable[str]) -> None:
    """Draw the schedules of configurations that are named, one above the other."""
    shown = list(names)
    axes = panels(len(shown), 1, (10.0, 2.2))
    for name, ax in zip(shown, axes, strict=True):
        made = found[name]
        ax.set_title(f"{name}: {made.drawing}", fontsize=9, pad=14, parse_math=False)
        plot_gantt(made.plan(), looks(made.costs.processors), ax)
    write("schedules", axes[0])


def predicted(pairs: Sequence[Pair]) -> None:
    """Draw what was predicted of runs of the board over what was measured."""
    axes = panels(1, len(METRICS), (4.2, 4.2))
    for metric, ax in zip(METRICS, axes, strict=True):
        plot_comparison(pairs, metric, ax)
    write("predicted-measured", axes[0])


def energies(fronts: Mapping[str, ParetoFront]) -> None:
    """Draw the energy of named configurations, a panel for each network."""
    axes = panels(2, (len(fronts) + 1) // 2, (5.6, 4.2))
    for (model, found), ax in zip(fronts.items(), axes, strict=False):
        names = [each.name for each in found.document.processors]
        plot_energy(found.document, looks(names), ax)
        ax.set_title(f"{model} on {found.document.platform}", fontsize=9)
    for ax in axes[len(fronts) :]:
        ax.set_axis_off()
    write("energy", axes[0])


def sets(found: Mapping[str, Mapping[str, float]]) -> None:
    """Draw the mean gains of sets of processors in one stage, and where the paper's stand."""
    drawn = {
        "less latency": ("latency_s", "latency"),
        "more throughput": ("one_stage_fps", "throughput"),
        "more frames/J": ("one_stage_frames_per_joule", "efficiency"),
        "more throughput, any stages": ("throughput_fps", None),
        "more frames/J, any stages": ("frames_per_joule", None),
    }
    look = {name: Look(COLOURS[i], HATCHES[i]) for i, name in enumerate(drawn)}
    values = {
        processors: {
            name: 100 * gain[figure] * (-1 if figure == "latency_s" else 1)
            for name, (figure, _) in drawn.items()
        }
        for processors, gain in found.items()
    }
    ax = own_axes(*ONE_IN)
    grouped(values, look, ax)
    places = [
        (group + (i - (len(look) - 1) / 2) * 0.84 / len(look), 100 * abs(share))
        for group, processors in enumerate(values)
        for i, (_, paper) in enumerate(drawn.values())
        if paper and (share := getattr(published.GAINS[processors], paper)) is not None
    ]
    ax.scatter(*zip(*places, strict=True), marker="D", color="black", zorder=4, label="the paper's")
    ax.axhline(0, color="0.3", linewidth=0.8)
    ax.set_xlabel("processors")
    ax.set_ylabel("against big alone (%)")
    ax.legend(fontsize=8)
    write("processor-sets", ax)


def busy(values: Mapping[str, Mapping[str, Mapping[str, float]]]) -> None:
    """Draw which share of the period processors compute, a panel for each platform."""
    axes = panels(len(values), 1, (10.0, 2.6))
    for (platform, shares), ax in zip(values.items(), axes, strict=True):
        processors = list(next(iter(shares.values())))
        percent = {m: {p: 100 * x for p, x in each.items()} for m, each in shares.items()}
        grouped(percent, looks(processors), ax)
        ax.set_title(platform, fontsize=9)
        ax.set_ylabel("computes (% of period)")
        ax.legend(fontsize=7)
    axes[-1].set_xlabel("method")
    write("busy", axes[0])


def solve_times(found: Sequence[Solving]) -> None:
    """Draw seconds in solvers, and the paper's."""
    platforms = list(dict.fromkeys(each.platform for each in found))
    values = {
        model: {each.platform: each.total_s for each in found if each.model == model}
        for model in dict.fromkeys(each.model for each in found)
    }
    ax = own_axes(*ONE_IN)
    grouped(values, looks(platforms), ax)
    at = [i for i, model in enumerate(values) if model in published.SOLVE_S]
    ax.scatter(
        at, [published.SOLVE_S[model] for i, model in enumerate(values) if i in at], marker="D",
        color="black", zorder=4, label="the paper's",
    )  # fmt: skip
    ax.set_yscale("log")
    ax.set_ylabel("in solvers, whole front (s)")
    ax.set_xlabel("network")
    ax.legend(fontsize=8)
    write("solve-times", ax)
