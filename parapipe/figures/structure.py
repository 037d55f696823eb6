"""The subgraphs of a model and what goes between them: in Graphviz's language, and as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

from parapipe.documents.inspection import InspectionDocument, SubgraphFlow, SubgraphRow
from parapipe.figures.axes import own_axes, picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MEGA = 1e6
LONGEST = 36  # letters of a name; the end tells more than the beginning


def structure_dot(document: InspectionDocument) -> str:
    """Return a directed graph in the DOT language: a box per subgraph, an edge per flow.

    Names are shown as they stand in the model, and what cannot be printed as Python escapes it.
    Source: the grammar of DOT, graphviz.org/doc/info/lang.html: in a quoted string, a quotation
    mark and, for labels, a backslash are escaped.
    """
    boxes = (
        f"  s{row.number} [label={_quote(*subgraph_lines(row))}];"
        for row in document.subgraph_table
    )
    edges = (
        f"  s{flow.source} -> s{flow.target} [label={_quote(flow_label(flow))}];"
        for flow in document.subgraph_flows
    )
    return "\n".join(
        [
            f"digraph {_quote(document.model)} {{",
            '  node [shape=box, fontname="sans-serif", fontsize=10];',
            '  edge [fontname="sans-serif", fontsize=9];',
            *boxes,
            *edges,
            "}",
            "",
        ]
    )


def subgraph_lines(row: SubgraphRow) -> tuple[str, str]:
    """Say in two lines what a subgraph holds."""
    one = row.operators == 1
    counts = [f"{row.number}: {row.operators} operator{'' if one else 's'}"]
    if row.branches > 1:
        counts.append(f"{row.branches} branches")
    if row.parallelism > 1:
        counts.append(f"{row.parallelism} in parallel")
    if row.macs:
        counts.append(f"{row.macs / MEGA:.1f} M MACs")
    first, last = (_shorten(printable(name)) for name in (row.first_operator, row.last_operator))
    return ", ".join(counts), first if one else f"{first} … {last}"


def flow_label(flow: SubgraphFlow) -> str:
    """Say how much goes from one subgraph to another."""
    several = f"{len(flow.tensors)} tensors, " if len(flow.tensors) > 1 else ""
    return f"{several}{flow.size_bytes / MEGA:.2f} MB"


def printable(name: str) -> str:
    """Return a name with what cannot be printed written out."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in name)


def _shorten(name: str) -> str:
    return name if len(name) <= LONGEST else f"…{name[1 - LONGEST :]}"


def _quote(*lines: str) -> str:
    escaped = (printable(line).replace("\\", "\\\\").replace('"', '\\"') for line in lines)
    text = "\\n".join(escaped)
    return f'"{text}"'


LAYER_IN = 0.62  # inches from one layer to the next
COLUMN_IN = 4.2
Place = tuple[float, float]


def structure_svg(document: InspectionDocument) -> bytes:
    """Return the picture as SVG; the same document, the same bytes."""
    places = _layer_places(document)
    width = 1 + max(x for x, _ in places.values()) - min(x for x, _ in places.values())
    height = 1 + max(y for _, y in places.values())
    nothing = (0.0, 0.0, 0.0, 0.0)
    ax = own_axes(COLUMN_IN * width, LAYER_IN * (height + 1), beside_in=nothing)
    plot_structure(document, ax)
    return picture(ax)


def plot_structure(document: InspectionDocument, ax: Axes) -> None:
    """Draw a box per subgraph on `ax`, each in the layer below all that it reads from.

    A subgraph's row says which layer it is in by the longest way to it; subgraphs of one layer do
    not wait for each other. Edges carry the bytes of what goes along them.
    """
    places = _layer_places(document)
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


def _layer_places(document: InspectionDocument) -> dict[int, Place]:
    """Return column and layer of each subgraph, centred."""
    import networkx as nx

    flows: nx.DiGraph[int] = nx.DiGraph()
    flows.add_nodes_from(row.number for row in document.subgraph_table)
    flows.add_edges_from((flow.source, flow.target) for flow in document.subgraph_flows)
    return {
        number: (column - (len(layer) - 1) / 2, float(depth))
        for depth, layer in enumerate(nx.topological_generations(flows))
        for column, number in enumerate(sorted(layer))
    }
