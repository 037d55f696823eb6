"""Subgraphs and units: where a network can be cut into stages (Para-Pipe, Algorithm 1)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

from parapipe.graph.cuts import cut_unit, heavy_operators, is_oversize, mergeable_ranges
from parapipe.graph.operator_graph import OperatorGraph, canonical_order
from parapipe.graph.subgraphs import (
    Dag,
    Series,
    articulations,
    merge_nodes,
    node_dag,
    parallelism,
    structure,
    subgraphs,
)

MOST_PRIMARIES = 16  # graph inputs that are tried as the primary one; each is a pass over the graph


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
class MergedUnit:
    """Consecutive units whose operators could run side by side, as one unit in their place.

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
class Run:
    """Operators that are mapped as one problem, from a boundary on.

    Parameters
    ----------
    end
        The boundary behind it.
    alone
        Whether it may run on one processor, too: if not, other runs do the same there.
    """

    end: int
    unit: Unit
    alone: bool


@dataclass(frozen=True, slots=True)
class CutGraph:
    """Boundaries at which stages may begin and end, and what runs between them.

    Parameters
    ----------
    boundaries
        Names of the activation tensors that are live at each; sorted. Each boundary stands before
        those that can be reached from it.
    runs
        `runs[i]`: what may run from boundary i on.
    line
        Boundaries, ascending, of which each one is reached from the one before; both ends are
        among them.
    stretches
        Operators between each two boundaries of the line.
    few
        Whether they were chosen so that all problems are few, and none need be left out.
    """

    boundaries: tuple[tuple[str, ...], ...]
    runs: tuple[tuple[Run, ...], ...]
    line: tuple[int, ...]
    stretches: tuple[tuple[int, ...], ...]
    few: bool = False

    @property
    def last(self) -> int:
        """The boundary behind all operators."""
        return len(self.runs)


@dataclass(frozen=True)
class Partition:
    """All subgraphs in topological order; together they hold every operator once.

    Parameters
    ----------
    boundaries
        `boundaries[i]`: names of the activation tensors that are live before unit i, that is,
        made by an earlier unit and read by this or a later one; sorted. Graph inputs do not
        count. One more entry than units; the first and the last are empty.
    merged_units
        Alternatives to units, ascending; they do not overlap.
    finer
        Where stages may be cut, if not between units alone.
    """

    subgraphs: tuple[Subgraph, ...]
    boundaries: tuple[tuple[str, ...], ...]
    merged_units: tuple[MergedUnit, ...] = ()
    finer: CutGraph | None = None

    @cached_property
    def cuts(self) -> CutGraph:
        """Where stages may be cut."""
        return self.finer or self.between_units

    @cached_property
    def between_units(self) -> CutGraph:
        """All places between units."""
        runs = [[Run(i, unit, alone=True)] for i, unit in enumerate(self.units, start=1)]
        for each in self.merged_units:
            runs[each.begin].append(Run(each.end, each.unit, alone=False))
        line = tuple(range(len(self.boundaries)))
        stretches = tuple(unit.operators for unit in self.units)
        return CutGraph(self.boundaries, tuple(map(tuple, runs)), line, stretches)

    @cached_property
    def units(self) -> tuple[Unit, ...]:
        """All units in order."""
        return tuple(unit for subgraph in self.subgraphs for unit in subgraph.units)

    @cached_property
    def order(self) -> tuple[int, ...]:
        """All operators in the partition's topological order."""
        return tuple(v for subgraph in self.subgraphs for v in subgraph.operators)

    @cached_property
    def number_of(self) -> dict[int, int]:
        """Number, from 1, of the subgraph that each operator is in."""
        return {
            v: number
            for number, subgraph in enumerate(self.subgraphs, start=1)
            for v in subgraph.operators
        }

    def numbers(self, operators: Iterable[int]) -> tuple[int, ...]:
        """Return the numbers, from 1, of the subgraphs that some operators are in, ascending."""
        return tuple(sorted({self.number_of[v] for v in operators}))


def partition(graph: OperatorGraph) -> Partition:
    """Cut a graph into the paper's subgraphs, and those into units.

    Of the graph inputs that are read first, and of all together, the one is the primary input
    whose cuts give most subgraphs. Source: Para-Pipe, Algorithm 1, in the sound form of
    `subgraphs`. Units that single cuts leave oversize are cut where few tensors are live, see
    `cuts`.
    """
    order = canonical_order(graph)
    ranked = replace(graph, operators=tuple(graph.operators[v] for v in order))
    heavy = heavy_operators(ranked)
    uncut = [_between_articulations(ranked, operators) for operators in _paper_subgraphs(ranked)]
    sides = iter(pairwise(_boundary_tensors(ranked, [unit for units in uncut for unit in units])))
    other = {v: i for i, v in enumerate(canonical_order(ranked, longest=False))}
    cuts = [
        [cut_unit(ranked, unit, *next(sides), heavy, other=other) for unit in units]
        for units in uncut
    ]
    parts = [part for units in cuts for unit in units for part in unit]
    boundaries = _boundary_tensors(ranked, parts)
    merged = mergeable_ranges(ranked, parts, [len(live) for live in boundaries], heavy)
    paper_subgraphs = tuple(
        _make_subgraph(graph, [_to_indices(graph, unit, order) for unit in units]) for units in cuts
    )
    units = [unit.operators for subgraph in paper_subgraphs for unit in subgraph.units]
    merged_units = tuple(
        MergedUnit(begin, end, make_unit(graph, [v for unit in units[begin:end] for v in unit]))
        for begin, end in merged
    )
    return Partition(paper_subgraphs, boundaries, merged_units)


def _to_indices(
    graph: OperatorGraph, unit: Sequence[Sequence[int]], order: Sequence[int]
) -> list[list[int]]:
    """Return the parts of a unit, given by places in an order, by indices into the graph.

    The operators stand as in the graph, but for oversize units, which have an order of their own.
    """
    parts = [[order[v] for v in part] for part in unit]
    operators = [v for part in parts for v in part]
    return parts if is_oversize(graph, operators) else [sorted(part) for part in parts]


def _paper_subgraphs(graph: OperatorGraph) -> Iterator[list[int]]:
    """Yield the operators of each of the paper's subgraphs."""
    nodes = merge_nodes(graph)
    dag = node_dag(graph, nodes)
    node_of = {v: i for i, operators in enumerate(nodes) for v in operators}
    sinks = sorted({node_of[graph.producer[name]] for name in graph.outputs})
    best: list[list[int]] = []
    for readers in _primary_readers(graph):
        candidate = _merge_linear(subgraphs(dag, {node_of[v] for v in readers}, sinks), dag)
        best = max(best, candidate, key=len)
    for run in best:
        yield sorted(v for i in run for v in nodes[i])


def _primary_readers(graph: OperatorGraph) -> list[tuple[int, ...]]:
    """Return the readers of all graph inputs, and of each by itself: of many, of the first."""
    each = dict.fromkeys(graph.consumers[name] for name in graph.inputs if name in graph.consumers)
    tried = sorted(each)[:MOST_PRIMARIES]
    everything = tuple(sorted({v for readers in each for v in readers}))
    return list(dict.fromkeys([everything, *(readers for readers in each if readers in tried)]))


def _merge_linear(runs: list[list[int]], dag: Dag) -> list[list[int]]:
    """Join consecutive subgraphs of one node each, where each reads only the one before."""
    merged: list[list[int]] = []
    for before, nodes in pairwise([[], *runs]):
        if (
            len(nodes) == len(before) == 1
            and dag.predecessors[nodes[0]] == set(before)
            and len(dag.predecessors[before[0]]) <= 1
        ):
            merged[-1] += nodes
        else:
            merged.append([*nodes])
    return merged


def _make_subgraph(graph: OperatorGraph, units: Sequence[Sequence[Sequence[int]]]) -> Subgraph:
    """Return a subgraph of some units, each given as the parts that it was cut into."""
    whole_units = [[v for part in parts for v in part] for parts in units]
    steps = (step for unit in whole_units for step in make_unit(graph, unit).structure)
    operators = [v for unit in whole_units for v in unit]
    return Subgraph(
        tuple(make_unit(graph, part) for parts in units for part in parts),
        parallelism(operators, {v: graph.successors(v) for v in operators}),
        branches=next((len(step) for step in steps if not isinstance(step, int)), 1),
    )


def _between_articulations(graph: OperatorGraph, operators: list[int]) -> list[list[int]]:
    """Cut a subgraph into the units between its articulations."""
    successors = {v: graph.successors(v) for v in operators}
    entries = {v for v in operators if not successors.keys() >= set(graph.predecessors(v))}
    ends = [end + 1 for end in articulations(operators, successors, entries)]
    return [operators[begin:end] for begin, end in pairwise([0, *ends])]


def make_unit(graph: OperatorGraph, operators: Sequence[int]) -> Unit:
    """Return a unit of operators in topological order."""
    successors = {v: graph.successors(v) for v in operators}
    return Unit(tuple(operators), structure(operators, successors))


def _boundary_tensors(
    graph: OperatorGraph, units: Sequence[Sequence[int]]
) -> tuple[tuple[str, ...], ...]:
    unit_by_operator = {v: i for i, operators in enumerate(units) for v in operators}
    live: list[list[str]] = [[] for _ in range(len(units) + 1)]
    for name, producer in graph.producer.items():
        readers = [unit_by_operator[v] for v in graph.consumers.get(name, ())]
        for boundary in range(unit_by_operator[producer] + 1, max(readers, default=-1) + 1):
            live[boundary].append(name)
    return tuple(tuple(sorted(names)) for names in live)


def live_behind(graph: OperatorGraph, operators: Iterable[int]) -> tuple[str, ...]:
    """Return the activation tensors that some operators make and others read; sorted."""
    inside = {*operators}
    return tuple(
        sorted(
            name
            for v in inside
            for name in graph.operators[v].outputs
            if not inside.issuperset(graph.consumers.get(name, ()))
        )
    )
