"""Convex subgraphs between single-operator cuts, and the branches of a unit.

The literal algorithm walks from the model's input and can loop or overstep cuts where a network
has several outputs or side inputs. Dominators give the same cuts wherever it is well defined.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from itertools import accumulate

from parapipe.graph.lifetimes import Lifetime, low_memory_order
from parapipe.graph.operator_graph import OperatorGraph

# A series is run step by step: an operator, or parallel branches, each a series again.
Series = tuple["int | Parallel", ...]
Parallel = tuple[Series, ...]

Successors = Mapping[int, Sequence[int]]


def articulations(
    operators: Sequence[int], successors: Successors, entries: Collection[int] = ()
) -> list[int]:
    """Positions i such that operators behind i read nothing made before i, nor come from outside.

    `operators` stand in topological order; edges that leave them do not count. What comes from
    outside: operators that none of the others feeds, and `entries`. The last position is always
    an articulation.
    """
    position = {v: i for i, v in enumerate(operators)}
    fed = {s for v in operators for s in successors.get(v, ())}
    positions = []
    reach = max(i for i, v in enumerate(operators) if v not in fed or v in entries)
    for i, v in enumerate(operators):
        if reach <= i:
            positions.append(i)  # reach: the furthest reader of what was made before i
        reach = max([reach, *(position[s] for s in successors.get(v, ()) if s in position)])
    return positions


def structure(operators: Sequence[int], successors: Successors) -> Series:
    """Split operators into series and parallel branches, nested ones included.

    A part that is neither (its branches are entangled) is listed as a plain series in
    topological order.
    """
    steps: list[int | Parallel] = []
    begin = 0
    for end in articulations(operators, successors):
        steps.extend(_fork_structure(operators[begin : end + 1], successors))
        begin = end + 1
    return tuple(steps)


def _fork_structure(operators: Sequence[int], successors: Successors) -> Series:
    """Structure of operators with no articulation but the last."""
    if len(operators) == 1:
        return tuple(operators)
    for forked in (operators, operators[:-1]):
        parts = _components(forked, successors)
        if len(parts) > 1:
            branches = tuple(structure(part, successors) for part in parts)
            return (branches, *operators[len(forked) :])
    return tuple(operators)


def _components(operators: Sequence[int], successors: Successors) -> list[list[int]]:
    """Weakly connected components, each in order, ordered by first operator."""
    parts = {v: [v] for v in operators}  # of each operator, all that it is connected with
    for v in operators:
        for s in successors.get(v, ()):
            small, large = sorted((parts[v], parts.get(s, parts[v])), key=len)
            if small is not large:
                large += small
                parts.update(dict.fromkeys(small, large))
    rank = {v: i for i, v in enumerate(operators)}
    distinct = {id(part): part for part in parts.values()}  # in the order of first operators
    return [sorted(part, key=rank.__getitem__) for part in distinct.values()]


def parallelism(operators: Sequence[int], successors: Successors) -> int:
    """Size of the maximum antichain: operators none of which waits for another.

    By Dilworth's theorem this is the number of operators less a maximum matching of the
    transitive closure. That grows with the square of their number, so chains are counted as one
    operator first, and the rest is divided at operators that wait for all before them and that all
    behind them wait for: no antichain has members on both sides.

    Parameters
    ----------
    operators
        In topological order.
    """
    nodes = _chain_successors(operators, successors)
    return max((_largest_antichain(part, nodes) for part in _between_barriers(nodes)), default=1)


def _chain_successors(operators: Sequence[int], successors: Successors) -> list[set[int]]:
    """Successors of each chain, chains numbered in a topological order."""
    inside = set(operators)
    behind = {v: {s for s in successors.get(v, ()) if s in inside} for v in operators}
    feeds = Counter(s for after in behind.values() for s in after)
    chain_of: dict[int, int] = {}
    chains = 0
    for v in operators:
        if v not in chain_of:
            chain_of[v] = chains
            chains += 1
        if len(behind[v]) == 1 and feeds[follower := next(iter(behind[v]))] == 1:
            chain_of[follower] = chain_of[v]
    successor_sets: list[set[int]] = [set() for _ in range(chains)]
    for v, after in behind.items():
        successor_sets[chain_of[v]] |= {chain_of[s] for s in after} - {chain_of[v]}
    return successor_sets


def _between_barriers(behind: Sequence[set[int]]) -> Iterator[range]:
    """Yield the nodes between those that are before or behind every other node."""
    count = len(behind)
    last_feeder = [-1] * count
    for v, after in enumerate(behind):
        for s in after:
            last_feeder[s] = v
    # The rest waits for v if each node behind it has a feeder from v on, and likewise before it.
    begun = [count, *accumulate(reversed(last_feeder[1:]), min)][::-1]
    ended = [-1, *accumulate((min(after, default=count) for after in behind[:-1]), max)]
    begin = 0
    for v in range(count):
        if begun[v] >= v and ended[v] <= v:
            if begin < v:
                yield range(begin, v)
            begin = v + 1
    if begin < count:
        yield range(begin, count)


def _largest_antichain(part: range, behind: Sequence[set[int]]) -> int:
    reach: dict[int, set[int]] = {}
    for v in reversed(part):
        direct = {s for s in behind[v] if s in part}
        reach[v] = direct.union(*(reach[s] for s in direct))
    if not any(reach.values()):
        return len(part)
    import networkx as nx  # takes as long as reading a small model

    pairs: nx.Graph[tuple[str, int]] = nx.Graph()
    left = [("before", v) for v in part]
    pairs.add_nodes_from(left)
    pairs.add_edges_from((("before", v), ("after", s)) for v in part for s in reach[v])
    matching = nx.bipartite.hopcroft_karp_matching(pairs, left)
    return len(part) - len(matching) // 2


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
    return _order_subgraphs(dag, _label_nodes(dag, cuts, dominator_of))


def _dominators(dag: Dag, sources: Iterable[int]) -> dict[int, int]:
    """Immediate dominator of every node that `sources` reach; -1 where only the root dominates."""
    root, begins = -1, set(sources)
    tree: dict[int, int] = {}
    for node, before in enumerate(dag.predecessors):
        paths: list[int] = [*(u for u in before if u in tree), *((root,) if node in begins else ())]
        if not paths:
            continue
        while len(paths := sorted(set(paths))) > 1:  # no dominator is behind what it dominates
            paths.append(tree[paths.pop()])
        tree[node] = paths[0]
    return tree


def _label_nodes(dag: Dag, cuts: set[int], dominator_of: dict[int, int]) -> list[int]:
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
            above = cut
            while above > first:
                above = dominator_of.get(above, -1)
            if above != first:
                joined[_naming_cut(cut, joined)] = _naming_cut(first, joined)
    return [_naming_cut(cut, joined) for cut in label]


def _naming_cut(cut: int, joined: dict[int, int]) -> int:
    """Return the cut that names all those that were joined to this one."""
    while joined[cut] != cut:
        joined[cut] = cut = joined[joined[cut]]
    return cut


def _order_subgraphs(dag: Dag, label: list[int]) -> list[list[int]]:
    """Collapse cycles between subgraphs and list them so that few of their results wait."""
    joined = {name: name for name in label}
    while cycle := _find_cycle(dag, [_naming_cut(name, joined) for name in label]):
        for name in cycle:
            joined[_naming_cut(name, joined)] = _naming_cut(cycle[0], joined)
    members: dict[int, list[int]] = {}
    for node, name in enumerate(label):
        members.setdefault(_naming_cut(name, joined), []).append(node)
    groups = sorted(members.values(), key=lambda nodes: nodes[-1])
    subgraph_of = {node: i for i, nodes in enumerate(groups) for node in nodes}
    lifetimes = [
        Lifetime(subgraph_of[node], readers)
        for node, behind in enumerate(dag.successors)
        if (readers := frozenset(subgraph_of[v] for v in behind) - {subgraph_of[node]})
    ]
    return [groups[i] for i in low_memory_order(len(groups), lifetimes)]


def _find_cycle(dag: Dag, label: list[int]) -> list[int]:
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
