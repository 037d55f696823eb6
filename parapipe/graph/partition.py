"""Subgraphs and units: where a network can be cut into stages (Para-Pipe, Algorithm 1)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from parapipe.graph.cuts import alternatives, cut, heavy_operators
from parapipe.graph.operator_graph import OperatorGraph

MOST_PRIMARIES = 16  # graph inputs that are tried as the primary one; each is a pass over the graph

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
class Span:
    """Consecutive units whose operators could run side by side, as a unit in their place.

    Parameters
    ----------
    begin, end
        Range of units, the end exclusive.
    unit
        All their operators.
    """

    begin: int
    end: int
    unit: Unit


@dataclass(frozen=True, slots=True)
class Partition:
    """All subgraphs in topological order; together they hold every operator once.

    Parameters
    ----------
    boundaries
        `boundaries[i]`: names of the activation tensors that are live before unit i, that is,
        made by an earlier unit and read by this or a later one; sorted. Graph inputs do not
        count. One more entry than units; the first and the last are empty.
    spans
        Alternatives to units, ascending; they do not overlap.
    """

    subgraphs: tuple[Subgraph, ...]
    boundaries: tuple[tuple[str, ...], ...]
    spans: tuple[Span, ...] = ()

    @property
    def units(self) -> tuple[Unit, ...]:
        """All units in order."""
        return tuple(unit for subgraph in self.subgraphs for unit in subgraph.units)

    @property
    def order(self) -> tuple[int, ...]:
        """All operators in the partition's topological order."""
        return tuple(v for subgraph in self.subgraphs for v in subgraph.operators)

    def numbers(self, units: Iterable[int]) -> tuple[int, ...]:
        """Return the numbers, from 1, of the subgraphs that some units are in, ascending."""
        number_of = [
            number
            for number, subgraph in enumerate(self.subgraphs, start=1)
            for _ in subgraph.units
        ]
        return tuple(sorted({number_of[unit] for unit in units}))


def partition(graph: OperatorGraph) -> Partition:
    """Cut a graph into the paper's subgraphs, and those into units.

    Of the graph inputs that are read first, and of all together, the one is the primary input
    whose cuts give most subgraphs. Source: Para-Pipe, Algorithm 1, in the sound form of
    `regions`. Units that single cuts leave oversize are cut where few tensors are live, see `cuts`.
    """
    from parapipe.graph.regions import group_dag, merge_light, regions

    groups = merge_light(graph)
    dag = group_dag(graph, groups)
    group_of = {v: i for i, group in enumerate(groups) for v in group}
    sinks = sorted({group_of[graph.producer[name]] for name in graph.outputs})
    best: list[list[list[int]]] = []
    for readers in _primaries(graph):
        sources = {group_of[v] for v in readers}
        found = _merge_linear(regions(dag, sources, sinks), dag)
        if len(found) > len(best):
            best = found
    runs = [
        [v for region in run for v in sorted(v for g in region for v in groups[g])] for run in best
    ]
    heavy = heavy_operators(graph)
    subgraphs = _subgraphs(graph, runs, heavy)
    units = [unit.operators for subgraph in subgraphs for unit in subgraph.units]
    boundaries = _boundaries(graph, units)
    spans = tuple(
        Span(begin, end, _unit(graph, [v for unit in units[begin:end] for v in unit]))
        for begin, end in alternatives(graph, units, [len(live) for live in boundaries], heavy)
    )
    return Partition(subgraphs, boundaries, spans)


def _primaries(graph: OperatorGraph) -> list[tuple[int, ...]]:
    """Return the readers of all graph inputs, and of each by itself: of many, of the first."""
    each = dict.fromkeys(graph.consumers[name] for name in graph.inputs if name in graph.consumers)
    tried = sorted(each)[:MOST_PRIMARIES]
    return [
        tuple(sorted({v for readers in each for v in readers})),
        *(readers for readers in each if readers in tried),
    ]


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


def _subgraphs(
    graph: OperatorGraph, runs: list[list[int]], heavy: Sequence[bool]
) -> tuple[Subgraph, ...]:
    """Cut runs behind articulations, then oversize units where few tensors are live."""
    from parapipe.graph.branches import parallelism

    firsts = [_between_articulations(graph, run) for run in runs]
    boundaries = iter(pairwise(_boundaries(graph, [unit for units in firsts for unit in units])))
    found = []
    for run, units in zip(runs, firsts, strict=True):
        pieces = [piece for unit in units for piece in cut(graph, unit, *next(boundaries), heavy)]
        widths = (
            len(step)
            for unit in units
            for step in _unit(graph, unit).structure
            if not isinstance(step, int)
        )
        width = parallelism(run, {v: graph.successors(v) for v in run})
        cut_up = tuple(_unit(graph, piece) for piece in pieces)
        found.append(Subgraph(cut_up, width, branches=next(widths, 1)))
    return tuple(found)


def _between_articulations(graph: OperatorGraph, operators: list[int]) -> list[list[int]]:
    from parapipe.graph.branches import articulations

    successors = {v: graph.successors(v) for v in operators}
    entries = {v for v in operators if not successors.keys() >= set(graph.predecessors(v))}
    ends = [end + 1 for end in articulations(operators, successors, entries)]
    return [operators[begin:end] for begin, end in pairwise([0, *ends])]


def _unit(graph: OperatorGraph, operators: Sequence[int]) -> Unit:
    from parapipe.graph.branches import structure

    successors = {v: graph.successors(v) for v in operators}
    return Unit(tuple(operators), structure(operators, successors))


def _boundaries(
    graph: OperatorGraph, units: Sequence[Sequence[int]]
) -> tuple[tuple[str, ...], ...]:
    unit_of = {v: i for i, operators in enumerate(units) for v in operators}
    live: list[list[str]] = [[] for _ in range(len(units) + 1)]
    for name, producer in graph.producer.items():
        readers = [unit_of[v] for v in graph.consumers.get(name, ())]
        for boundary in range(unit_of[producer] + 1, max(readers, default=-1) + 1):
            live[boundary].append(name)
    return tuple(tuple(sorted(names)) for names in live)
