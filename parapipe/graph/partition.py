"""Subgraphs and units: where a network can be cut into stages (Para-Pipe, Algorithm 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from parapipe.graph.operator_graph import OperatorGraph

if TYPE_CHECKING:
    from parapipe.graph.branches import Series
    from parapipe.graph.regions import Dag


@dataclass(frozen=True, slots=True)
class Unit:
    """The smallest run of operators between two places where stages may be cut.

    Parameters
    ----------
    operators
        Indices into the graph's operators, in topological order.
    structure
        The same operators as series and parallel branches, nested ones included.
    """

    operators: tuple[int, ...]
    structure: Series


@dataclass(frozen=True, slots=True)
class Subgraph:
    """A subgraph of the paper: a linear run, or parallel branches with their join.

    Parameters
    ----------
    units
        Its units in order; a linear run has one unit per operator.
    parallelism
        Size of the largest set of operators none of which waits for another.
    branches
        Number of parallel branches that leave its first fork (1 for a linear run).
    """

    units: tuple[Unit, ...]
    parallelism: int
    branches: int

    @property
    def operators(self) -> tuple[int, ...]:
        """Indices of all its operators, in topological order."""
        return tuple(v for unit in self.units for v in unit.operators)


@dataclass(frozen=True, slots=True)
class Partition:
    """All subgraphs in topological order; together they hold every operator once.

    Parameters
    ----------
    boundaries
        `boundaries[i]`: names of the activation tensors that are live before unit i, that is,
        made by an earlier unit and read by this or a later one; sorted. Graph inputs do not
        count. One more entry than units; the first and the last are empty.
    """

    subgraphs: tuple[Subgraph, ...]
    boundaries: tuple[tuple[str, ...], ...]

    @property
    def units(self) -> tuple[Unit, ...]:
        """All units in order."""
        return tuple(unit for subgraph in self.subgraphs for unit in subgraph.units)

    @property
    def order(self) -> tuple[int, ...]:
        """All operators in the partition's topological order."""
        return tuple(v for subgraph in self.subgraphs for v in subgraph.operators)


def partition(graph: OperatorGraph) -> Partition:
    """Cut a graph into the paper's subgraphs, and those into units.

    Of all graph inputs, and of all together, the one is the primary input whose cuts give most
    subgraphs. Source: Para-Pipe, Algorithm 1, in the sound form of `regions`.
    """
    from parapipe.graph.regions import group_dag, merge_light, regions

    groups = merge_light(graph)
    dag = group_dag(graph, groups)
    group_of = {v: i for i, group in enumerate(groups) for v in group}
    sinks = sorted({group_of[graph.producer[name]] for name in graph.outputs})
    best: list[list[list[int]]] = []
    for names in [graph.inputs, *((name,) for name in graph.inputs)]:
        sources = {group_of[v] for name in names for v in graph.consumers.get(name, ())}
        found = _merge_linear(regions(dag, sources, sinks), dag)
        if len(found) > len(best):
            best = found
    subgraphs = tuple(
        _subgraph(graph, [[v for g in region for v in groups[g]] for region in run]) for run in best
    )
    return Partition(subgraphs, _boundaries(graph, subgraphs))


def _merge_linear(found: list[list[int]], dag: Dag) -> list[list[list[int]]]:
    """Join consecutive regions of one group each, where each reads only the one before."""
    runs: list[list[list[int]]] = []
    for region in found:
        previous = runs[-1][-1] if runs else []
        if (
            len(region) == len(previous) == 1
            and set(dag.predecessors(region[0])) == set(previous)
            and dag.in_degree(previous[0]) <= 1
        ):
            runs[-1].append(region)
        else:
            runs.append([region])
    return runs


def _subgraph(graph: OperatorGraph, run: list[list[int]]) -> Subgraph:
    from parapipe.graph.branches import articulations, parallelism, structure

    operators = [v for region in run for v in sorted(region)]
    successors = {v: graph.successors(v) for v in operators}
    entries = {v for v in operators if not successors.keys() >= set(graph.predecessors(v))}
    units = []
    begin = 0
    for end in articulations(operators, successors, entries):
        members = operators[begin : end + 1]
        units.append(Unit(tuple(members), structure(members, successors)))
        begin = end + 1
    widths = [len(step) for unit in units for step in unit.structure if not isinstance(step, int)]
    return Subgraph(
        tuple(units), parallelism(operators, successors), branches=widths[0] if widths else 1
    )


def _boundaries(
    graph: OperatorGraph, subgraphs: tuple[Subgraph, ...]
) -> tuple[tuple[str, ...], ...]:
    units = [unit for subgraph in subgraphs for unit in subgraph.units]
    unit_of = {v: i for i, unit in enumerate(units) for v in unit.operators}
    live: list[list[str]] = [[] for _ in range(len(units) + 1)]
    for name, producer in graph.producer.items():
        readers = [unit_of[v] for v in graph.consumers.get(name, ())]
        for boundary in range(unit_of[producer] + 1, max(readers, default=-1) + 1):
            live[boundary].append(name)
    return tuple(tuple(sorted(names)) for names in live)
