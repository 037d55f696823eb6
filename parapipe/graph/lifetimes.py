"""How long tensors live, the most bytes of them at one time, and an order in which few live."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import accumulate

from parapipe.graph.operator_graph import OperatorGraph


@dataclass(frozen=True, slots=True)
class Lifetime:
    """One tensor that is made and read, by some of the nodes and maybe outside of them.

    Parameters
    ----------
    maker
        The node that makes it; None if it is there before them all.
    readers
        The nodes that read it.
    live_at_end
        Whether it is read after them all, too.
    """

    maker: int | None
    readers: frozenset[int]
    live_at_end: bool = False


def count_live_behind(order: Sequence[int], lifetimes: Sequence[Lifetime]) -> list[int]:
    """Count, for each position, the tensors that are made up to it and read behind it."""
    position = {node: i for i, node in enumerate(order)}
    change = [0] * (len(order) + 1)
    for life in lifetimes:
        change[0 if life.maker is None else position[life.maker]] += 1
        readers = (position[reader] for reader in life.readers)
        change[len(order) if life.live_at_end else max(readers)] -= 1
    return list(accumulate(change[: len(order)]))


def low_memory_order(nodes: int, lifetimes: Sequence[Lifetime]) -> list[int]:
    """Return a topological order of nodes 0 to `nodes` - 1 that lets live tensors die first.

    Chains of nodes stay together. Of the chains that can run, the one goes first that leaves
    fewest tensors alive; of equals, the one with the lowest first node. Each choice is the best
    one for itself, so the order as a whole need not be.

    Raises
    ------
    ValueError
        If nodes wait for each other.
    """
    return _LowMemoryOrder(nodes, lifetimes).order()


class _LowMemoryOrder:
    """Chains of nodes, and which tensors they make and read."""

    def __init__(self, nodes: int, lifetimes: Sequence[Lifetime]) -> None:
        self.reads: list[list[int]] = [[] for _ in range(nodes)]
        self.makes: list[int] = [0] * nodes
        self.behind: list[set[int]] = [set() for _ in range(nodes)]
        self.before: list[set[int]] = [set() for _ in range(nodes)]
        self.waiting = [set(life.readers) for life in lifetimes]
        self.open_readers = [len(life.readers) + life.live_at_end for life in lifetimes]
        for index, life in enumerate(lifetimes):
            for reader in life.readers:
                self.reads[reader].append(index)
            if life.maker is not None:
                self.makes[life.maker] += 1
                self.behind[life.maker] |= life.readers
                for reader in life.readers:
                    self.before[reader].add(life.maker)

    def order(self) -> list[int]:
        chain_of = self._find_chains()
        missing = {head: len(self.before[head]) for head in chain_of}
        # Growth only shrinks as others end: the least entry of a chain is its growth now.
        ready = [(self._live_growth(chain_of[head]), head) for head, n in missing.items() if n == 0]
        heapify(ready)
        done: set[int] = set()
        order: list[int] = []
        while ready:
            _, head = heappop(ready)
            if head in done:
                continue
            done.add(head)
            order += chain_of[head]
            for reader in self._finish_chain(chain_of[head]):
                if missing.get(reader) == 0 and reader not in done:
                    heappush(ready, (self._live_growth(chain_of[reader]), reader))
            for follower in self.behind[chain_of[head][-1]]:
                missing[follower] -= 1
                if missing[follower] == 0:
                    heappush(ready, (self._live_growth(chain_of[follower]), follower))
        if len(order) < len(self.reads):
            raise ValueError("nodes wait for each other")
        return order

    def _finish_chain(self, chain: Sequence[int]) -> list[int]:
        """Take a chain's reads as done; return who is left alone with a tensor by that."""
        alone: list[int] = []
        for node in chain:
            for tensor in self.reads[node]:
                self.waiting[tensor].discard(node)
                self.open_readers[tensor] -= 1
                if self.open_readers[tensor] == 1:
                    alone += self.waiting[tensor]
        return alone

    def _find_chains(self) -> dict[int, list[int]]:
        """Nodes by the head of their chain: each next one follows the one before alone."""
        following: dict[int, int] = {}
        for node, after in enumerate(self.behind):
            if len(after) == 1 and len(self.before[follower := next(iter(after))]) == 1:
                following[node] = follower
        chains: dict[int, list[int]] = {}
        for head in sorted(set(range(len(self.reads))).difference(following.values())):
            chains[head] = [head]
            while chains[head][-1] in following:
                chains[head].append(following[chains[head][-1]])
        return chains

    def _live_growth(self, chain: Sequence[int]) -> int:
        """Tensors alive behind a chain that were not before it, less those that its head ends.

        A chain's other nodes may end tensors from before all nodes, which is left out: then a
        long chain costs no more to judge than a short one.
        """
        died = sum(self.open_readers[tensor] == 1 for tensor in self.reads[chain[0]])
        return self.makes[chain[-1]] - died


@dataclass(frozen=True, slots=True)
class Peak:
    """The most bytes at one time, and the operator that runs then (an index)."""

    size_bytes: int
    operator: int


def peak_activations(graph: OperatorGraph, order: Sequence[int]) -> Peak:
    """Return the largest sum of activation bytes while one frame runs through in this order.

    While an operator runs, these are there: graph inputs from the start to the end of their last
    reader; what an operator makes, from its start to the end of its last reader; graph outputs,
    from their maker's start to the end. Each tensor has memory of its own: views and operators
    that could work in place count in full, so an allocator may need less, and one that leaves gaps
    more. Weights and workspaces do not count. Of equal peaks the first is told.

    Parameters
    ----------
    order
        All operators, in a topological order.
    """
    last: dict[str, int] = {}
    for step, v in enumerate(order):
        operator = graph.operators[v]
        last.update(dict.fromkeys((*graph.reads(operator), *operator.outputs), step))
    last.update(dict.fromkeys(graph.outputs, len(order)))
    dying: dict[int, list[str]] = {}
    for name, step in last.items():
        dying.setdefault(step, []).append(name)
    live = sum(graph.tensors[name].size_bytes for name in graph.inputs if name in last)
    peak = Peak(-1, order[0])
    for step, v in enumerate(order):
        outputs = [name for name in graph.operators[v].outputs if name]
        live += sum(graph.tensors[name].size_bytes for name in outputs)
        if live > peak.size_bytes:
            peak = Peak(live, v)
        live -= sum(graph.tensors[name].size_bytes for name in dying.get(step, ()) if name)
    return peak
