"""Writes the tables of models.md, which a test compares with the zoo: python docs/models.py."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from parapipe.graph.onnx_import import import_proto
from parapipe.graph.operator_graph import ModelSource, OperatorGraph
from parapipe.graph.partition import partition
from parapipe.graph.rewrites import fuse
from parapipe.zoo.registry import build, builder_of, examples

PAGE = Path(__file__).with_name("models.md")
_TABLE = re.compile(r"(<!-- (\w+): .*? -->\n).*?(?=\n\n|\Z)", re.DOTALL)


def tables() -> dict[str, str]:
    """Return the tables by the word that stands above them on the page."""
    return {"sizes": "\n".join(_sizes()), "sources": "\n".join(_sources())}


def page(text: str, found: dict[str, str]) -> str:
    """Return the page's text with its tables replaced."""
    return _TABLE.sub(lambda match: match[1] + found[match[2]], text)


def _sizes() -> Iterator[str]:
    yield (
        "| model | input | G MACs | operators | once fused | subgraphs | largest | parallelism |\n"
        "|---|---|---:|---:|---:|---:|---:|---:|"
    )
    for name in examples():
        model = build(name, weightless=True)
        graph = import_proto(model, source=ModelSource(name, ""), granularity="onnx")
        subgraphs = partition(graph).subgraphs
        cells = [
            f"`{name}`",
            _input(graph),
            f"{sum(operator.work.macs for operator in graph.operators) / 1e9:.3f}",
            str(len(graph.operators)),
            str(len(fuse(graph).operators)),
            str(len(subgraphs)),
            str(max(len(subgraph.operators) for subgraph in subgraphs)),
            str(max(subgraph.parallelism for subgraph in subgraphs)),
        ]
        yield f"| {' | '.join(cells)} |"


def _input(graph: OperatorGraph) -> str:
    first, *more = graph.inputs
    shape = "×".join(map(str, graph.tensors[first].shape))
    return f"{shape} and {len(more)} more" if more else shape


def _sources() -> Iterator[str]:
    yield "| model | what it is | source |\n|---|---|---|"
    for name in examples():
        text = " ".join((builder_of(name).__doc__ or "").split())
        what = text.partition(". ")[0]
        cited = re.search(r"Source: (.+?, \d{4})", text)
        yield f"| `{name}` | {what} | {cited[1] if cited else ''} |"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), tables()), encoding="utf-8")
    sys.stdout.write(f"wrote {PAGE}\n")
