"""Convex subgraphs between single-operator cuts: what Algorithm 1 of Para-Pipe finds, made sound.

The literal algorithm walks from the model's input and can loop or overstep cuts where a network
has several outputs or side inputs. Dominators give the same cuts wherever it is well defined.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import networkx as nx

from parapipe.graph.lifetimes import Lifetime, frugal_order
from parapipe.graph.operator_graph import OperatorGraph

Dag: TypeAlias = "nx.DiGraph[int]"  # nodes are integers in topological order


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
    dag: Dag = nx.DiGraph()
    dag.add_nodes_from(range(len(nodes)))
    for v in range(len(graph.operators)):
        dag.add_edges_from(
            (node_of[u], node_of[v]) for u in graph.predecessors(v) if node_of[u] != node_of[v]
        )
    return dag


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
    root = -1
    rooted = dag.copy()
    rooted.add_edges_from((root, source) for source in sources)
    found = nx.immediate_dominators(rooted, root)
    return {node: idom for node, idom in found.items() if node != root}


def _labels(dag: Dag, cuts: set[int], dominator_of: dict[int, int]) -> list[int]:
    """Subgraph of every node, named by a cut: its own, or the first one ahead of it."""
    joined = nx.utils.UnionFind(cuts)
    label = [-1] * dag.number_of_nodes()
    for node in reversed(range(dag.number_of_nodes())):
        if node in cuts:
            label[node] = node
            continue
        first, *others = sorted({label[successor] for successor in dag.successors(node)})
        label[node] = first
        joined.union(first, *(cut for cut in others if not _dominates(first, cut, dominator_of)))
    return [joined[cut] for cut in label]


def _dominates(cut: int, other: int, dominator_of: dict[int, int]) -> bool:
    while other > cut:
        other = dominator_of.get(other, -1)
    return other == cut


def _ordered(dag: Dag, label: list[int]) -> list[list[int]]:
    """Collapse cycles between subgraphs and list them so that few of their results wait."""
    quotient: Dag = nx.DiGraph()
    quotient.add_nodes_from(label)
    quotient.add_edges_from((label[u], label[v]) for u, v in dag.edges if label[u] != label[v])
    component_of: dict[int, int] = nx.condensation(quotient).graph["mapping"]
    members: dict[int, list[int]] = {}
    for node, name in enumerate(label):
        members.setdefault(component_of[name], []).append(node)
    found = sorted(members.values(), key=lambda nodes: nodes[-1])
    subgraph_of = {node: i for i, nodes in enumerate(found) for node in nodes}
    lifetimes = [
        Lifetime(subgraph_of[node], readers)
        for node in dag
        if (
            readers := frozenset(subgraph_of[v] for v in dag.successors(node)) - {subgraph_of[node]}
        )
    ]
    return [found[i] for i in frugal_order(len(found), lifetimes)]
