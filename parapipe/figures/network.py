"""The network subgraph by subgraph, as a configuration cuts and places it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.patches import Patch, Rectangle

from parapipe.figures.network_layout import SubgraphLayout, layout
from parapipe.figures.palette import Look, Looks
from parapipe.figures.timeline import flows, timeline
from parapipe.graph.parts.origins import origins
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
    pairs = ((origin[maker], origin[reader]) for maker, reader in flows(plan))
    read = [(maker, reader) for maker, reader in dict.fromkeys(pairs) if maker != reader]
    layouts = layout(subgraphs, read)
    corners = _corners(layouts)
    places = {
        operator: (x + column + 0.5, y + level)
        for laid, (x, y) in zip(layouts, corners, strict=True)
        for operator, (column, level) in laid.places.items()
    }
    _flows(read, places, {name: bar.processor for name, bar in bars.items()}, ax)
    for operator, (x, y) in places.items():
        look = looks[bars[operator].processor]
        _box((x - BOX[0] / 2, y - BOX[1] / 2), *BOX, look, ax)
    stages = [stage.processors for stage in time.stages]
    for i, (laid, corner) in enumerate(zip(layouts, corners, strict=True)):
        _frame(f"{i + 1}", laid, corner, ax)
        counts = Counter(bars[operator].stage for operator in subgraphs[i])
        left, top = corner[0], corner[1] - laid.levels / 2 - 0.3
        for stage, count in sorted(counts.items()):
            width = laid.columns * count / counts.total()
            for k, name in enumerate(reversed(stages[stage])):
                _box((left, top - 0.32 * k), width, 0.24, looks[name], ax)
            left += width
    _bounds(layouts, corners, ax)
    _legend(looks, {name for names in stages for name in names}, ax)


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


def _flows(
    read: Sequence[tuple[str, str]], places: Mapping[str, Point], on: Mapping[str, str], ax: Axes
) -> None:
    """Draw lines; one that goes to another line of the picture is cut into its two ends."""
    for source, target in read:
        (x1, y1), (x2, y2) = places[source], places[target]
        ends = [((x1, x2), (y1, y2))]
        if x2 < x1:
            ends = [((x1, x1 + 0.9), (y1, y1)), ((x2 - 0.9, x2), (y2, y2))]
        crosses = on[source] != on[target]
        for xs, ys in ends:
            ax.plot(xs, ys, color="0.15" if crosses else "0.7", linewidth=0.6, zorder=1)


def _box(corner: Point, width: float, height: float, look: Look, ax: Axes) -> None:
    box = Rectangle(
        corner, width, height, facecolor=look.colour, hatch=look.hatch, edgecolor="white",
        linewidth=0.3, zorder=3,
    )  # fmt: skip
    ax.add_patch(box)


def _frame(name: str, laid: SubgraphLayout, corner: Point, ax: Axes) -> None:
    x, y = corner[0], corner[1] - laid.levels / 2
    ax.add_patch(Rectangle((x, y), laid.columns, laid.levels, facecolor="0.96", zorder=0))
    below = y + laid.levels + 0.15
    ax.text(x + laid.columns / 2, below, name, fontsize=6, ha="center", va="top", color="0.4")


def _bounds(layouts: Sequence[SubgraphLayout], corners: Sequence[Point], ax: Axes) -> None:
    most = max(laid.levels for laid in layouts) / 2
    right = max(x + laid.columns for (x, _), laid in zip(corners, layouts, strict=True))
    ax.set_xlim(-0.5, right + 0.5)
    ax.set_ylim(corners[-1][1] + most + 1.4, -most - 1.6)
    ax.set_aspect("equal")
    ax.set_axis_off()


def _legend(looks: Looks, used: Collection[str], ax: Axes) -> None:
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
