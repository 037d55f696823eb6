"""Branches of a unit: its operators as series and parallel parts, and how parallel it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import accumulate

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
        steps.extend(_forked(operators[begin : end + 1], successors))
        begin = end + 1
    return tuple(steps)


def _forked(operators: Sequence[int], successors: Successors) -> Series:
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
    nodes = _contracted(operators, successors)
    return max((_antichain(part, nodes) for part in _divided(nodes)), default=1)


def _contracted(operators: Sequence[int], successors: Successors) -> list[set[int]]:
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
    found: list[set[int]] = [set() for _ in range(chains)]
    for v, after in behind.items():
        found[chain_of[v]] |= {chain_of[s] for s in after} - {chain_of[v]}
    return found


def _divided(behind: Sequence[set[int]]) -> Iterator[range]:
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


def _antichain(part: range, behind: Sequence[set[int]]) -> int:
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
