"""Labels beside points that cover no other text and few points, and stay within the axes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING

from parapipe.figures.axes import figure_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FONT_PT = 7.0
BESIDE_PT = 9.0  # between a point and its text
STEP_PT = 4.0  # by which texts are moved up and down
MARGIN_PT = 2.5  # around a text
COVERED = 8.0  # points that a text may rather be away than cover a mark
CROSSED = 12.0  # and than a line to a point crosses a text
UNREADABLE = 3  # points that no text covers more of
LAYOUTS = 5  # until axes keep their place
Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class _Box:
    left: float
    bottom: float
    right: float
    top: float

    def overlaps(self, other: _Box) -> bool:
        across = self.left < other.right and other.left < self.right
        return across and self.bottom < other.top and other.bottom < self.top

    def contains(self, point: Point) -> bool:
        return self.left <= point[0] <= self.right and self.bottom <= point[1] <= self.top

    def crosses(self, line: tuple[Point, Point]) -> bool:
        """Whether a line crosses it."""
        (x, y), (to_x, to_y) = line
        first, last = 0.0, 1.0
        for way, room in (
            (x - to_x, x - self.left), (to_x - x, self.right - x),
            (y - to_y, y - self.bottom), (to_y - y, self.top - y),
        ):  # fmt: skip
            if way == 0:
                if room < 0:
                    return False
            elif way < 0:
                first = max(first, room / way)
            else:
                last = min(last, room / way)
        return first < last


@dataclass(frozen=True, slots=True)
class _Canvas:
    """Axes with what is drawn on them, in pixels; `pixels` are those of a point of type."""

    inside: _Box
    points: Sequence[Point]
    pixels: float
    texts: list[_Box] = field(default_factory=list)
    leaders: list[tuple[Point, Point]] = field(default_factory=list)


def label_points(
    ax: Axes, labels: Iterable[tuple[Sequence[str], Point]], points: Sequence[Point]
) -> None:
    """Write names beside their points, with a line to the point; none where none is readable.

    Parameters
    ----------
    labels
        Names, which stand in several lines where one would be wider than the axes, and the point
        in data coordinates.
    points
        All points that are drawn, which texts cover where nothing else helps.
    """
    figure = figure_of(ax)
    if figure.get_layout_engine() is not None:
        for _ in range(LAYOUTS):  # only then do axes have their place
            before = ax.get_position().bounds
            figure.draw_without_rendering()
            if before == ax.get_position().bounds:
                break
    ax.autoscale_view()  # before asking where points are: limits wait for the first drawing
    within = ax.get_window_extent()
    inside = _Box(within.x0, within.y0, within.x1, within.y1)
    pixels = figure.dpi / 72
    canvas = _Canvas(inside, [_to_pixels(ax, point) for point in points], pixels)
    for names, point in labels:
        text, size = _fit_text(ax, names, within.width)
        at = _to_pixels(ax, point)
        box = _cheapest_box(at, size, canvas)
        if box is None:
            continue
        canvas.texts.append(box)
        canvas.leaders.append(_leader_line(at, box))
        _write_label(ax, text, point, box, pixels)


def _fit_text(ax: Axes, names: Sequence[str], width: float) -> tuple[str, Point]:
    """Return the text of some names, in lines if it would be wide, and its size in pixels."""
    text = ", ".join(names)
    size = _text_size(ax, text)
    if size[0] > width / 2:
        text = ",\n".join(names)
        size = _text_size(ax, text)
    return text, size


def _text_size(ax: Axes, text: str) -> Point:
    trial = ax.text(0, 0, text, fontsize=FONT_PT, transform=ax.transAxes)
    box = trial.get_window_extent()
    trial.remove()
    return box.width, box.height


def _write_label(ax: Axes, text: str, point: Point, box: _Box, pixels: float) -> None:
    """Write a text into its box, with a line from the nearer end to its point."""
    at = _to_pixels(ax, point)
    left = box.left + MARGIN_PT * pixels
    middle = (box.bottom + box.top) / 2
    label = ax.annotate(
        text,
        point,
        xytext=((left - at[0]) / pixels, (middle - at[1]) / pixels),
        textcoords="offset points",
        fontsize=FONT_PT,
        va="center",
        arrowprops={
            "arrowstyle": "-",
            "linewidth": 0.4,
            "color": "0.5",
            "relpos": (0 if box.left > at[0] else 1, 0.5),
            "patchA": None,
            "shrinkA": 0,
            "shrinkB": 0,  # nothing to cut
        },
    )
    label.set_in_layout(False)  # or a long one would squeeze the axes


def _to_pixels(ax: Axes, point: Point) -> Point:
    across, up = ax.transData.transform(point)
    return float(across), float(up)


def _cheapest_box(point: Point, size: Point, canvas: _Canvas) -> _Box | None:
    """Return the box of a text that costs least, a margin included; None where none is free."""
    width, height = (each + 2 * MARGIN_PT * canvas.pixels for each in size)
    best, least = None, inf
    for distance, box in _candidates(point, (width, height), canvas):
        if distance >= least:
            break
        if any(map(box.overlaps, canvas.texts)):
            continue
        covers = sum(map(box.contains, canvas.points))
        if covers > UNREADABLE:
            continue
        own = _leader_line(point, box)
        crossed = sum(map(box.crosses, canvas.leaders))
        crossed += sum(each.crosses(own) for each in canvas.texts)
        cost = distance + COVERED * covers + CROSSED * crossed
        if cost < least:
            best, least = box, cost
    return best


def _leader_line(point: Point, box: _Box) -> tuple[Point, Point]:
    """Return the line from a point to the nearer end of a text."""
    return point, (box.left if box.left > point[0] else box.right, (box.bottom + box.top) / 2)


def _candidates(point: Point, size: Point, canvas: _Canvas) -> Iterator[tuple[float, _Box]]:
    """Yield boxes within the axes, the nearest first, and how far they are, in points.

    They are to the right and to the left, moved sideways into the axes.
    """
    (width, height), inside = size, canvas.inside
    beside, step = BESIDE_PT * canvas.pixels, STEP_PT * canvas.pixels
    for number in range(2 * int((inside.top - inside.bottom) / step) + 2):
        up = (number + 1) // 2 * step * (1 if number % 2 else -1)
        bottom, top = point[1] + up - height / 2, point[1] + up + height / 2
        if inside.bottom <= bottom and top <= inside.top:
            for wanted in (point[0] + beside, point[0] - beside - width):
                left = min(max(wanted, inside.left), inside.right - width)
                yield abs(up) / canvas.pixels, _Box(left, bottom, left + width, top)
