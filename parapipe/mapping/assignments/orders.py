"""Operators of given assignments put in order on their processors: branch and bound, in arrays.

A node is an assignment with some pairs of operators of one processor in order. Where the earliest
starts let two of them overlap, either order of the two makes a node (Carlier and Pinson 1989, *An
algorithm for solving the job-shop problem*). List schedules say what a node can reach, longest
paths and loads what it cannot.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from parapipe.mapping.assignments.best import ROUNDING, Best
from parapipe.mapping.assignments.prefixes import Rows
from parapipe.mapping.assignments.tables import NEVER, Floats, Numbers, Tables

AT_ONCE = 4_000  # nodes
MOST = 10_000_000  # pairs of operators in all nodes


@dataclass(frozen=True, slots=True)
class _Nodes:
    """Nodes, one a row.

    Parameters
    ----------
    time_s
        Of each operator where it runs.
    delay_s
        `delay_s[i, u, v]`: from the end of u to the start of v; `NEVER` if v need not wait.
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
        return _Nodes(*(getattr(self, each.name)[chosen] for each in fields(self)))

    def timed(self) -> _Nodes:
        """Return the nodes with starts and tails by longest paths, and the bounds of these."""
        start_s = _longest(self.start_s, self.time_s, self.delay_s)
        tail_s = _longest(self.tail_s, self.time_s, self.delay_s.transpose(0, 2, 1))
        same = self.processor[:, :, None] == self.processor[:, None, :]
        bound_s = np.maximum.reduce(
            (
                self.bound_s,
                (start_s + self.time_s + tail_s).max(1),
                _load_s(self.time_s, same, start_s, tail_s),
                _load_s(self.time_s, same, tail_s, start_s),
            )
        )
        return replace(self, start_s=start_s, tail_s=tail_s, bound_s=bound_s)


def order_all(given: Tables, rows: Rows, best: Best) -> bool:
    """Offer `best` every schedule of the rows that matters; return False if that takes too long."""
    if not len(rows.time_s):
        return True
    if all(given.passes):  # one after the other in any case
        time_s = given.time_s[np.arange(given.operators), rows.processor]
        start_s = rows.end_s - time_s
        start_s[:, 1:] = np.maximum(start_s[:, 1:], rows.end_s[:, :-1])  # but for rounding
        best.offer(rows.end_s[:, -1], rows.energy_j, rows.processor, start_s)
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
        nodes = _nodes(given, some)
        while len(nodes.bound_s):
            spent += nodes.delay_s.size
            if spent > MOST:
                return False
            nodes = _branched(nodes, best)
    return True


def list_all(given: Tables, rows: Rows, best: Best) -> None:
    """Offer `best` list schedules of the rows."""
    _offer(_nodes(given, rows).timed(), best)


def _nodes(given: Tables, rows: Rows) -> _Nodes:
    processor = rows.processor
    count, operators = processor.shape
    time_s = given.time_s[np.arange(operators), processor]
    delay_s = np.full((count, operators, operators), NEVER)
    for v, inputs in enumerate(given.edges):
        for u, matrix_s in inputs:
            delay_s[:, u, v] = matrix_s[processor[:, u], processor[:, v]]
    start_s, tail_s = rows.end_s - time_s, np.zeros_like(time_s)
    for v in reversed(range(operators)):
        for u, _ in given.edges[v]:
            way_s = delay_s[:, u, v] + time_s[:, v] + tail_s[:, v]
            np.maximum(tail_s[:, u], way_s, out=tail_s[:, u])
    return _Nodes(processor, time_s, delay_s, start_s, tail_s, rows.time_s, rows.energy_j)


def _branched(nodes: _Nodes, best: Best) -> _Nodes:
    """Bound nodes, offer what they can reach, and return what is left to be looked at."""
    nodes = nodes.timed()
    nodes = nodes.pick(np.flatnonzero(best.matter(nodes.bound_s, nodes.energy_j)))
    _offer(nodes, best)
    nodes = nodes.pick(np.flatnonzero(best.matter(nodes.bound_s, nodes.energy_j)))
    if not len(nodes.bound_s):
        return nodes
    end_s = nodes.start_s + nodes.time_s
    overlapping = _overlapping(nodes, end_s)
    # makespans at least if the first of a pair goes before the second
    ordered_s = end_s[:, :, None] + (nodes.time_s + nodes.tail_s)[:, None, :]
    both_s = np.where(overlapping, np.minimum(ordered_s, ordered_s.transpose(0, 2, 1)), -1.0)
    first, second = np.divmod(both_s.reshape(len(both_s), -1).argmax(1), both_s.shape[1])
    open_ = overlapping.any((1, 2))
    made = []
    for u, v in ((first, second), (second, first)):
        each = np.arange(len(u))
        bound_s = np.maximum(nodes.bound_s, ordered_s[each, u, v])
        left = np.flatnonzero(open_ & best.matter(bound_s, nodes.energy_j))
        child = replace(nodes, bound_s=bound_s).pick(left)
        each = np.arange(len(left))
        child.delay_s[each, u[left], v[left]] = np.maximum(
            child.delay_s[each, u[left], v[left]], 0.0
        )
        made.append(child)
    return _Nodes(
        *(np.concatenate([getattr(part, each.name) for part in made]) for each in fields(_Nodes))
    )


def _longest(least_s: Floats, time_s: Floats, delay_s: Floats) -> Floats:
    """Raise starts until each operator waits for all that it has to wait for."""
    start_s = least_s
    while True:
        arrival_s = ((start_s + time_s)[:, :, None] + delay_s).max(1)
        if (arrival_s <= start_s).all():
            return start_s
        start_s = np.maximum(start_s, arrival_s)


def _overlapping(nodes: _Nodes, end_s: Floats) -> NDArray[np.bool_]:
    """Tell which pairs of operators run on one processor at the same time."""
    same = nodes.processor[:, :, None] == nodes.processor[:, None, :]
    # what rounding lets overlap does not
    until_s = (end_s * (1 - ROUNDING))[:, None, :]
    early = nodes.start_s[:, :, None] < until_s
    found: NDArray[np.bool_] = same & early & early.transpose(0, 2, 1)
    each = np.arange(found.shape[1])
    found[:, each, each] = False
    return found


def _load_s(time_s: Floats, same: NDArray[np.bool_], head_s: Floats, tail_s: Floats) -> Floats:
    """Bound makespans by loads: a start, what its processor cannot start before, the least tail."""
    behind = same & (head_s[:, None, :] >= head_s[:, :, None])
    load_s = (behind * time_s[:, None, :]).sum(2)
    least_s = np.where(behind, tail_s[:, None, :], np.inf).min(2)
    found: Floats = (head_s + load_s + least_s).max(1)
    return found


def _offer(nodes: _Nodes, best: Best) -> None:
    """Offer the schedules in the order of earliest starts, and of falling ways to the end."""
    # of equals that first which takes no time, as the others may wait for it
    left_s = nodes.time_s + nodes.tail_s
    for keys in ((nodes.start_s + nodes.time_s, nodes.start_s), (-nodes.tail_s, -left_s)):
        start_s = _in_order(nodes, np.lexsort(keys, axis=1))
        best.offer((start_s + nodes.time_s).max(1), nodes.energy_j, nodes.processor, start_s)


def _in_order(nodes: _Nodes, order: Numbers) -> Floats:
    """Start every operator as early as it can in a topological order."""
    each = np.arange(len(order))
    free_s = np.zeros((len(order), int(nodes.processor.max(initial=0)) + 1))
    start_s = nodes.start_s.copy()
    for v in order.T:
        p = nodes.processor[each, v]
        begin_s = np.maximum(free_s[each, p], start_s[each, v])
        start_s[each, v] = begin_s
        free_s[each, p] = end_s = begin_s + nodes.time_s[each, v]
        np.maximum(start_s, end_s[:, None] + nodes.delay_s[each, v], out=start_s)
    return start_s
