"""Convex subgraphs between single-operator cuts: what Algorithm 1 of Para-Pipe finds, made sound.

The literal algorithm walks from the model's input and can loop or overstep cuts where a network
has several outputs or side inputs. Dominators give the same cuts wherever it is well defined.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from parapipe.graph.lifetimes import Lifetime, frugal_order
from parapipe.graph.operator_graph import OperatorGraph


@dataclass(frozen=True, slots=True)
class Dag:
    """Merged nodes, numbered in topological order: which each one waits for, and which for it."""

    predecessors: tuple[frozenset[int], ...]
    successors: tuple[frozenset[int], ...]


def merge_nodes(graph: OperatorGraph) -> list[list[int]]:
    """Merge every operator without MACs into its only producer if nothing else reads that one.

    This is `mergeNodes` of the paper. Returns the operators of each node that is left, a chain in
    order; ascending by first operator.
    """
    node_of: dict[int, list[int]] = {}
    nodes: list[list[int]] = []
    outputs = set(graph.outputs)
    for v, operator in enumerate(graph.operators):
        producers = graph.predecessors(v)
        mergeable = (
            operator.work.macs == 0
            and len(producers) == 1
            and graph.successors(producers[0]) == (v,)
            and outputs.isdisjoint(graph.operators[producers[0]].outputs)
            and not any(name in graph.inputs for name in graph.reads(operator))
        )
        if mergeable:
            node_of[v] = node_of[producers[0]]
            node_of[v].append(v)
        else:
            node_of[v] = [v]
            nodes.append(node_of[v])
    return nodes


def node_dag(graph: OperatorGraph, nodes: list[list[int]]) -> Dag:
    """Return the DAG over merged nodes, numbered in their order, which is topological."""
    node_of = {v: i for i, operators in enumerate(nodes) for v in operators}
    before: list[set[int]] = [set() for _ in nodes]
    behind: list[set[int]] = [set() for _ in nodes]
    for v, node in node_of.items():
        for other in {node_of[u] for u in graph.predecessors(v)} - {node}:
            before[node].add(other)
            behind[other].add(node)
    return Dag(tuple(map(frozenset, before)), tuple(map(frozenset, behind)))


def subgraphs(dag: Dag, sources: Iterable[int], sinks: Iterable[int]) -> list[list[int]]:
    """Cut the DAG at the dominators, seen from `sources`, of each of `sinks`.

    Returns convex subgraphs in topological order, each an ascending list of nodes. A node that
    `sources` do not reach joins the earliest subgraph that needs it.
    """
    dominator_of = _dominators(dag, sources)
    cuts = set(sinks)
    for sink in tuple(cuts):
        node = dominator_of.get(sink, -1)
        while node >= 0 and node not in cuts:
            cuts.add(node)
            node = dominator_of[node]
    return _ordered(dag, _labels(dag, cuts, dominator_of))


def _dominators(dag: Dag, sources: Iterable[int]) -> dict[int, int]:
    """Immediate dominator of every node that `sources` reach; -1 where only the root dominates."""
    root, begins = -1, set(sources)
    found: dict[int, int] = {}
    for node, before in enumerate(dag.predecessors):
        ways: list[int] = [*(u for u in before if u in found), *((root,) if node in begins else ())]
        if not ways:
            continue
        while len(ways := sorted(set(ways))) > 1:  # no dominator is behind what it dominates
            ways.append(found[ways.pop()])
        found[node] = ways[0]
    return found


def _labels(dag: Dag, cuts: set[int], dominator_of: dict[int, int]) -> list[int]:
    """Subgraph of every node, named by a cut: its own, or the first one ahead of it."""
    joined = {cut: cut for cut in cuts}
    label = [-1] * len(dag.successors)
    for node in reversed(range(len(label))):
        if node in cuts:
            label[node] = node
            continue
        first, *others = sorted({label[successor] for successor in dag.successors[node]})
        label[node] = first
        for cut in others:
            if not _dominates(first, cut, dominator_of):
                joined[_name(cut, joined)] = _name(first, joined)
    return [_name(cut, joined) for cut in label]


def _name(cut: int, joined: dict[int, int]) -> int:
    """Return the cut that names all those that were joined to this one."""
    while joined[cut] != cut:
        joined[cut] = cut = joined[joined[cut]]
    return cut


def _dominates(cut: int, other: int, dominator_of: dict[int, int]) -> bool:
    while other > cut:
        other = dominator_of.get(other, -1)
    return other == cut


def _ordered(dag: Dag, label: list[int]) -> list[list[int]]:
    """Collapse cycles between subgraphs and list them so that few of their results wait."""
    joined = {name: name for name in label}
    while cycle := _cycle(dag, [_name(name, joined) for name in label]):
        for name in cycle:
            joined[_name(name, joined)] = _name(cycle[0], joined)
    members: dict[int, list[int]] = {}
    for node, name in enumerate(label):
        members.setdefault(_name(name, joined), []).append(node)
    found = sorted(members.values(), key=lambda nodes: nodes[-1])
    subgraph_of = {node: i for i, nodes in enumerate(found) for node in nodes}
    lifetimes = [
        Lifetime(subgraph_of[node], readers)
        for node, behind in enumerate(dag.successors)
        if (readers := frozenset(subgraph_of[v] for v in behind) - {subgraph_of[node]})
    ]
    return [found[i] for i in frugal_order(len(found), lifetimes)]


def _cycle(dag: Dag, label: list[int]) -> list[int]:
    """Return subgraphs that wait for each other in a circle; none if there is no circle."""
    waits: dict[int, set[int]] = {name: set() for name in label}
    for node, before in enumerate(dag.predecessors):
        waits[label[node]] |= {label[u] for u in before} - {label[node]}
    try:
        TopologicalSorter(waits).prepare()
    except CycleError as error:
        cycle: list[int] = error.args[1]
        return cycle
    return []
