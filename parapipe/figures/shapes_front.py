"""The front of several shapes as a picture: who answers first, and who writes fastest."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from parapipe.documents.shapes_schema import CombinationRow, ShapesDocument
from parapipe.figures.axes import below, kind_of, own_axes, write_picture
from parapipe.files.titles import model_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH_IN, HEIGHT_IN = 6.4, 4.8
NAMES_PT = 8


def axis_titles(document: ShapesDocument) -> tuple[str, str]:
    """Return what is drawn across and up, with units.

    Of a language model the time to the first token and tokens a second; of other shapes the latency
    of the first one and requests a second.
    """
    if document.configurations[0].tokens_per_second is not None:
        return "time to the first token (ms)", "tokens/s"
    return f"latency of {document.shapes[0].name} (ms)", "requests/s"


def point_of(row: CombinationRow) -> tuple[float, float]:
    """Return where a row stands: milliseconds across, a rate up."""
    if row.first_token_s is not None and row.tokens_per_second is not None:
        return row.first_token_s * 1e3, row.tokens_per_second
    first = next(iter(row.placements.values()))
    return first.latency_s * 1e3, row.requests_per_second


def plot_shapes(document: ShapesDocument, ax: Axes) -> None:
    """Draw each row as a point, those that others beat hollow; names stand below, by their ids."""
    for pareto, label in ((True, "on the front"), (False, "beaten, to compare with")):
        points = [point_of(row) for row in document.configurations if row.pareto == pareto]
        if points:
            ax.scatter(
                [x for x, _ in points],
                [y for _, y in points],
                label=label,
                zorder=3,
                edgecolors="C0",
                facecolors="C0" if pareto else "none",
            )
    for row in document.configurations:
        if row.names:
            ax.annotate(row.id, point_of(row), fontsize=NAMES_PT, xytext=(4, 4),
                        textcoords="offset points")  # fmt: skip
    across, up = axis_titles(document)
    ax.set_xlabel(across)
    ax.set_ylabel(up)
    named = (f"{row.id}: {', '.join(row.names)}" for row in document.configurations if row.names)
    title = f"{model_title(document.model)} on {document.platform}"
    ax.set_title("\n".join([title, *named]), fontsize=NAMES_PT)
    ax.grid(visible=True, linewidth=0.3)
    ax.legend(ncols=2, **below(ax))


def write_shapes(document: ShapesDocument, path: Path) -> None:
    """Draw the front of several shapes into a file.

    Raises
    ------
    OutputError
        The file's name ends in no kind of picture, or it cannot be written.
    """
    kind_of(path)
    ax = own_axes(WIDTH_IN, HEIGHT_IN)
    plot_shapes(document, ax)
    write_picture(ax, path)
