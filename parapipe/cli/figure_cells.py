"""Figures in the cells of a table, with the intervals of the draws of the costs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from math import floor, log10
from typing import TYPE_CHECKING

from parapipe.cli.output import Columns, Row
from parapipe.digits import plain

if TYPE_CHECKING:
    from parapipe.api.checked import FigureEntry, ShownFigure

MOST_DECIMALS = 6


def sampled_figure(row: Row, key: str) -> ShownFigure | None:
    """Return a figure with its interval; None if it has none."""
    from parapipe.api.checked import shown_figure

    return shown_figure(row, key)


def interval_cells(
    rows: Sequence[Row], entry: FigureEntry, medians: Collection[str] = frozenset()
) -> list[str]:
    """Write a column of figures, with intervals below if ± does not say them all.

    Parameters
    ----------
    medians
        Keys of the figures of which medians of the draws are shown.
    """
    key, scale = entry.field, entry.scale
    texts = plain_cells([scale * shown_value(row, key, medians) for row in rows])
    if not medians and are_even(rows):
        return texts
    figures = [sampled_figure(row, key) for row in rows]
    mark = "~" * (key in medians)
    return [
        f"{mark}{text}\n{ends(figure, scale)}" if figure else text
        for figure, text in zip(figures, texts, strict=True)
    ]


def shown_value(row: Row, key: str, medians: Collection[str]) -> float:
    """Return a figure as a table with medians of some figures shows it."""
    figure = sampled_figure(row, key) if key in medians else None
    return figure.median if figure else float(row[key])


def outside_lines(row: Row) -> Iterator[str]:
    """Say where draws lie of each figure that is outside of its interval by the stated costs."""
    from parapipe.api.checked import DRAWN

    for entry in DRAWN:
        figure = sampled_figure(row, entry.field)
        if figure and not figure.inside:  # with the digits of a table of this row
            stated, median = (
                plain_cells([each * entry.scale])[0] for each in (row[entry.field], figure.median)
            )
            yield (
                f"{entry.name} {stated} {entry.unit or entry.words}{entry.per} by the stated "
                f"costs; in draws of the costs {ends(figure, entry.scale)}, median {median}"
            )


def short_columns(of: Callable[[Row], Row], *, but: str = "", best: bool = False) -> Columns:
    """Return columns of the drawn figures with their units as titles.

    Parameters
    ----------
    of
        Returns what has the figures of a row; None where there are none.
    but
        Name of a figure that is left out.
    best
        Whether they are the best of several, and titles say so.
    """
    from parapipe.api.checked import DRAWN

    return {
        " " + best * f"{each.best}\n" + each.short_unit: partial(_short_cell, each, of)
        for each in DRAWN
        if each.name != but
    }


def _short_cell(entry: FigureEntry, of: Callable[[Row], Row], row: Row) -> str:
    value = of(row)[entry.field]
    return "" if value is None else plain(value * entry.scale)


def doubt_cells(rows: Sequence[Row]) -> list[str]:
    """Write half the width of the widest interval of each row, in percent."""
    widest = (max(figure.half_width for figure in _sampled_figures(row)) for row in rows)
    return [f"{100 * share:.0f}" for share in widest]


def doubt_mark(rows: Sequence[Row], medians: Collection[str]) -> Iterator[str]:
    """Say what the intervals below figures mean, if there are some in a table of these rows."""
    if medians or not are_even(rows):
        yield f"low–high: nine of ten draws{' (~: median)' * bool(medians)}"


def are_even(rows: Sequence[Row]) -> bool:
    """Tell whether ± says all intervals of some rows."""
    return all(figure.even for row in rows for figure in _sampled_figures(row))


def has_doubt(row: Row) -> bool:
    """Tell whether a row has intervals."""
    return any(_sampled_figures(row))


def ends(figure: ShownFigure, scale: float = 1.0) -> str:
    """Write the ends of an interval with three digits each."""
    return "–".join(_three_digits(end * scale) for end in (figure.low, figure.high))


def _three_digits(value: float) -> str:
    """Write three digits, without an exponent."""
    digits = 2 - floor(log10(value))
    return f"{round(value, digits):.{min(max(0, digits), MOST_DECIMALS)}f}"


def plain_cells(values: Sequence[float]) -> list[str]:
    """Write a column with as many decimals as give its least value three digits, at least one.

    Counts have none.
    """
    if all(isinstance(value, int) for value in values):
        return [f"{value}" for value in values]
    least = min(values, default=1.0)
    decimals = min(max(1, 2 - floor(log10(least))), MOST_DECIMALS) if least > 0 else 1
    return [f"{value:.{decimals}f}" for value in values]


def _sampled_figures(row: Row) -> list[ShownFigure]:
    from parapipe.api.checked import DRAWN

    figures = (sampled_figure(row, each.field) for each in DRAWN)
    return [figure for figure in figures if figure]
