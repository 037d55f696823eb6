"""Predicted against measured as a picture, one panel for each metric (Para-Pipe, Fig. 5)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from parapipe.documents.comparison import METRICS, RUN_METRICS, Comparison, Pair, rmspe
from parapipe.figures.axes import below, kind_of, write_picture
from parapipe.files.titles import model_title

UNITS = METRICS | RUN_METRICS
MARKERS = "osD^vP*X"


def plot_comparison(pairs: Sequence[Pair], metric: str, ax: Axes) -> None:
    """Draw the predicted over the measured figures of one metric, a marker for each network.

    The metric is one of `UNITS` that occurs in the pairs; axes are in its unit there.
    """
    compared = [pair for pair in pairs if pair.metric == metric]
    models = list(dict.fromkeys(pair.model for pair in compared))
    for i, model in enumerate(models):
        own = [pair for pair in compared if pair.model == model]
        ax.scatter(
            [pair.measured * 1e3 for pair in own],
            [pair.predicted * 1e3 for pair in own],
            marker=MARKERS[i % len(MARKERS)],
            label=model_title(model),
            zorder=3,
            alpha=0.8,
        )
    figures = [1e3 * x for pair in compared for x in (pair.measured, pair.predicted)]
    ends = (0.9 * min(figures), 1.1 * max(figures))
    ax.plot(ends, ends, color="0.5", linewidth=1, zorder=2)
    ax.set_xlim(*ends)
    ax.set_ylim(*ends)
    ax.set_aspect("equal")
    unit = UNITS[metric]
    ax.set_xlabel(f"measured ({unit})")
    ax.set_ylabel(f"predicted ({unit})")
    ax.set_title(f"{metric}, RMSPE {rmspe([pair.error for pair in compared]):.1%}", fontsize=10)
    ax.grid(visible=True, linewidth=0.3)
    ax.legend(ncols=2, **below(ax))


def write_comparison(comparison: Comparison, path: Path) -> None:
    """Draw a panel for each metric that was measured into a file.

    Raises
    ------
    OutputError
        If the name ends in no kind of `STAMPS`, or the file cannot be written.
    """
    kind_of(path)
    metrics = [name for name in UNITS if any(p.metric == name for p in comparison.pairs)]
    figure = Figure(figsize=(4.2 * len(metrics), 4.4), layout="constrained")
    panels = figure.subplots(1, len(metrics), squeeze=False)[0]
    for metric, ax in zip(metrics, panels, strict=True):
        plot_comparison(comparison.pairs, metric, ax)
    write_picture(panels[0], path)
