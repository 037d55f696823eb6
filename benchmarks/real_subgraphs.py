"""Mapping problems of real networks: subgraphs of the paper with parallel branches, priced.

An instance is a subgraph alone, on some processors of a platform. What it reads from before is at
home on the first of these processors, and where it leaves its outputs is free. Every ONNX node is
an operator of its own (granularity "onnx"), as in the paper. Times are the platform's: measured,
fitted or nominal; see `profiles/SOURCES.md` and `platforms/SOURCES.md`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from itertools import combinations
from math import inf
from pathlib import Path

import parapipe
from parapipe.cost.cost_table import CostTable, build_cost_table
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.graph.partition import partition
from parapipe.solvers.problem import Flow, MappingProblem


def light_model(name: str) -> str:
    """Return the path of a model that the onnx wheel brings along for its own tests."""
    import onnx

    return str(Path(onnx.__file__).parent / "backend" / "test" / "data" / "light" / f"{name}.onnx")


@cache
def graph_of(model: str) -> OperatorGraph:
    """Return the model's operators, each ONNX node one."""
    return parapipe.load_model(model, granularity="onnx")


@cache
def costs_of(model: str, platform: str) -> CostTable:
    """Return what the model's operators take on the platform."""
    return build_cost_table(graph_of(model), parapipe.load_platform(platform))


@cache
def parallel_subgraphs(model: str) -> Mapping[int, tuple[int, ...]]:
    """Return the operators of each subgraph with parallel branches, by its number from 1."""
    return {
        number: subgraph.operators
        for number, subgraph in enumerate(partition(graph_of(model)).subgraphs, start=1)
        if subgraph.parallelism > 1
    }


def processor_sets(platform: str) -> Iterator[tuple[str, ...]]:
    """Yield every set of two or more processors of a platform, the smaller ones first.

    Sets that differ only by processors that are each other's equal in kind occur once.
    """
    processors = parapipe.load_platform(platform).processors
    seen = set()
    for size in range(2, len(processors) + 1):
        for some in combinations(processors, size):
            kinds = tuple(p.name.rstrip("0123456789") for p in some)
            if kinds not in seen:
                seen.add(kinds)
                yield tuple(p.name for p in some)


def subgraph_problem(
    model: str, number: int, platform: str, processors: Sequence[str]
) -> MappingProblem | None:
    """Return a subgraph as a mapping problem; None if these processors cannot run all of it.

    Processors of the platform that may not be used are left out of its arrays.
    """
    costs, operators = costs_of(model, platform), parallel_subgraphs(model)[number]
    inside = [costs.processors.index(name) for name in processors]
    rows = tuple(tuple(costs.time_s(v, p) for p in inside) for v in operators)
    if any(min(row) == inf for row in rows):
        return None
    flows = tuple(_flows(graph_of(model), costs, operators, inside))
    return MappingProblem(rows, flows, tuple(range(len(operators))))


def _flows(
    graph: OperatorGraph, costs: CostTable, operators: Collection[int], inside: Sequence[int]
) -> Iterator[Flow]:
    local = {v: i for i, v in enumerate(operators)}
    for name in dict.fromkeys(n for v in operators for n in graph.reads(graph.operators[v])):
        producer = graph.producer.get(name)
        if producer is None:
            continue  # a graph input: available everywhere once loaded
        matrix = costs.transfer_matrix(name)
        transfer_s = tuple(tuple(matrix[p][q] for q in inside) for p in inside)
        readers = tuple(local[v] for v in graph.consumers[name] if v in local)
        made_inside = local.get(producer)
        yield Flow(made_inside, readers, transfer_s, 0 if made_inside is None else None)
