"""The subgraphs of a model and what goes between them, as a picture."""

from __future__ import annotations

import networkx as nx
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from parapipe.documents.inspection import InspectionDocument
from parapipe.figures.axes import picture
from parapipe.figures.structure_dot import flow_label, subgraph_lines

LAYER_IN = 0.62  # inches from one layer to the next
COLUMN_IN = 4.2
Place = tuple[float, float]


def structure_svg(document: InspectionDocument) -> bytes:
    """Return the picture as SVG; the same document, the same bytes."""
    places = _places(document)
    width = 1 + max(x for x, _ in places.values()) - min(x for x, _ in places.values())
    height = 1 + max(y for _, y in places.values())
    figure = Figure(figsize=(COLUMN_IN * width, LAYER_IN * (height + 1)))
    ax = figure.add_axes((0, 0, 1, 1))
    plot_structure(document, ax)
    return picture(ax)


def plot_structure(document: InspectionDocument, ax: Axes) -> None:
    """Draw a box per subgraph on `ax`, each in the layer below all that it reads from.

    A subgraph's row says which layer it is in by the longest way to it; subgraphs of one layer do
    not wait for each other. Edges carry the bytes of what goes along them.
    """
    places = _places(document)
    for flow in document.subgraph_flows:
        begin, end = places[flow.source], places[flow.target]
        skips = end[1] - begin[1] > 1
        ax.annotate(
            "", end, begin, zorder=1,
            arrowprops={
                "arrowstyle": "-|>", "color": "0.45", "linewidth": 0.8, "shrinkA": 15,
                "shrinkB": 15, "connectionstyle": f"arc3,rad={0.4 if skips else 0}",
            },
        )  # fmt: skip
        bend = 0.2 * (end[1] - begin[1]) * LAYER_IN / COLUMN_IN if skips else 0.0
        middle = ((begin[0] + end[0]) / 2 - bend, (begin[1] + end[1]) / 2)
        ax.text(
            middle[0] + 0.01, middle[1], flow_label(flow), fontsize=6, color="0.3", va="center",
            parse_math=False,
        )  # fmt: skip
    for row in document.subgraph_table:
        ax.text(
            *places[row.number], "\n".join(subgraph_lines(row)), fontsize=7, ha="center",
            va="center", zorder=2, parse_math=False,
            bbox={"boxstyle": "round", "facecolor": "white", "edgecolor": "0.3", "linewidth": 0.8},
        )  # fmt: skip
    across = [x for x, _ in places.values()]
    ax.set_xlim(min(across) - 0.5, max(across) + 0.5)
    ax.set_ylim(max(y for _, y in places.values()) + 1, -1)
    ax.set_axis_off()


def _places(document: InspectionDocument) -> dict[int, Place]:
    """Return column and layer of each subgraph, centred."""
    flows: nx.DiGraph[int] = nx.DiGraph()
    flows.add_nodes_from(row.number for row in document.subgraph_table)
    flows.add_edges_from((flow.source, flow.target) for flow in document.subgraph_flows)
    return {
        number: (column - (len(layer) - 1) / 2, float(depth))
        for depth, layer in enumerate(nx.topological_generations(flows))
        for column, number in enumerate(sorted(layer))
    }
