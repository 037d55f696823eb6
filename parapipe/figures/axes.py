"""Axes on a figure of their own, and figures as bytes that are always the same."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from parapipe.errors import OutputError
from parapipe.files.atomic import check_folder, write_folder

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STAMPS = {"png": ("Software",), "pdf": ("CreationDate",), "svg": ("Date", "Creator")}
"""Kinds of files, and what of each would differ from run to run."""

DPI = 150
"""Of pictures that are made of dots."""

LETTER = 0.6
"""Width of a letter of a title, as a share of its size: more than most."""

LABELS_PT = 36.0
"""Height in points of the labels under axes: those of ticks, and that of the axis."""


def own_axes(
    width_in: float, height_in: float, *, beside_in: tuple[float, float, float, float] | None = None
) -> Axes:
    """Return axes on a new figure, which no window shows.

    Parameters
    ----------
    beside_in
        Inches left for text: to the left, below, to the right and above. If not given, all text is
        measured, and fits: that takes nearly half as long as drawing it.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width_in, height_in), layout=None if beside_in else "constrained")
    if beside_in:
        left, below, right, above = beside_in
        figure.subplots_adjust(
            left=left / width_in,
            bottom=below / height_in,
            right=1 - right / width_in,
            top=1 - above / height_in,
        )
    return figure.add_subplot()


def figure_of(ax: Axes) -> Figure:
    """Return the figure that axes are on."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    return figure


def below(ax: Axes, points: float = LABELS_PT) -> dict[str, Any]:
    """Return settings that put a legend under the axes and their labels, where nothing is drawn.

    Parameters
    ----------
    points
        Space for labels between the axes and the legend.
    """
    from matplotlib.transforms import offset_copy

    under = offset_copy(ax.transAxes, fig=figure_of(ax), y=-points, units="points")
    return {
        "loc": "upper left", "bbox_to_anchor": (0, 0), "bbox_transform": under,
        "borderaxespad": 0, "fontsize": 7, "title_fontsize": 7,
    }  # fmt: skip


def in_lines(text: str, ax: Axes, size_pt: float) -> str:
    """Break a title at spaces into lines that are no wider than the figure, over the axes' middle.

    Parameters
    ----------
    size_pt
        Of the letters.
    """
    from textwrap import fill

    place = ax.get_position()
    middle = (place.x0 + place.x1) / 2
    width_pt = 2 * min(middle, 1 - middle) * figure_of(ax).get_figwidth() * 72
    return fill(text, max(20, int(width_pt / (LETTER * size_pt))))


def picture(ax: Axes, kind: str = "svg") -> bytes:
    """Return the figure of axes as a file of a kind of `STAMPS`; equal figures, equal bytes."""
    from matplotlib import rc_context

    figure, content = figure_of(ax), BytesIO()
    if kind == "png":  # what `savefig` does too, after it has drawn all once to find the places
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        figure.set_dpi(DPI)
        canvas = FigureCanvasAgg(figure)
        # this method of matplotlib has no types
        canvas.print_png(content, metadata=dict.fromkeys(STAMPS[kind]))  # type: ignore[no-untyped-call]
        return content.getvalue()
    with rc_context({"svg.hashsalt": "parapipe", "svg.fonttype": "none"}):
        figure.savefig(content, format=kind, dpi=DPI, metadata=dict.fromkeys(STAMPS[kind]))
    return content.getvalue()


def kind_of(path: Path) -> str:
    """Return the kind of `STAMPS` that a file's name ends in.

    Raises
    ------
    OutputError
        It ends in none.
    """
    kind = path.suffix.removeprefix(".").lower()
    if kind not in STAMPS:
        raise OutputError(f"'{path}' ends in no kind of picture; name it .{', .'.join(STAMPS)}")
    return kind


def check_picture(path: Path) -> None:
    """Try whether `write_picture` could write a file; leave everything as it was.

    Raises
    ------
    OutputError
        It could not.
    """
    kind_of(path)
    check_folder(path.parent, [Path(path.name)])


def write_picture(ax: Axes, path: Path) -> None:
    """Write the figure of axes into a file of the kind that its name ends in; folders are made.

    Raises
    ------
    OutputError
        If the name ends in no kind of `STAMPS`, or the file cannot be written.
    """
    write_folder(path.parent, {Path(path.name): picture(ax, kind_of(path))})
