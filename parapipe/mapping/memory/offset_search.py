"""Offsets within a given capacity, by a search that tries each arrangement once.

The search of MiniMalloc (Moffitt, ASPLOS 2023): buffers are placed from the bottom up, each as low
as those below it let it; and what is alive in a section has to fit above what is placed there.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

import numpy as np

from parapipe.mapping.memory.buffers import ArenaProblem, Indices

MOST_BUFFERS = 800
"""One above the other: the search calls itself for each."""
CALLS = 3
"""For each buffer."""
OTHER_CALLS = 1000
"""Python's own limit, for what called the search."""


class OutOfNodesError(Exception):
    """So many nodes were visited without an answer."""


def orders(problem: ArenaProblem) -> Iterator[list[int]]:
    """Yield orders of the buffers, those that are hard to place first.

    Life is the number of sections. Crowd is the most bytes in any of them.
    """
    crowd = problem.size_bytes @ problem.alive
    size = problem.size_bytes.tolist()
    life = [each.end - each.begin for each in problem.buffers]
    area = [a * b for a, b in zip(size, life, strict=True)]
    total = [int(crowd[each].max()) for each in problem.sections]
    for keys in (
        (life, area, total), (total, area, life), (total, life, area), (size, life), (area, size),
    ):  # fmt: skip
        columns = list(zip(*keys, strict=True))
        yield sorted(range(len(size)), key=lambda b: columns[b], reverse=True)


def offsets_within(
    problem: ArenaProblem, order: Sequence[int], capacity_bytes: int, most_nodes: int
) -> list[int] | None:
    """Return offsets that keep the capacity; None if there are none.

    Parameters
    ----------
    order
        Of two buffers that could have the same offset, the earlier one is tried first.

    Raises
    ------
    OutOfNodesError
        If `most_nodes` were visited before an answer was known.
    """
    if problem.peak_bytes > capacity_bytes:
        return None
    if len(problem.buffers) > MOST_BUFFERS:
        raise OutOfNodesError
    calls = CALLS * len(order) + OTHER_CALLS
    sys.setrecursionlimit(max(sys.getrecursionlimit(), calls))
    search = _Search(problem, order, capacity_bytes, most_nodes)
    if not search.all_placed(search.connected(np.arange(len(order)))):
        return None
    offsets = [0] * len(order)
    for rank, b in enumerate(order):
        offsets[b] = int(search.low[rank])
    return offsets


class _Search:
    """Buffers by their rank in the order, and where each can be at the lowest now.

    Parameters
    ----------
    low
        Above all placed buffers that overlap in time; of a placed one, its offset.
    floor
        Of each section, where what is placed there ends.
    rest
        Of each section, the bytes that are not placed yet.
    joins
        Of each section, how many buffers that are not placed live in it and in the next one.
    """

    def __init__(
        self, problem: ArenaProblem, order: Sequence[int], capacity_bytes: int, most_nodes: int
    ) -> None:
        rank = np.empty(len(order), dtype=np.int64)
        rank[list(order)] = np.arange(len(order))
        self.capacity = capacity_bytes
        self.nodes = most_nodes
        self.size = problem.size_bytes[list(order)]
        self.alignment = problem.alignment_bytes[list(order)]
        self.sections = [problem.sections[b] for b in order]
        self.overlaps = [np.sort(rank[problem.overlaps[b]]) for b in order]
        self.twin = _twins(problem, order)
        self.low: Indices = np.zeros(len(order), dtype=np.int64)
        self.open = np.ones(len(order), dtype=bool)
        sections = problem.alive.shape[1]
        self.floor: Indices = np.zeros(sections, dtype=np.int64)
        self.rest: Indices = problem.size_bytes @ problem.alive
        self.joins: Indices = np.zeros(sections, dtype=np.int64)
        self.joined = [each[:-1][np.diff(each) == 1] for each in self.sections]
        self.wraps = np.array([bool((np.diff(each) < 0).any()) for each in self.sections])
        for each in self.joined:
            self.joins[each] += 1
        in_order = problem.alive[list(order)].T
        self.members = np.nonzero(in_order)[1]
        self.starts = np.concatenate([[0], np.cumsum(in_order.sum(axis=1))[:-1]])
        self.trail: list[tuple[int, Indices, Indices, Indices]] = []

    def connected(self, members: Indices) -> list[Indices]:
        """Return members that are not placed, by sections that no life joins."""
        members = members[self.open[members]]
        if not len(members):
            return []
        blocks = np.concatenate([[0], np.cumsum(self.joins[:-1] == 0)])
        if self.wraps[members].any():
            blocks[blocks == blocks[-1]] = 0
        own = blocks[[self.sections[v][0] for v in members]]
        return [members[own == block] for block in np.unique(own)]

    def all_placed(self, parts: Sequence[Indices]) -> bool:
        """Place the members of all parts, or of none."""
        mark = len(self.trail)
        for members in parts:
            sections = np.unique(np.concatenate([self.sections[v] for v in members]))
            if not self.placed(members, sections, (0, -1)):
                self.back(mark)
                return False
        return True

    def placed(self, members: Indices, sections: Indices, last: tuple[int, int]) -> bool:
        """Place members, of which none has an offset and rank below `last`, or none of them."""
        self.nodes -= 1
        if self.nodes < 0:
            raise OutOfNodesError
        low = self.low[members]
        least_end = int((low + self.size[members]).min())
        highest = self.capacity - int(self.rest[sections].max())  # all else goes above it
        by_offset = np.argsort(low, kind="stable")
        for v, offset in zip(members[by_offset].tolist(), low[by_offset].tolist(), strict=True):
            if offset >= least_end or offset > highest:
                break  # another would fit below it, or what is left would not fit above
            twin = self.twin[v]
            if (offset, v) < last or (twin >= 0 and self.open[twin]):
                continue
            mark, free = len(self.trail), self.place(v)
            if self.fits(sections, offset) and self.others_placed(members, sections, (offset, v)):
                return True
            self.back(mark)
            if free:
                break  # nothing will be above it, so that it could be placed next as well
        return False

    def others_placed(self, members: Indices, sections: Indices, last: tuple[int, int]) -> bool:
        members = members[members != last[1]]
        if not len(members):
            return True
        if (self.joins[self.joined[last[1]]] > 0).all() and not self.wraps[last[1]]:
            return self.placed(members, sections, last)
        parts = self.connected(members)
        if len(parts) == 1:
            return self.placed(members, sections, last)
        return self.all_placed(parts)

    def fits(self, sections: Indices, offset: int) -> bool:
        """Whether what is not placed has room in each section, at `offset` or above."""
        rest = self.rest[sections]
        wanted = np.where(self.open, self.low, self.capacity)[self.members]
        least = np.minimum.reduceat(wanted, self.starts)[sections]
        floor = np.maximum(self.floor[sections], np.maximum(least, offset))
        return bool((np.where(rest > 0, floor, 0) + rest).max() <= self.capacity)

    def place(self, v: int) -> bool:
        """Place a buffer as low as it can be; return whether nothing will be above it."""
        sections = self.sections[v]
        above = self.overlaps[v]
        above = above[self.open[above]]
        self.trail.append((v, above, self.low[above], self.floor[sections]))
        end = self.low[v] + self.size[v]
        alignment = self.alignment[above]
        self.low[above] = np.maximum(self.low[above], -(-end // alignment) * alignment)
        self.floor[sections] = end
        self.rest[sections] -= self.size[v]
        self.joins[self.joined[v]] -= 1
        self.open[v] = False
        return not len(above)

    def back(self, mark: int) -> None:
        """Take back all that was placed since."""
        while len(self.trail) > mark:
            v, above, low, floor = self.trail.pop()
            self.low[above] = low
            self.floor[self.sections[v]] = floor
            self.rest[self.sections[v]] += self.size[v]
            self.joins[self.joined[v]] += 1
            self.open[v] = True


def _twins(problem: ArenaProblem, order: Sequence[int]) -> list[int]:
    """Return for each rank the last earlier one of an identical buffer; -1 if there is none."""
    seen: dict[tuple[int, ...], int] = {}
    twins = []
    for rank, b in enumerate(order):
        each = problem.buffers[b]
        key = (each.size_bytes, each.begin, each.end, each.alignment_bytes)
        twins.append(seen.get(key, -1))
        seen[key] = rank
    return twins
