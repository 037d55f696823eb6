"""Operators of given assignments put in order on their processors: branch and bound, in arrays.

A node is an assignment with some pairs of operators of one processor in order. Where the earliest
starts let two of them overlap, either order of the two makes a node (Carlier and Pinson 1989, *An
algorithm for solving the job-shop problem*). List schedules say what a node can reach, longest
paths and loads what it cannot.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from parapipe.solvers.assignments.tables import NEVER, ROUNDING, Best, Floats, Numbers, Rows, Tables

AT_ONCE = 4_000  # nodes
FAR_S = 1e30  # seconds; added to what does not count
MOST = 10_000_000  # pairs of operators in all nodes


@dataclass(frozen=True, slots=True)
class _Nodes:
    """Nodes; the last axis of every array counts them, the ones before it operators.

    Parameters
    ----------
    time_s
        Of each operator where it runs.
    delay_s
        `delay_s[u, v, i]`: from the end of u to the start of v; `NEVER` if v need not wait.
    start_s, tail_s
        Earliest starts, and seconds from the end of each operator to the end of all that waits for
        it; by longest paths, or less.
    bound_s
        No schedule is shorter.
    """

    processor: Numbers
    time_s: Floats
    delay_s: Floats
    start_s: Floats
    tail_s: Floats
    bound_s: Floats
    energy_j: Floats

    def pick(self, chosen: Numbers) -> _Nodes:
        """Return some of the nodes."""
        return _Nodes(*(getattr(self, each.name).take(chosen, -1) for each in fields(self)))

    def timed(self) -> _Nodes:
        """Return the nodes with starts and tails by longest paths, and the bounds of these."""
        start_s = _longest_paths_s(self.start_s, self.time_s, self.delay_s, 0)
        tail_s = _longest_paths_s(self.tail_s, self.time_s, self.delay_s, 1)
        bound_s = np.maximum(self.bound_s, (start_s + self.time_s + tail_s).max(0))
        return replace(self, start_s=start_s, tail_s=tail_s, bound_s=bound_s)

    def that_matter(self, best: Best) -> _Nodes:
        """Return the nodes that can matter, with starts and tails by longest paths, by loads."""
        same = _same_processor(self.processor)
        bound_s = np.maximum.reduce(
            (
                self.bound_s,
                _load_s(self.time_s, same, self.start_s, self.tail_s),
                _load_s(self.time_s, same, self.tail_s, self.start_s),
            )
        )
        return replace(self, bound_s=bound_s).pick(
            np.flatnonzero(best.matter(bound_s, self.energy_j))
        )


def order_all(arrays: Tables, rows: Rows, best: Best) -> bool:
    """Offer `best` every schedule of the rows that matters; return False if that takes too long."""
    if not len(rows.time_s):
        return True
    if all(arrays.passes):  # one after the other in any case
        time_s = arrays.time_s[np.arange(arrays.operators)[:, None], rows.processor]
        start_s = rows.end_s - time_s
        start_s[1:] = np.maximum(start_s[1:], rows.end_s[:-1])  # but for rounding
        best.offer(rows.end_s[-1], rows.energy_j, rows.processor.T, start_s.T)
        return True
    spent = 0
    waiting = [
        rows.pick(some)
        for some in np.array_split(
            np.argsort(rows.time_s, kind="stable"), len(rows.time_s) // AT_ONCE + 1
        )
    ]
    for part in waiting:
        some = part.pick(np.flatnonzero(best.matter(part.time_s, part.energy_j)))
        if not len(some.time_s):
            continue
        spent += len(some.time_s) * arrays.operators**2
        if spent > MOST:
            return False
        nodes = _nodes_of_rows(arrays, some, best)
        while len(nodes.bound_s):
            _offer(nodes, best)
            children = _branch(nodes, best)
            spent += children.delay_s.size
            if spent > MOST:
                return False
            nodes = children.timed().that_matter(best)
    return True


def list_all(arrays: Tables, rows: Rows, best: Best) -> None:
    """Offer `best` list schedules of the rows."""
    _offer(_nodes_of_rows(arrays, rows, best), best)


def _nodes_of_rows(arrays: Tables, rows: Rows, best: Best) -> _Nodes:
    """Return what can matter of the rows as nodes."""
    processor = rows.processor
    operators = np.arange(arrays.operators)[:, None]
    time_s = arrays.time_s[operators, processor]
    # not ends less times: rounding would part starts that are equal, and with them the order
    start_s, tail_s = arrays.release_s[operators, processor], np.zeros_like(time_s)
    edges = [
        (u, v, matrix_s[processor[u], processor[v]])
        for v, inputs in enumerate(arrays.edges)
        for u, matrix_s in inputs
    ]
    for u, v, moved_s in edges:
        np.maximum(start_s[v], start_s[u] + time_s[u] + moved_s, out=start_s[v])
    for u, v, moved_s in reversed(edges):
        np.maximum(tail_s[u], moved_s + time_s[v] + tail_s[v], out=tail_s[u])
    for u, v, moved_s in reversed(edges):
        np.maximum(tail_s[u], tail_s[v] + time_s[v] + moved_s, out=tail_s[u])
    bound_s = np.maximum(rows.time_s, (start_s + time_s + tail_s).max(0))
    for p in range(arrays.time_s.shape[1]):  # a quick look, which few pass
        elsewhere_s = FAR_S * (processor != p)
        first_s, last_s = (start_s + elsewhere_s).min(0), (tail_s + elsewhere_s).min(0)
        load_s = first_s + rows.load_s[p] + last_s
        np.maximum(bound_s, load_s, out=bound_s, where=last_s < FAR_S)
    left = np.flatnonzero(best.matter(bound_s, rows.energy_j))
    delay_s = np.full((arrays.operators, arrays.operators, len(left)), NEVER)
    for u, v, moved_s in edges:
        delay_s[u, v] = moved_s[left]
    return _Nodes(
        processor.take(left, -1),
        time_s.take(left, -1),
        delay_s,
        start_s.take(left, -1),
        tail_s.take(left, -1),
        bound_s[left],
        rows.energy_j[left],
    ).that_matter(best)


def _branch(nodes: _Nodes, best: Best) -> _Nodes:
    """Return what is left to be looked at of nodes whose list schedules are known."""
    left = np.flatnonzero(best.matter(nodes.bound_s, nodes.energy_j))
    start_s, time_s, tail_s = (
        each.take(left, -1) for each in (nodes.start_s, nodes.time_s, nodes.tail_s)
    )
    end_s = start_s + time_s
    overlapping = _overlapping(nodes.processor.take(left, -1), start_s, end_s)
    # makespans at least if the first of a pair goes before the second
    ordered_s = end_s[:, None] + (time_s + tail_s)
    both_s = np.where(overlapping, np.minimum(ordered_s, ordered_s.transpose(1, 0, 2)), -1.0)
    operators, count = end_s.shape
    first, second = np.divmod(both_s.reshape(operators**2, count).argmax(0), operators)
    open_ = overlapping.any((0, 1))
    each = np.arange(count)
    chosen, bounds_s, pairs = [], [], []
    for u, v in ((first, second), (second, first)):
        bound_s = np.maximum(nodes.bound_s[left], ordered_s[u, v, each])
        some = np.flatnonzero(open_ & best.matter(bound_s, nodes.energy_j[left]))
        chosen.append(left[some])
        bounds_s.append(bound_s[some])
        pairs.append((u[some], v[some]))
    children = nodes.pick(np.concatenate(chosen))
    before, behind = (np.concatenate(some) for some in zip(*pairs, strict=True))
    each = np.arange(len(before))
    children.delay_s[before, behind, each] = np.maximum(children.delay_s[before, behind, each], 0.0)
    return replace(children, bound_s=np.concatenate(bounds_s))


def _longest_paths_s(least_s: Floats, time_s: Floats, delay_s: Floats, axis: int) -> Floats:
    """Raise starts until each operator waits for all that it has to wait for.

    With `axis` 1 time runs backwards, and tails are raised.
    """
    start_s = least_s
    while True:
        end_s = np.expand_dims(start_s + time_s, 1 - axis)
        arrival_s = (end_s + delay_s).max(axis)
        if (arrival_s <= start_s).all():
            return start_s
        start_s = np.maximum(start_s, arrival_s)


def _overlapping(processor: Numbers, start_s: Floats, end_s: Floats) -> NDArray[np.bool_]:
    """Tell which pairs of operators run on one processor at the same time."""
    # what rounding lets overlap does not
    early = start_s[:, None] < end_s * (1 - ROUNDING)
    pairs: NDArray[np.bool_] = _same_processor(processor) & early & early.transpose(1, 0, 2)
    each = np.arange(len(end_s))
    pairs[each, each] = False
    return pairs


def _same_processor(processor: Numbers) -> NDArray[np.bool_]:
    """Tell which pairs of operators run on one processor."""
    small = processor.astype(np.int8)
    pairs: NDArray[np.bool_] = small[:, None] == small
    return pairs


def _load_s(time_s: Floats, same: NDArray[np.bool_], head_s: Floats, tail_s: Floats) -> Floats:
    """Bound makespans by loads: a start, what its processor cannot start before, the least tail."""
    behind = same & (head_s >= head_s[:, None])
    load_s = (behind * time_s).sum(1)
    least_s = (tail_s + FAR_S * ~behind).min(1)  # faster than a choice between two arrays
    bound_s: Floats = (head_s + load_s + least_s).max(0)
    return bound_s


def _offer(nodes: _Nodes, best: Best) -> None:
    """Offer the schedules in the order of earliest starts, and of falling paths to the end.

    Where the least energy is taken, nothing but the shortest will do. Most of it runs on one
    processor then; for that the order of falling tails is the best (Lawler 1973, *Optimal
    sequencing of a single machine subject to precedence constraints*).
    """
    # of equals that first which takes no time, as the others may wait for it
    left_s = nodes.time_s + nodes.tail_s
    by_start = nodes.start_s + nodes.time_s, nodes.start_s
    _offer_in(nodes, (by_start, (-nodes.tail_s, -left_s)), best)
    if best.least_j:
        least = nodes.energy_j <= best.least_j * (1 + ROUNDING)
        least &= best.matter(nodes.bound_s, nodes.energy_j)
        if least.any():
            least_nodes = nodes.pick(np.flatnonzero(least))
            _offer_in(least_nodes, ((-left_s[:, least], -least_nodes.tail_s),), best)


def _offer_in(nodes: _Nodes, keys: Sequence[tuple[Floats, ...]], best: Best) -> None:
    """Offer the schedules in the orders of some keys, the last of each counts first."""
    if count := len(nodes.bound_s):
        orders = [np.lexsort(each, axis=0) for each in keys]
        node = np.tile(np.arange(count), len(orders))
        start_s = _start_in_order(nodes, node, np.concatenate(orders, 1))
        end_s = start_s + nodes.time_s.take(node, -1)
        best.offer(end_s.max(0), nodes.energy_j[node], nodes.processor.take(node, -1).T, start_s.T)


def _start_in_order(nodes: _Nodes, node: Numbers, order: Numbers) -> Floats:
    """Start every operator of some nodes as early as it can in a topological order of each."""
    operators, count = order.shape
    nodes_count = len(nodes.bound_s)
    place = order * count + np.arange(count)  # in `start_s`, flattened
    of_node = order * nodes_count + node  # in arrays by operator and node, flattened
    lasts_s = nodes.time_s.take(of_node)
    on = nodes.processor.take(of_node) * count + np.arange(count)  # in `free_s`
    free_s = np.zeros((int(nodes.processor.max(initial=0)) + 1) * count)
    start_s = nodes.start_s.take(node, -1)
    flat_s = start_s.ravel()
    readers = np.arange(operators)[:, None] * nodes_count + node
    delay_s = nodes.delay_s.ravel()
    for i in range(operators):
        begin_s = np.maximum(free_s.take(on[i]), flat_s.take(place[i]))
        flat_s[place[i]] = begin_s
        end_s = begin_s + lasts_s[i]
        free_s[on[i]] = end_s
        moved_s = delay_s.take(readers + order[i] * (operators * nodes_count))
        moved_s += end_s
        np.maximum(start_s, moved_s, out=start_s)
    return start_s
