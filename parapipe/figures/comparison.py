"""Predicted against measured as a picture, one panel for each metric (Para-Pipe, Fig. 5)."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from parapipe.errors import OutputError
from parapipe.files.atomic import write_atomically
from parapipe.formats.comparison import METRICS, Comparison, Pair, rmspe

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARKERS = "osD^vP*X"
STAMPS = {"png": "Software", "pdf": "CreationDate", "svg": "Date"}
"""Kinds of files, and what of each would differ from run to run."""


def plot_comparison(pairs: Sequence[Pair], metric: str, ax: Axes) -> None:
    """Draw the predicted over the measured figures of one metric, a marker for each network.

    Parameters
    ----------
    metric
        One of `METRICS`; it must occur in the pairs.
    ax
        Axes to draw on, in milliseconds or millijoules.
    """
    alike = [pair for pair in pairs if pair.metric == metric]
    models = list(dict.fromkeys(pair.model for pair in alike))
    for i, model in enumerate(models):
        own = [pair for pair in alike if pair.model == model]
        ax.scatter(
            [pair.measured * 1e3 for pair in own],
            [pair.predicted * 1e3 for pair in own],
            marker=MARKERS[i % len(MARKERS)],
            label=model,
            zorder=3,
            alpha=0.8,
        )
    figures = [1e3 * x for pair in alike for x in (pair.measured, pair.predicted)]
    ends = (0.9 * min(figures), 1.1 * max(figures))
    ax.plot(ends, ends, color="0.5", linewidth=1, zorder=2)
    ax.set_xlim(*ends)
    ax.set_ylim(*ends)
    ax.set_aspect("equal")
    unit = METRICS[metric]
    ax.set_xlabel(f"measured ({unit})")
    ax.set_ylabel(f"predicted ({unit})")
    ax.set_title(f"{metric}, RMSPE {rmspe([pair.error for pair in alike]):.1%}", fontsize=10)
    ax.grid(visible=True, linewidth=0.3)
    ax.legend(fontsize=7)


def write_comparison(comparison: Comparison, path: Path) -> None:
    """Draw a panel for each metric that was measured into a file.

    Raises
    ------
    OutputError
        If the name ends in no kind of `STAMPS`, or the file cannot be written.
    """
    kind = path.suffix.removeprefix(".").lower()
    if kind not in STAMPS:
        raise OutputError(f"'{path}' ends in no kind of picture; name it .{', .'.join(STAMPS)}")
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    metrics = [name for name in METRICS if any(p.metric == name for p in comparison.pairs)]
    figure = Figure(figsize=(4.2 * len(metrics), 4.4), layout="constrained")
    for metric, ax in zip(metrics, figure.subplots(1, len(metrics), squeeze=False)[0], strict=True):
        plot_comparison(comparison.pairs, metric, ax)
    picture = BytesIO()
    with rc_context({"svg.hashsalt": "parapipe"}):
        figure.savefig(picture, format=kind, dpi=150, metadata={STAMPS[kind]: None})
    write_atomically(path, picture.getvalue())
