"""Writes the tables of orders and of recomputation into memory.md: python docs/memory_claims.py."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from parapipe.cost.cost_table import build_cost_table
from parapipe.graph.fusion import fuse
from parapipe.graph.onnx_import import import_proto
from parapipe.graph.operator_graph import ModelSource, OperatorGraph
from parapipe.graph.partition import partition
from parapipe.mapping.memory.orders import PRIORITIES, least_order, order_by
from parapipe.mapping.memory.recompute import recompute, working_set_bytes
from parapipe.pipeline.memory_order import order_problem
from parapipe.pipeline.thrifty import thrifty_order
from parapipe.platform.load import load_platform
from parapipe.zoo.registry import build, examples

PAGE = Path(__file__).with_name("memory.md")
_TABLE = re.compile(r"(<!-- (orders|recompute): .*? -->\n).*?(?=\n\n|\Z)", re.DOTALL)
PLATFORM, PROCESSOR = "amlogic-a311d", "big"
STEP = 1 / 200  # of the limits that are tried
MOST_OPERATORS = 30  # of a window, unless a single section has more
SEARCHED_S = 10.0  # of CP-SAT for a window, in seconds of its own


def orders() -> Iterator[str]:
    """Yield the lines of the table of all models of the zoo."""
    names = " | ".join(PRIORITIES)
    yield f"| model | no reuse | {names} | of `map` | least | reuse saves | proven |"
    yield f"|---|{'---:|' * (len(PRIORITIES) + 4)}---|"
    for model in examples():
        yield row(model)


def row(model: str) -> str:
    """Return the table's row of a model."""
    graph = fused(model)
    problem = order_problem(graph, range(len(graph.operators)))
    peaks = [problem.peak_bytes(order_by(problem, each)) for each in PRIORITIES.values()]
    peaks.append(problem.peak_bytes(thrifty_order(graph, range(len(graph.operators)))))
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
    for model in examples():
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
    sections = list(_windows(graph))
    best = least_bytes, 0.0, 0.0
    for step in range(1, 1 + int(1 / STEP)):
        limit = int(least_bytes * (1 - step * STEP))
        extra_s = extra_j = 0.0
        peaks = []
        for s, section in enumerate(sections):
            runs, peak_bytes, proven = _runs(graph, sections, s, [each[0] for each in spent], limit)
            if not runs:
                return *best, proven
            counts = Counter(section[v] for v in runs)
            extra_s += sum((n - 1) * spent[v][0] for v, n in counts.items())
            extra_j += sum((n - 1) * spent[v][1] for v, n in counts.items())
            peaks.append(peak_bytes)
        best = max(peaks), extra_s / all_s, extra_j / all_j
    return *best, True


def _windows(graph: OperatorGraph) -> Iterator[tuple[int, ...]]:
    """Yield the sections between points where branches meet, neighbours put together."""
    window: tuple[int, ...] = ()
    for each in partition(graph).subgraphs:
        if window and len(window) + len(each.operators) > MOST_OPERATORS:
            yield window
            window = ()
        window += each.operators
    yield window


def _runs(
    graph: OperatorGraph,
    sections: Sequence[Sequence[int]],
    s: int,
    time_s: Sequence[float],
    limit: int,
) -> tuple[Sequence[int], int, bool]:
    """Return a window's runs within the limit, their peak, and whether that is proven."""
    section = sections[s]
    problem = order_problem(graph, section)
    passing = _passing_bytes(graph, sections, s)
    found = least_order(problem)
    if found.peak_bytes + passing <= limit:
        return found.order, found.peak_bytes + passing, True
    if len(section) > MOST_OPERATORS:
        return (), 0, False
    whole = [round(time_s[v] * 1e9) for v in section]
    again = recompute(problem, found.order, whole, limit - passing, SEARCHED_S)
    return again.runs, again.peak_bytes + passing, again.proven


def _passing_bytes(graph: OperatorGraph, sections: Sequence[Sequence[int]], s: int) -> int:
    """Return the bytes that are alive during a window that neither makes nor reads them."""
    of = {v: i for i, section in enumerate(sections) for v in section}
    passing = 0
    for name, tensor in graph.tensors.items():
        if name not in graph.producer and name not in graph.inputs:
            continue
        made = of[graph.producer[name]] if name in graph.producer else -1
        reads = [of[v] for v in graph.consumers.get(name, ())]
        last = len(sections) if name in graph.outputs else max(reads, default=made)
        if made < s < last and s not in reads:
            passing += tensor.size_bytes
    return passing


def fused(model: str) -> OperatorGraph:
    """Return a model of the zoo as it is mapped."""
    proto = build(model, weightless=True)
    return fuse(import_proto(proto, source=ModelSource(model, ""), granularity="onnx"))


if __name__ == "__main__":
    tables = {"orders": "\n".join(orders()), "recompute": "\n".join(recomputed())}
    text = PAGE.read_text(encoding="utf-8")
    found = _TABLE.sub(lambda match: match[1] + tables[match[2]], text)
    PAGE.write_text(found, encoding="utf-8")
