"""The figures that are displayed, stated or medians, and texts on absent configurations.

The slowest of several loads is likely to be slower in a draw than any of them is by the stated
costs. So a stated period may lie outside the interval of its own draws. Then their median is what
is shown, and the ends of the interval. Where figures of several configurations stand beside each
other, they are all medians if one has to be: a median says nothing beside a stated figure. ± with a
share says an interval only if the stated figure is about its middle.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from parapipe.digits import plain
from parapipe.documents.figure_table import BY_FIELD, SHOWN_FIELDS
from parapipe.files.mistakes import together
from parapipe.pareto import TIE

_ALONE = "-alone"


def absent_texts(absent: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence without its end for what is absent, as in `no para-only configuration: …`.

    Processors whose reasons differ in their names alone are named together.
    """
    alone = {
        name.removesuffix(_ALONE): text for name, text in absent.items() if name.endswith(_ALONE)
    }
    shown = {names[0]: (names, text) for names, text in together(alone).items()}
    for kind, reason in absent.items():
        if not kind.endswith(_ALONE):
            yield f"no {kind} configuration: {reason}"
        elif group := shown.get(kind.removesuffix(_ALONE)):
            names, text = group
            kinds = [f"{name}{_ALONE}" for name in names]
            listed = " or ".join(filter(None, [", ".join(kinds[:-1]), kinds[-1]]))
            yield f"no {listed} configuration: {text}"


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

    def remark(self, times: float = 1.0) -> str:
        """Return what to write behind the stated figure: nothing if it is in its interval.

        Parameters
        ----------
        times
            What the figure is multiplied by where it stands.
        """
        return "" if self.inside else f" (by the stated costs; median {plain(self.median * times)})"

    @property
    def half_width(self) -> float:
        """Half of the interval, as a share of the stated figure."""
        return (self.high - self.low) / 2 / self.stated


def medians_of(
    rows: Sequence[Mapping[str, Any]], keys: Sequence[str] = SHOWN_FIELDS
) -> frozenset[str]:
    """Return the figures of which medians are shown of all rows of a front, as one has to be.

    Parameters
    ----------
    rows
        All configurations of the front, as plain data, whichever of them are shown: a figure reads
        the same in each table and picture.
    keys
        The figures in question.
    """
    figures = ((key, shown_figure(row, key)) for row in rows for key in keys)
    return frozenset(key for key, figure in figures if figure and not figure.inside)


def shown_figure(row: Mapping[str, Any], key: str) -> ShownFigure | None:
    """Return a figure of a configuration or an evaluation; None if nothing was drawn.

    Parameters
    ----------
    row
        As plain data.
    key
        Field of a figure; of one that is compared by its reciprocal, that has the interval.
    """
    sampled_field = BY_FIELD[key].compared if key in BY_FIELD else key
    if not row.get("intervals") or not row.get("medians") or sampled_field not in row["intervals"]:
        return None
    (low, high), median = row["intervals"][sampled_field], row["medians"][sampled_field]
    if sampled_field != key:
        return ShownFigure(row[key], 1 / high, 1 / low, 1 / median)
    return ShownFigure(row[key], low, high, median)


def shown_values(rows: Sequence[Mapping[str, Any]], key: str) -> list[float]:
    """Return what is shown of a figure of several rows, in its own unit: all medians, or none."""
    if key not in medians_of(rows, [key]):
        return [row[key] for row in rows]
    figures = [shown_figure(row, key) for row in rows]
    return [
        row[key] if figure is None else figure.median
        for figure, row in zip(figures, rows, strict=True)
    ]
