"""Writes the table of clusters into strategies.md: python -m docs.stream_clusters.

Times are those of the Amlogic A311D's GPU; of operators that it does not run, those of the fastest
processor.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from math import inf
from pathlib import Path

import parapipe
from docs.networks import NETWORKS
from parapipe.api.load import load_platform
from parapipe.cost.cost_table import build_cost_table
from parapipe.files.atomic import write_atomically
from parapipe.solvers.problem import Flow, MappingProblem
from parapipe.solvers.replay import replay
from parapipe.solvers.streams import assign_streams, cluster_readers, clusters

PAGE = Path(__file__).with_name("strategies.md")
BOARD, PROCESSOR = "amlogic-a311d", "gpu"
STREAMS, SIZES = (2, 4), (1, 10)
Clusters = Sequence[Sequence[int]]
_TABLE = re.compile(r"(<!-- clusters: .*? -->\n).*?(?=\n\n|\Z)", re.DOTALL)


def table() -> Iterator[str]:
    """Yield the lines of the table."""
    heads = [f"M = {most}: clusters | gain of 2 | of 4 | loads" for most in SIZES]
    yield f"| model | operators | {' | '.join(heads)} |"
    yield f"|---|---:|{'---:|' * 4 * len(SIZES)}"
    for model in NETWORKS:
        yield row(model)


def row(model: str) -> str:
    """Return the table's row of a model."""
    graph = parapipe.load_model(f"zoo:{model}", note=lambda _: None)
    platform = load_platform(BOARD)
    costs = build_cost_table(graph, platform)
    every, p = range(len(graph.operators)), platform.index(PROCESSOR)
    rows = [[costs.time_s(v, q) for q in range(len(platform.names))] for v in every]
    times_s = [times[p] if times[p] < inf else min(times) for times in rows]
    readers = [graph.successors(v) for v in every]
    cells = [f"`{model}`", f"{len(every)}"]
    for most in SIZES:
        found = clusters(times_s, readers, most)
        between = cluster_readers(found, readers)
        two, four = (assign_streams(between, count) for count in STREAMS)
        cells += [
            f"{len(found)}",
            *(f"{_gain(found, streams, times_s, between):.2f}" for streams in (two, four)),
            f"{_spread(found, four, times_s):.0%}",
        ]
    return f"| {' | '.join(cells)} |"


def _gain(
    found: Clusters,
    streams: Sequence[int],
    times_s: Sequence[float],
    between: Sequence[frozenset[int]],
) -> float:
    """Return the time of all operators over that on some streams, each in the clusters' order."""
    count = max(streams) + 1
    at_once = ((0.0,) * count,) * count
    problem = MappingProblem(
        tuple((sum(times_s[v] for v in cluster),) * count for cluster in found),
        tuple(Flow(c, tuple(sorted(each)), at_once) for c, each in enumerate(between)),
        tuple(range(len(found))),
    )
    return sum(times_s) / replay(problem, streams, range(len(found))).makespan_s


def _spread(found: Clusters, streams: Sequence[int], times_s: Sequence[float]) -> float:
    """Return how far the times of the streams differ, as a share of the longest."""
    loads_s = [0.0] * (max(streams) + 1)
    for cluster, stream in zip(found, streams, strict=True):
        loads_s[stream] += sum(times_s[v] for v in cluster)
    return 1 - min(loads_s) / max(loads_s)


if __name__ == "__main__":
    lines = "\n".join(table())
    text = PAGE.read_text(encoding="utf-8")
    write_atomically(PAGE, _TABLE.sub(lambda match: match[1] + lines, text).encode())
