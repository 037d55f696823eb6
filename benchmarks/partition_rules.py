"""What every partition must keep, checked with nothing but the definitions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import networkx as nx

from parapipe.graph.operator_graph import OperatorGraph
from parapipe.graph.partition import Partition
from parapipe.solvers.problem import operators_of


def breaches(graph: OperatorGraph, found: Partition) -> Iterator[str]:
    """Yield each rule that a partition breaks.

    Subgraphs, and units, hold every operator once, are convex (no path leaves one and comes back)
    and do not wait for each other in a circle; they stand in an order that data can follow.
    Boundaries name what is made before them and read behind them. A merged unit is its units.
    """
    units = [unit.operators for unit in found.units]
    for called, parts in (
        ("subgraphs", [subgraph.operators for subgraph in found.subgraphs]),
        ("units", units),
    ):
        if sorted(v for part in parts for v in part) != list(range(len(graph.operators))):
            yield f"{called} do not hold every operator once"
            return
        yield from _order(graph, called, parts)
    for unit in (*found.units, *(merged.unit for merged in found.merged_units)):
        if sorted(operators_of(unit.structure)) != sorted(unit.operators):
            yield f"the structure of a unit misses or repeats operators: {unit.structure}"
    for merged in found.merged_units:
        inside = units[merged.begin : merged.end]
        if merged.unit.operators != tuple(v for unit in inside for v in unit):
            yield f"the merged unit {merged.begin}-{merged.end} is not its units"
    yield from _boundaries(graph, found.boundaries, units)


def _order(graph: OperatorGraph, called: str, parts: Sequence[Sequence[int]]) -> Iterator[str]:
    part_of = {v: i for i, part in enumerate(parts) for v in part}
    position = {v: i for i, v in enumerate(v for part in parts for v in part)}
    edges = [(u, v) for v in position for u in graph.predecessors(v)]
    quotient: nx.DiGraph[int] = nx.DiGraph(
        [(part_of[u], part_of[v]) for u, v in edges if part_of[u] != part_of[v]]
    )
    # A path that leaves a part and comes back is a circle among parts.
    if not nx.is_directed_acyclic_graph(quotient):
        yield f"{called} wait for each other or are not convex"
    if any(position[u] >= position[v] for u, v in edges):
        yield f"operators of {called} stand before what they read"


def _boundaries(
    graph: OperatorGraph, boundaries: Sequence[Sequence[str]], units: Sequence[Sequence[int]]
) -> Iterator[str]:
    unit_of = {v: i for i, unit in enumerate(units) for v in unit}
    expected: list[set[str]] = [set() for _ in range(len(units) + 1)]
    for name, maker in graph.producer.items():
        last = max((unit_of[v] for v in graph.consumers.get(name, ())), default=0)
        for place in range(unit_of[maker] + 1, last + 1):
            expected[place].add(name)
    if [list(names) for names in boundaries] != [sorted(names) for names in expected]:
        yield "boundaries do not name the live tensors"
