"""Figures as a reader is to see them: as stated, or as draws of the costs have them.

The slowest of several loads is likely to be slower in a draw than any of them is by the stated
costs. So a stated period may lie outside the interval of its own draws. Then their median is what
is shown, and the ends of the interval. ± with a share says an interval only if the stated figure is
about its middle.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from parapipe.pipeline.dominance import TIE

SKEWED = 1.5  # times as far from the stated figure as the other end, and an end is too far for ±


@dataclass(frozen=True, slots=True)
class ShownFigure:
    """A figure and its interval.

    Parameters
    ----------
    stated
        By the stated costs.
    low, high
        Ends of the interval of the draws.
    median
        Of the draws.
    """

    stated: float
    low: float
    high: float
    median: float

    @property
    def inside(self) -> bool:
        """Whether the stated figure lies in its interval."""
        return self.low * (1 - TIE) <= self.stated <= self.high * (1 + TIE)

    @property
    def value(self) -> float:
        """The figure to show."""
        return self.stated if self.inside else self.median

    @property
    def even(self) -> bool:
        """Whether the stated figure is about in the middle of an interval not too wide for ±."""
        below, above = self.stated - self.low, self.high - self.stated
        most = SKEWED * min(below, above) + TIE * self.stated
        return self.inside and self.half_width <= 1 and max(below, above) <= most

    @property
    def half_width(self) -> float:
        """Half of the interval, as a share of the stated figure."""
        return (self.high - self.low) / 2 / self.stated


def shown_figure(row: Mapping[str, Any], key: str) -> ShownFigure | None:
    """Return a figure of a configuration or an evaluation; None if nothing was drawn.

    Parameters
    ----------
    row
        As plain data.
    key
        One of the figures that have intervals, or `throughput_fps`, the reciprocal of the period.
    """
    if not row.get("intervals") or not row.get("medians"):
        return None
    if key == "throughput_fps":
        low, high = row["intervals"]["period_s"]
        return ShownFigure(row[key], 1 / high, 1 / low, 1 / row["medians"]["period_s"])
    if key not in row["intervals"]:  # memory has no doubt
        return None
    low, high = row["intervals"][key]
    return ShownFigure(row[key], low, high, row["medians"][key])


def shows_medians(rows: Sequence[Mapping[str, Any]], key: str) -> bool:
    """Tell whether a figure of several rows is shown as medians, so that rows can be compared.

    It is if the stated figure of a row lies outside of its interval.

    Parameters
    ----------
    rows, key
        As `shown_figure` takes them.
    """
    figures = (shown_figure(row, key) for row in rows)
    return any(figure is not None and not figure.inside for figure in figures)


def shown_values(rows: Sequence[Mapping[str, Any]], key: str) -> list[float]:
    """Return what is shown of a figure of several rows, in its own unit: all medians, or none."""
    if not shows_medians(rows, key):
        return [row[key] for row in rows]
    figures = [shown_figure(row, key) for row in rows]
    return [
        row[key] if figure is None else figure.median
        for figure, row in zip(figures, rows, strict=True)
    ]
