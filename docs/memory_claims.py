"""Writes the table of orders into memory.md: python docs/memory_claims.py."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from parapipe.graph.fusion import fuse
from parapipe.graph.onnx_import import import_proto
from parapipe.graph.operator_graph import ModelSource, OperatorGraph
from parapipe.mapping.memory.orders import PRIORITIES, least_order, order_by
from parapipe.pipeline.memory_order import order_problem
from parapipe.zoo.registry import build, examples

PAGE = Path(__file__).with_name("memory.md")
_TABLE = re.compile(r"(<!-- orders: .*? -->\n).*?(?=\n\n|\Z)", re.DOTALL)


def orders() -> Iterator[str]:
    """Yield the lines of the table of all models of the zoo."""
    yield f"| model | no reuse | {' | '.join(PRIORITIES)} | least | reuse saves | proven |"
    yield f"|---|{'---:|' * (len(PRIORITIES) + 3)}---|"
    for model in examples():
        yield row(model)


def row(model: str) -> str:
    """Return the table's row of a model."""
    graph = fused(model)
    problem = order_problem(graph, range(len(graph.operators)))
    peaks = [problem.peak_bytes(order_by(problem, each)) for each in PRIORITIES.values()]
    least = least_order(problem)
    cells = [
        f"`{model}`",
        *(f"{size_bytes / 1e6:.2f}" for size_bytes in (problem.total_bytes, *peaks)),
        f"{least.peak_bytes / 1e6:.2f}",
        f"{1 - least.peak_bytes / problem.total_bytes:.1%}",
        "yes" if least.proven else f"gap {least.gap:.1%}",
    ]
    return f"| {' | '.join(cells)} |"


def fused(model: str) -> OperatorGraph:
    """Return a model of the zoo as it is mapped."""
    proto = build(model, weightless=True)
    return fuse(import_proto(proto, source=ModelSource(model, ""), granularity="onnx"))


if __name__ == "__main__":
    table = "\n".join(orders())
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(_TABLE.sub(lambda match: match[1] + table, text), encoding="utf-8")
