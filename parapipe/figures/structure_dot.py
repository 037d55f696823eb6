"""The subgraphs of a model and what goes between them, in Graphviz's language."""

from __future__ import annotations

from parapipe.documents.inspection import InspectionDocument, SubgraphFlow, SubgraphRow

MEGA = 1e6
LONGEST = 36  # letters of a name; the end tells more than the beginning


def structure_dot(document: InspectionDocument) -> str:
    """Return a directed graph in the DOT language: a box per subgraph, an edge per flow.

    Names are shown as they stand in the model, and what cannot be printed as Python escapes it.
    Source: the grammar of DOT, graphviz.org/doc/info/lang.html: in a quoted string, a quotation
    mark and, for labels, a backslash are escaped.
    """
    boxes = (
        f"  s{row.number} [label={_quoted(*subgraph_lines(row))}];"
        for row in document.subgraph_table
    )
    edges = (
        f"  s{flow.source} -> s{flow.target} [label={_quoted(flow_label(flow))}];"
        for flow in document.subgraph_flows
    )
    return "\n".join(
        [
            f"digraph {_quoted(document.model)} {{",
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
    first, last = (_end(printable(name)) for name in (row.first_operator, row.last_operator))
    return ", ".join(counts), first if one else f"{first} … {last}"


def flow_label(flow: SubgraphFlow) -> str:
    """Say how much goes from one subgraph to another."""
    several = f"{len(flow.tensors)} tensors, " if len(flow.tensors) > 1 else ""
    return f"{several}{flow.size_bytes / MEGA:.2f} MB"


def printable(name: str) -> str:
    """Return a name with what cannot be printed written out."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in name)


def _end(name: str) -> str:
    return name if len(name) <= LONGEST else f"…{name[1 - LONGEST :]}"


def _quoted(*lines: str) -> str:
    escaped = (printable(line).replace("\\", "\\\\").replace('"', '\\"') for line in lines)
    text = "\\n".join(escaped)
    return f'"{text}"'
