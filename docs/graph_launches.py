"""Writes the table of captured graphs into strategies.md: python -m docs.graph_launches.

PPD's Table 4 (Xu et al. 2025) on a GPU by assumption: the times of its networks at batch 1 on 1 to
8 streams, each operator launched by itself, or clusters as captured graphs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import parapipe
from parapipe.cost.cost_table import build_cost_table
from parapipe.files.atomic import write_atomically
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.platform.divided import variant_with
from parapipe.platform.platform import Platform
from parapipe.solvers.problem import Flow, MappingProblem
from parapipe.solvers.replay import replay
from parapipe.solvers.streams import assign_streams, cluster_readers, clusters

PAGE = Path(__file__).with_name("strategies.md")
STREAMS, MOST = (1, 2, 4, 8), 10
OPERATOR_S, GRAPH_S, WAIT_S = 8e-6, 12e-6, 3e-6
PUBLISHED_MS = {
    "resnet-50": ((4.72, 4.36, 3.60, 3.69), (4.80, 4.08, 3.65, 3.66)),
    "inception-v3": ((7.97, 5.79, 6.07, 6.64), (8.03, 5.92, 6.05, 6.63)),
    "hrnet-w18": ((18.99, 12.75, 9.50, 10.84), (21.02, 13.41, 12.25, 12.71)),
    "pnasnet-5-large": ((27.92, 26.99, 29.33, 29.88), (44.65, 31.32, 29.38, 29.65)),
    "bert-base": ((37.1, 27.7, 28.5, 27.6), (37.1, 30.2, 28.3, 28.0)),
}
_TABLE = re.compile(r"(<!-- captured graphs: .*? -->\n).*?(?=\n\n|\Z)", re.DOTALL)


def gpu() -> Platform:
    """Return a GPU of an RTX 3090's peak, of which a network at batch 1 gets a small part.

    Everything beside peak and bandwidth is assumed: the share of the peak is such that ResNet-50
    takes about what is published; four operators fill the GPU, and more share it.
    """
    guess = {"source": "assumption"}
    text = "Peak and bandwidth of the data sheet; all else is assumed, for directions alone."
    return Platform.model_validate(
        {
            "schema": "parapipe/platform/1",
            "name": "gpu-with-graphs",
            "board": {"idle_power_w": 0.0, **guess},
            "memory": {"bandwidth_bytes_per_s": 936e9, **guess},
            "processors": [
                {
                    "name": "gpu",
                    "kind": "gpu",
                    "backend": "nominal",
                    "data_types": ["float32", "int64", "int32", "bool"],
                    "clock": {
                        "default_frequency_hz": 1.7e9,
                        "points": [{"frequency_hz": 1.7e9, "voltage_v": 1.0}],
                        **guess,
                    },
                    "launch": {"overhead_s": OPERATOR_S, "graph_s": GRAPH_S, **guess},
                    "peak": {
                        "macs_per_s": {
                            "float32": 17.8e12,
                            "int64": 17.8e12,
                            "int32": 17.8e12,
                            "bool": 17.8e12,
                        },
                        **guess,
                    },
                    "memory": {"bandwidth_bytes_per_s": 936e9, **guess},
                    "rates": {"compute": {"default": 0.06}, "bandwidth": {"default": 0.3}, **guess},
                    "power": {
                        "alpha_w_per_v2_hz": 1e-7,
                        "beta_w_per_v": 50.0,
                        "utilisation": {"default": 1.0},
                        **guess,
                    },
                    "streams": {
                        "slowdown": [max(1.0, count / 4) for count in range(1, max(STREAMS) + 1)],
                        "hand_over": {"latency_s": WAIT_S},
                        **guess,
                    },
                    "input": {"latency_s": 0.0, **guess},
                    "output": {"latency_s": 0.0, **guess},
                    **guess,
                }
            ],
            "links": [],
            "sources": {"assumption": {"provenance": "nominal", "title": text, "reasoning": text}},
        }
    )


def times_ms(graph: OperatorGraph) -> tuple[list[float], list[float]]:
    """Return the milliseconds of a frame by the number of streams: in clusters, and without."""
    board, every = gpu(), range(len(graph.operators))
    readers = [graph.successors(v) for v in every]
    captured_ms, single_ms = [], []
    for count in STREAMS:
        name = f"gpu-1of{count}" if count > 1 else "gpu"
        variant = variant_with(board, [name]) if count > 1 else board
        p = variant.index(name)
        captured = build_cost_table(graph, variant, profiles=())
        single = build_cost_table(graph, variant.without_captured_graphs(), profiles=())
        parts = clusters([captured.time_s(v, p) for v in every], readers, MOST)
        cluster_s = [GRAPH_S + sum(captured.time_s(v, p) for v in part) for part in parts]
        captured_ms.append(_makespan_s(cluster_s, cluster_readers(parts, readers), count) * 1e3)
        operator_s = [single.time_s(v, p) for v in every]
        single_ms.append(_makespan_s(operator_s, [*map(frozenset, readers)], count) * 1e3)
    return captured_ms, single_ms


def _makespan_s(time_s: Sequence[float], readers: Sequence[frozenset[int]], count: int) -> float:
    """Return the time of work in order on so many streams, by Algorithm 2 of PPD."""
    waits = tuple(tuple(WAIT_S * (s != t) for t in range(count)) for s in range(count))
    problem = MappingProblem(
        tuple((each_s,) * count for each_s in time_s),
        tuple(Flow(v, tuple(sorted(each)), waits) for v, each in enumerate(readers) if each),
        tuple(range(len(time_s))),
    )
    return replay(problem, assign_streams(readers, count), range(len(time_s))).makespan_s


def network(model: str) -> OperatorGraph:
    """Return a network of the zoo as GPUs run it: activations are operators of their own."""
    return parapipe.load_model(f"zoo:{model}", granularity="onnx", note=lambda _: None)


def table() -> Iterator[str]:
    """Yield the lines of the table."""
    counts = " | ".join(map(str, STREAMS))
    yield f"| model | operators | as | {counts} streams | published: {counts} |"
    yield f"|---|---:|---|{'---:|' * 2 * len(STREAMS)}"
    for model in PUBLISHED_MS:
        yield from rows(model)


def rows(model: str) -> Iterator[str]:
    """Yield the table's two rows of a model."""
    graph = network(model)
    both = zip(("graphs", "operators"), times_ms(graph), PUBLISHED_MS[model], strict=True)
    for kind, own_ms, published_ms in both:
        cells = [f"{each:.2f}" for each in (*own_ms, *published_ms)]
        yield f"| `{model}` | {len(graph.operators)} | {kind} | {' | '.join(cells)} |"


if __name__ == "__main__":
    lines = "\n".join(table())
    text = PAGE.read_text(encoding="utf-8")
    write_atomically(PAGE, _TABLE.sub(lambda match: match[1] + lines, text).encode())
