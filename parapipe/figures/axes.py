"""Axes on a figure of their own, and figures as bytes that are always the same."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def own_axes(width_in: float, height_in: float) -> Axes:
    """Return axes on a new figure, which no window shows."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width_in, height_in), layout="constrained").add_subplot()


def svg(ax: Axes) -> bytes:
    """Return the figure of axes as SVG; equal figures, equal bytes."""
    from matplotlib import rc_context

    figure, picture = ax.get_figure(root=True), BytesIO()
    assert figure is not None
    with rc_context({"svg.hashsalt": "parapipe", "svg.fonttype": "none"}):
        figure.savefig(picture, format="svg", metadata={"Date": None, "Creator": None})
    return picture.getvalue()
