"""An order of operators that does not depend on how a file lists them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from parapipe.graph.operator_graph import OperatorGraph


def canonical_order(graph: OperatorGraph, *, longest: bool = True) -> list[int]:
    """Return a topological order that is the same however a file lists and names its nodes.

    It is the post-order of a depth-first search from the outputs of the model against the edges. Of
    what an operator reads, that comes first which the longest path leads to, unless `longest` is
    false; of equals, that which it reads first. So branches stay together. Operators that no output
    needs come last, in the order of the file.
    """
    reads = [_makers(graph, v) for v in range(len(graph.operators))]
    depth: list[int] = []
    for before in reads:
        depth.append(max((depth[u] + 1 for u in before), default=0))
    if longest:
        for before in reads:
            before.sort(key=lambda u: -depth[u])
    order: dict[int, None] = {}
    for v in (*(graph.producer[name] for name in graph.outputs), *range(len(reads))):
        _visit(v, reads, order)
    return list(order)


def _makers(graph: OperatorGraph, v: int) -> list[int]:
    """Return what makes the tensors that an operator reads, in the order of its inputs."""
    makers = (graph.producer.get(name) for name in graph.operators[v].inputs)
    return list(dict.fromkeys(u for u in makers if u is not None))


def _visit(v: int, reads: Sequence[Collection[int]], order: dict[int, None]) -> None:
    """Add an operator to an order, behind all that it waits for."""
    stack = [(v, iter(reads[v]))]
    while stack:
        w, left = stack[-1]
        following = next((u for u in left if u not in order), None)
        if following is not None:
            stack.append((following, iter(reads[following])))
        else:
            order[w] = None
            stack.pop()
