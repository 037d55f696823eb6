"""`python -m benchmarks.profiling [MODEL]`: whether two profiles of a machine give the same front.

Each of two profiles p gives every operator v a time w_p[v, processor], and so a front F_p. Every
configuration of F_1 ∪ F_2 is priced with both: its operators keep their places and their order, and
start as soon as their processor is free and what they read has arrived. A stage begins with all
that earlier ones made. With L_p and T_p the latencies and periods that follow, the agreement is
Spearman's rank correlation of L_1 with L_2 and of T_1 with T_2 over all configurations. Watched
because a profile whose noise reorders the front is worth nothing, however many digits it has.

On a machine of equal cores many configurations of a front take the same time to within the
noise, and their ranks mean little. So three sets are ranked: the fronts, nothing left out; what
`map` shows of them, at its own resolution; and all two-stage pipelines (a cut behind any
operator, either order of processors) with the processors alone. Beside Spearman's correlation
stands Kendall's over the pairs that can be told apart, by more than 1 % in the mean of both
profiles: concordant less discordant pairs over their number. And the regret is told: how much
longer the best configuration of F_1 takes than that of F_2, both priced by profile 2.

Beside that: the time of the whole network in one session of one thread, against the sum of its
operators' times, which says what measuring operators by themselves does not see.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations, permutations
from math import nan
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import thread_time
from typing import Any

import pandas as pd

import parapipe
from benchmarks.machine import description
from benchmarks.tables import markdown_table, write_csv
from parapipe import ParetoFront
from parapipe.api.load import ZOO
from parapipe.cost.cost_table import CostTable
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.mappings.configuration import Configuration

MODEL = "zoo:googlenet"
RESULTS = Path(__file__).parent / "results"
PROCESSORS = 2
RUNS = 15
MILLI = 1e3
APART = 0.01  # what `map` tells apart: its default resolution


@dataclass(frozen=True, slots=True)
class Priced:
    """A configuration with what it takes by each of two profiles, in milliseconds."""

    stages: str
    kind: str
    latency_1_ms: float
    latency_2_ms: float
    period_1_ms: float
    period_2_ms: float


def replay(
    configuration: Configuration, graph: OperatorGraph, costs: CostTable
) -> tuple[float, float]:
    """Return latency and period in seconds of a configuration at the given costs."""
    made_on: dict[str, int] = {}
    times_s = []
    for stage in configuration.mapping.stages:
        arrived: dict[tuple[str, int], float] = {}
        free_s: dict[int, float] = {}
        for at in stage.placements:
            operator = graph.operators[at.operator]
            ready_s = free_s.get(at.processor, 0.0)
            for name in graph.reads(operator):
                if name in made_on:
                    moved_s = costs.transfer_s(name, made_on[name], at.processor)
                    ready_s = max(ready_s, arrived.get((name, made_on[name]), 0.0) + moved_s)
            end_s = ready_s + costs.time_s(at.operator, at.processor)
            free_s[at.processor] = end_s
            for name in operator.outputs:
                made_on[name] = at.processor
                arrived[name, at.processor] = end_s
        times_s.append(max(free_s.values()))
    return sum(times_s), max(times_s)


def priced(fronts: Sequence[ParetoFront]) -> list[Priced]:
    """Return the configurations of two fronts, equal ones once, each priced by both profiles."""
    found: dict[object, Priced] = {}
    costs = [front.configurations[0].costs for front in fronts]
    for front in fronts:
        for each in front.configurations:
            key = tuple(
                (at.operator, at.processor, number)
                for number, stage in enumerate(each.configuration.mapping.stages)
                for at in stage.placements
            )
            figures = [replay(each.configuration, each.graph, table) for table in costs]
            (latency_1, period_1), (latency_2, period_2) = figures
            milliseconds = (MILLI * s for s in (latency_1, latency_2, period_1, period_2))
            found.setdefault(key, Priced(each.drawing, each.kind, *milliseconds))
    return list(found.values())


def all_cuts(graph: OperatorGraph, tables: Sequence[CostTable]) -> list[Priced]:
    """Return each processor alone and all pipelines of two stages, priced by both profiles."""
    names = tables[0].processors
    count = len(graph.operators)
    found = []
    for p, q in permutations(range(len(names)), 2):
        for cut in range(1, count + 1):
            figures = [_cut(graph, costs, cut, (p, q)) for costs in tables]
            (latency_1, period_1), (latency_2, period_2) = figures
            milliseconds = (MILLI * s for s in (latency_1, latency_2, period_1, period_2))
            kind = "sequential" if cut == count else "pipe-only"
            stages = names[p] if cut == count else f"{names[p]}[:{cut}] | {names[q]}"
            found.append(Priced(stages, kind, *milliseconds))
    return found


def _cut(
    graph: OperatorGraph, costs: CostTable, cut: int, pair: tuple[int, int]
) -> tuple[float, float]:
    """Return latency and period where the first `cut` operators run on p, the others on q."""
    p, q = pair
    later = {name for operator in graph.operators[cut:] for name in graph.reads(operator)}
    live = [name for name in later if name in graph.producer and graph.producer[name] < cut]
    first_s = sum(costs.time_s(v, p) for v in range(cut))
    moved_s = max((costs.transfer_s(name, p, q) for name in live), default=0.0)
    second_s = moved_s + sum(costs.time_s(v, q) for v in range(cut, len(graph.operators)))
    return first_s + second_s, max(first_s, second_s)


def regret(fronts: Sequence[ParetoFront]) -> dict[str, float]:
    """Return how much the best by profile 1 is longer, by profile 2, than the best by profile 2."""
    costs = fronts[1].configurations[0].costs
    least = [
        [
            replay(
                min(front.configurations, key=key).configuration,
                front.configurations[0].graph,
                costs,
            )[figure]
            for front in fronts
        ]
        for figure, key in enumerate((lambda c: c.latency_s, lambda c: c.period_s))
    ]
    return {
        f"regret of {name}": first / second - 1
        for name, (first, second) in zip(("latency", "period"), least, strict=True)
    }


def kendall_apart(first: Sequence[float], second: Sequence[float]) -> tuple[float, int]:
    """Return Kendall's correlation over pairs that differ by more than `APART`, and how many.

    Not a number if there is no such pair.
    """
    means = [a + b for a, b in zip(first, second, strict=True)]
    pairs = [
        (i, j)
        for i, j in combinations(range(len(means)), 2)
        if abs(means[i] - means[j]) > APART * min(means[i], means[j])
    ]
    agreed = sum((first[i] < first[j]) == (second[i] < second[j]) for i, j in pairs)
    return (2 * agreed - len(pairs)) / len(pairs) if pairs else nan, len(pairs)


def agreement(rows: Sequence[Priced]) -> dict[str, float]:
    """Return the rank correlations of latency and period, and the median differences."""
    table = pd.DataFrame([asdict(row) for row in rows])
    ranks = table[["latency_1_ms", "latency_2_ms", "period_1_ms", "period_2_ms"]].rank()
    found = {}
    for figure in ("latency", "period"):
        first, second = f"{figure}_1_ms", f"{figure}_2_ms"
        found[f"rank correlation of {figure}"] = float(ranks[first].corr(ranks[second]))
        apart, pairs = kendall_apart(list(table[first]), list(table[second]))
        found[f"Kendall's correlation of {figure} over {pairs} pairs apart"] = apart
        off = (table[second] / table[first] - 1).abs().median()
        found[f"median difference of {figure}"] = float(off)
    return found


def whole_network_s(model: Path) -> float:
    """Return seconds of the whole network in one session of one thread: the median run."""
    import numpy as np

    from parapipe.profiling.measure import bind_tensors, session

    opened = session(model, 1, "CPUExecutionProvider")
    binding = bind_tensors(opened)
    times_s = []
    for _ in range(RUNS):
        begin_s = thread_time()
        opened.run_with_iobinding(binding)
        times_s.append(thread_time() - begin_s)
    return float(np.median(times_s))


def measure(model: str, folder: Path) -> tuple[list[Priced], dict[str, Any]]:
    """Profile a model twice on this machine; return its configurations and what was found."""
    platform = folder / "machine.yaml"
    parapipe.detect_platform(split=PROCESSORS).write(platform)
    reports, fronts, shown = [], [], []
    for number in (1, 2):
        path = folder / f"profile{number}.csv"
        reports.append(parapipe.profile(model, platform, out=path, operators_only=True))
        stages = parapipe.MapOptions(profiles=[path], interleave="none")
        fronts.append(
            parapipe.map(model, platform, options=stages, resolution=0, note=lambda _note: None)
        )
        shown.append(parapipe.map(model, platform, options=stages, note=lambda _note: None))
    rows, shown_rows = priced(fronts), priced(shown)
    file = folder / "network.onnx"
    if model.startswith(ZOO):
        parapipe.build_zoo(model.removeprefix(ZOO), file)
    else:
        file = Path(model)
    first = fronts[0].configurations[0]
    costs = first.costs
    cuts = all_cuts(first.graph, [front.configurations[0].costs for front in fronts])
    summed_s = [
        sum(costs.time_s(v, p) for v in range(len(costs.entries)))
        for p in range(len(costs.processors))
    ]
    found = {
        "configurations": len(rows),
        "rows measured in each profile": reports[0].measured,
        "of these noisy": f"{reports[0].noisy} and {reports[1].noisy}",
        **agreement(rows),
        "configurations that map shows": len(shown_rows),
        **{f"{name}, as shown": value for name, value in agreement(shown_rows).items()},
        "two-stage cuts and processors alone": len(cuts),
        **{f"{name}, all cuts": value for name, value in agreement(cuts).items()},
        **regret(fronts),
        "whole network in one session, one thread (ms)": MILLI * whole_network_s(file),
        "sum of its operators, median processor (ms)": MILLI * median(summed_s),
    }
    return rows, found


def page(model: str, rows: Sequence[Priced], found: Mapping[str, Any]) -> str:
    """Return the page of results."""
    cells = [[k, f"{v:.4g}" if isinstance(v, float) else v] for k, v in found.items()]
    listed = [
        [r.stages, r.kind, *(f"{v:.2f}" for v in list(asdict(r).values())[2:])]
        for r in sorted(rows, key=lambda row: row.latency_1_ms)
    ]
    head = ["stages", "kind", "latency 1", "latency 2", "period 1", "period 2"]
    return (
        f"# Two profiles of one machine: {model}\n\n"
        + markdown_table(["machine", ""], list(description().items()))
        + "\n\n"
        + markdown_table(["found", ""], cells)
        + "\n\nEvery configuration of both fronts, priced by both profiles, in ms:\n\n"
        + markdown_table(head, listed)
        + "\n"
    )


def main() -> None:
    """Measure the model that is named, or GoogLeNet, and write the results."""
    model = sys.argv[1] if len(sys.argv) > 1 else MODEL
    with TemporaryDirectory() as folder:
        rows, found = measure(model, Path(folder))
    RESULTS.mkdir(exist_ok=True)
    text = page(model, rows, found)
    (RESULTS / "profiling.md").write_text(text, encoding="utf-8")
    write_csv([asdict(row) for row in rows], RESULTS / "profiling.csv")
    print(text)


if __name__ == "__main__":
    main()
