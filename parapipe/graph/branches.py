"""Branches of a unit: its operators as series and parallel parts, and how parallel it is."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import networkx as nx

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
    found = []
    reach = max(i for i, v in enumerate(operators) if v not in fed or v in entries)
    for i, v in enumerate(operators):
        if reach <= i:
            found.append(i)  # reach: the furthest reader of what was made before i
        reach = max([reach, *(position[s] for s in successors.get(v, ()) if s in position)])
    return found


def structure(operators: Sequence[int], successors: Successors) -> Series:
    """Split operators into series and parallel branches, nested ones included.

    A part that is neither (its branches are entangled) is listed as a plain series in
    topological order.
    """
    steps: list[int | Parallel] = []
    begin = 0
    for end in articulations(operators, successors):
        steps.extend(_piece(operators[begin : end + 1], successors))
        begin = end + 1
    return tuple(steps)


def _piece(operators: Sequence[int], successors: Successors) -> Series:
    """Structure of operators with no articulation but the last."""
    if len(operators) == 1:
        return tuple(operators)
    parts = _components(operators, successors)
    if len(parts) > 1:
        return (tuple(structure(part, successors) for part in parts),)
    parts = _components(operators[:-1], successors)
    if len(parts) > 1:
        return (tuple(structure(part, successors) for part in parts), operators[-1])
    return tuple(operators)


def _components(operators: Sequence[int], successors: Successors) -> list[list[int]]:
    """Weakly connected components, each in order, ordered by first operator."""
    inside = set(operators)
    undirected: nx.Graph[int] = nx.Graph()
    undirected.add_nodes_from(operators)
    undirected.add_edges_from(
        (v, s) for v in operators for s in successors.get(v, ()) if s in inside
    )
    rank = {v: i for i, v in enumerate(operators)}
    parts = [sorted(part, key=rank.__getitem__) for part in nx.connected_components(undirected)]
    return sorted(parts, key=lambda part: rank[part[0]])


def parallelism(operators: Sequence[int], successors: Successors) -> int:
    """Size of the maximum antichain: operators none of which waits for another.

    By Dilworth's theorem this is the number of operators less a maximum matching of the
    transitive closure.
    """
    behind: dict[int, set[int]] = {}
    inside = set(operators)
    for v in reversed(operators):
        direct = [s for s in successors.get(v, ()) if s in inside]
        behind[v] = set(direct).union(*(behind[s] for s in direct))
    pairs: nx.Graph[tuple[str, int]] = nx.Graph()
    left = [("before", v) for v in operators]
    pairs.add_nodes_from(left)
    pairs.add_edges_from((("before", v), ("after", s)) for v in operators for s in behind[v])
    matching = nx.bipartite.hopcroft_karp_matching(pairs, left)
    return len(operators) - len(matching) // 2
