"""The network subgraph by subgraph, as a configuration cuts and places it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.patches import Patch, Rectangle

from parapipe.figures.palette import Look, Looks
from parapipe.figures.timeline import operator_flows, timeline
from parapipe.graph.part_marks import origins
from parapipe.plan.schema import Plan

LINE = 48  # columns of operators in a line of the picture
GAP = 1.0  # columns between subgraphs
BOX = (0.76, 0.62)
Point = tuple[float, float]


def plot_network(plan: Plan, subgraphs: Sequence[Sequence[str]], looks: Looks, ax: Axes) -> None:
    """Draw every operator, coloured by its processor, and the strip of its stage above a subgraph.

    Where frames are interleaved, strips are of the operators that work on the same frame.
    The axes have no units and are hidden. Subgraphs are given by the ids of their operators, in the
    stored order. A split operator has the colour of its last part.
    """
    origin = origins(plan.operators, [operator for each in subgraphs for operator in each])
    time = timeline(plan)
    bars = {origin[bar.operator]: bar for bar in time.bars}
    pairs = ((origin[maker], origin[reader]) for maker, reader in operator_flows(plan))
    edges = [(maker, reader) for maker, reader in dict.fromkeys(pairs) if maker != reader]
    layouts = layout(subgraphs, edges)
    corners = _corners(layouts)
    places = {
        operator: (x + column + 0.5, y + level)
        for laid, (x, y) in zip(layouts, corners, strict=True)
        for operator, (column, level) in laid.places.items()
    }
    _plot_flows(edges, places, {name: bar.processor for name, bar in bars.items()}, ax)
    for operator, (x, y) in places.items():
        look = looks[bars[operator].processor]
        _plot_box((x - BOX[0] / 2, y - BOX[1] / 2), *BOX, look, ax)
    stages = [stage.processors for stage in time.stages]
    for i, (laid, corner) in enumerate(zip(layouts, corners, strict=True)):
        _plot_frame(f"{i + 1}", laid, corner, ax)
        counts = Counter(bars[operator].stage for operator in subgraphs[i])
        left, top = corner[0], corner[1] - laid.levels / 2 - 0.3
        for stage, count in sorted(counts.items()):
            width = laid.columns * count / counts.total()
            for k, name in enumerate(reversed(stages[stage])):
                _plot_box((left, top - 0.32 * k), width, 0.24, looks[name], ax)
            left += width
    most = max(laid.levels for laid in layouts) / 2
    right = max(x + laid.columns for (x, _), laid in zip(corners, layouts, strict=True))
    ax.set_xlim(-0.5, right + 0.5)
    ax.set_ylim(corners[-1][1] + most + 1.4, -most - 1.6)
    ax.set_aspect("equal")
    ax.set_axis_off()
    _plot_legend(looks, {name for names in stages for name in names}, ax)


def _corners(layouts: Sequence[SubgraphLayout]) -> list[Point]:
    """Return left and middle of each subgraph; a line is as high as the widest needs."""
    corners: list[Point] = []
    x, y = 0.0, 0.0
    most = max(laid.levels for laid in layouts)
    for laid in layouts:
        if x > 0 and x + laid.columns > LINE:
            x, y = 0.0, y + most + 2.8
        corners.append((x, y))
        x += laid.columns + GAP
    return corners


def _plot_flows(
    edges: Sequence[tuple[str, str]], places: Mapping[str, Point], on: Mapping[str, str], ax: Axes
) -> None:
    """Draw lines; one that goes to another line of the picture is cut into its two ends."""
    for source, target in edges:
        (x1, y1), (x2, y2) = places[source], places[target]
        ends = [((x1, x2), (y1, y2))]
        if x2 < x1:
            ends = [((x1, x1 + 0.9), (y1, y1)), ((x2 - 0.9, x2), (y2, y2))]
        crosses = on[source] != on[target]
        for xs, ys in ends:
            ax.plot(xs, ys, color="0.15" if crosses else "0.7", linewidth=0.6, zorder=1)


def _plot_box(corner: Point, width: float, height: float, look: Look, ax: Axes) -> None:
    box = Rectangle(
        corner, width, height, facecolor=look.colour, hatch=look.hatch, edgecolor="white",
        linewidth=0.3, zorder=3,
    )  # fmt: skip
    ax.add_patch(box)


def _plot_frame(name: str, laid: SubgraphLayout, corner: Point, ax: Axes) -> None:
    x, y = corner[0], corner[1] - laid.levels / 2
    ax.add_patch(Rectangle((x, y), laid.columns, laid.levels, facecolor="0.96", zorder=0))
    below = y + laid.levels + 0.15
    ax.text(x + laid.columns / 2, below, name, fontsize=6, ha="center", va="top", color="0.4")


def _plot_legend(looks: Looks, used: Collection[str], ax: Axes) -> None:
    handles = [
        Patch(facecolor=look.colour, hatch=look.hatch, edgecolor="white", label=name)
        for name, look in looks.items()
        if name in used
    ]
    ax.legend(
        handles=handles, loc="upper left", bbox_to_anchor=(0, 0), ncols=len(handles), fontsize=7,
        frameon=False, title="operators: processor; strips: processors of the stage",
        title_fontsize=7,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class SubgraphLayout:
    """A subgraph in the picture: its size, and column and level of each operator.

    A column holds operators that are equally far from the subgraph's start; levels are counted from
    the middle, which is 0.
    """

    columns: int
    levels: int
    places: Mapping[str, tuple[int, float]]


def layout(
    subgraphs: Sequence[Sequence[str]], flows: Sequence[tuple[str, str]]
) -> tuple[SubgraphLayout, ...]:
    """Lay out the operators of each subgraph, the order of the operators being topological.

    An operator stays in the level of one that it reads if no other continues it; else it takes the
    free level that is nearest. An operator that nothing stands beside is in the middle.
    """
    reads: dict[str, list[str]] = {}
    for source, target in flows:
        reads.setdefault(target, []).append(source)
    return tuple(_layout(operators, reads) for operators in subgraphs)


def _layout(operators: Sequence[str], reads: Mapping[str, Sequence[str]]) -> SubgraphLayout:
    column: dict[str, int] = {}
    level: dict[str, int] = {}
    free_from: list[int] = []  # by level, the first column that is free
    ends: list[str] = []  # by level, the operator that stands last in it
    last_read = _last_columns(operators, reads, column)
    for operator in operators:
        at = column[operator]
        source_levels = [level[source] for source in reads.get(operator, ()) if source in level]
        free = [i for i, until in enumerate(free_from) if until <= at]
        continued = [i for i in source_levels if i in free and ends[i] in reads[operator]]
        if continued:
            chosen = min(continued)
        elif free:
            wanted = sum(source_levels) / len(source_levels) if source_levels else 0.0
            chosen = min(free, key=lambda i: (abs(i - wanted), i))
        else:
            chosen = len(free_from)
            free_from.append(0)
            ends.append("")
        level[operator] = chosen
        ends[chosen] = operator
        # what is read further on keeps its level free of others that would hide the line
        free_from[chosen] = max(at + 1, last_read[operator])
    places = _centre_levels(column, level, last_read)
    return SubgraphLayout(max(column.values()) + 1, len(free_from), places)


def _last_columns(
    operators: Sequence[str], reads: Mapping[str, Sequence[str]], column: dict[str, int]
) -> dict[str, int]:
    """Fill in the columns; return the column of the last reader of each operator."""
    last = dict.fromkeys(operators, 0)
    for operator in operators:
        sources = [source for source in reads.get(operator, ()) if source in column]
        column[operator] = max((column[source] + 1 for source in sources), default=0)
        for source in sources:
            last[source] = max(last[source], column[operator])
    return last


def _centre_levels(
    column: Mapping[str, int], level: Mapping[str, int], last_read: Mapping[str, int]
) -> dict[str, tuple[int, float]]:
    beside: dict[int, set[int]] = {}
    for operator, first in column.items():
        for at in range(first, max(first + 1, last_read[operator])):
            beside.setdefault(at, set()).add(level[operator])
    middle = max(level.values()) / 2
    return {
        operator: (at, 0.0 if len(beside[at]) == 1 else level[operator] - middle)
        for operator, at in column.items()
    }
