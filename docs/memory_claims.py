"""Writes the tables of orders and of recomputation into memory.md: python -m docs.memory_claims."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from docs.networks import NETWORKS
from parapipe.cost.cost_table import build_cost_table
from parapipe.graph.onnx_import import import_proto
from parapipe.graph.operator_graph import ModelSource, OperatorGraph
from parapipe.graph.partition import partition
from parapipe.graph.rewrites import fuse
from parapipe.mappings.memory import order_problem
from parapipe.memory_search.low_memory import low_memory_order
from parapipe.memory_search.recompute import Rows
from parapipe.platform.load import load_platform
from parapipe.solvers.memory.least_memory import least_order, working_set_bytes
from parapipe.solvers.memory.orders import PRIORITIES, order_by
from parapipe.zoo.registry import build

PAGE = Path(__file__).with_name("memory.md")
_TABLE = re.compile(r"(<!-- (orders|recompute): .*? -->\n).*?(?=\n\n|\Z)", re.DOTALL)
PLATFORM, PROCESSOR = "amlogic-a311d-2024", "big"
STEP = 1 / 200  # of the limits that are tried


def orders() -> Iterator[str]:
    """Yield the lines of the table of all models of the zoo."""
    names = " | ".join(PRIORITIES)
    yield f"| model | no reuse | {names} | of `map` | least | reuse saves | proven |"
    yield f"|---|{'---:|' * (len(PRIORITIES) + 4)}---|"
    for model in NETWORKS:
        yield row(model)


def row(model: str) -> str:
    """Return the table's row of a model."""
    graph = fused(model)
    problem = order_problem(graph, range(len(graph.operators)))
    peaks = [problem.peak_bytes(order_by(problem, each)) for each in PRIORITIES.values()]
    peaks.append(problem.peak_bytes(low_memory_order(graph, range(len(graph.operators)))))
    least = least_order(problem)
    cells = [
        f"`{model}`",
        *(f"{size_bytes / 1e6:.2f}" for size_bytes in (problem.total_bytes, *peaks)),
        f"{least.peak_bytes / 1e6:.2f}",
        f"{1 - least.peak_bytes / problem.total_bytes:.1%}",
        "yes" if least.proven else f"gap {least.gap:.1%}",
    ]
    return f"| {' | '.join(cells)} |"


def recomputed() -> Iterator[str]:
    """Yield the lines of the table of models whose peak is above all that one operator needs."""
    yield "| model | least order | bound | with recomputation | saved | time | energy | proven |"
    yield "|---|---:|---:|---:|---:|---:|---:|---|"
    for model in NETWORKS:
        graph = fused(model)
        problem = order_problem(graph, range(len(graph.operators)))
        least_bytes, floor = least_order(problem).peak_bytes, working_set_bytes(problem)
        if floor < least_bytes:
            peak_bytes, time, energy, proven = _lowest(graph, least_bytes)
            cells = [
                f"`{model}`",
                f"{least_bytes / 1e6:.2f}",
                f"{floor / 1e6:.2f}",
                f"{peak_bytes / 1e6:.2f}",
                f"{1 - peak_bytes / least_bytes:.1%}",
                f"+{time:.1%}",
                f"+{energy:.1%}",
                "yes" if proven else "no",
            ]
            yield f"| {' | '.join(cells)} |"


def _lowest(graph: OperatorGraph, least_bytes: int) -> tuple[int, float, float, bool]:
    """Return the lowest peak found, what it adds to time and energy, and if it is proven."""
    costs = build_cost_table(graph, load_platform(PLATFORM))
    p = costs.processors.index(PROCESSOR)
    spent = [(costs.time_s(v, p), costs.energy_j(v, p)) for v in range(len(graph.operators))]
    all_s, all_j = (sum(each) for each in zip(*spent, strict=True))
    size_bytes = {name: tensor.size_bytes for name, tensor in graph.tensors.items()}
    rows = Rows(graph, partition(graph), [each[0] for each in spent], size_bytes.__getitem__)
    best = least_bytes, 0.0, 0.0
    for step in range(1, 1 + int(1 / STEP)):
        row, proven = rows.within(int(least_bytes * (1 - step * STEP)))
        if row is None:
            return *best, proven
        time_s, energy_j = (sum(each) for each in zip(*(spent[v] for v in row.runs), strict=True))
        best = row.peak_bytes, time_s / all_s - 1, energy_j / all_j - 1
    return *best, True


def fused(model: str) -> OperatorGraph:
    """Return a model of the zoo as it is mapped."""
    proto = build(model, weightless=True)
    return fuse(import_proto(proto, source=ModelSource(model, ""), granularity="onnx"))


if __name__ == "__main__":
    tables = {"orders": "\n".join(orders()), "recompute": "\n".join(recomputed())}
    text = PAGE.read_text(encoding="utf-8")
    found = _TABLE.sub(lambda match: match[1] + tables[match[2]], text)
    PAGE.write_text(found, encoding="utf-8")
