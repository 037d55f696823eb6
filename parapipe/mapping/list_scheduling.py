"""List scheduling with insertion: what HEFT, CPOP and PEFT have in common."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from math import inf

from parapipe.mapping.problem import Flow, MappingProblem
from parapipe.mapping.ranks import readers_of, supporting
from parapipe.mapping.replay import arrival_s, inputs_of


@dataclass(slots=True)
class Timetable:
    """Operators placed so far, with start and end in seconds."""

    problem: MappingProblem
    processor: list[int] = field(init=False)
    start_s: list[float] = field(init=False)
    end_s: list[float] = field(init=False)
    _inputs: tuple[tuple[Flow, ...], ...] = field(init=False)
    # of each processor, in the order of time
    _starts_s: list[list[float]] = field(init=False)
    _ends_s: list[list[float]] = field(init=False)

    def __post_init__(self) -> None:
        operators, processors = self.problem.operators, self.problem.processors
        self.processor = [0] * operators
        self.start_s = [inf] * operators
        self.end_s = [inf] * operators
        self._inputs = inputs_of(self.problem)
        self._starts_s = [[] for _ in range(processors)]
        self._ends_s = [[] for _ in range(processors)]

    def earliest_end_s(self, v: int, p: int) -> float:
        """Second at which operator v, all of whose producers are placed, can end on p."""
        return self._slot(v, p)[1] + self.problem.time_s[v][p]

    def place(self, v: int, p: int) -> None:
        """Put operator v into the first gap of p that is long enough."""
        position, start_s = self._slot(v, p)
        self.processor[v] = p
        self.start_s[v] = start_s
        self.end_s[v] = start_s + self.problem.time_s[v][p]
        self._starts_s[p].insert(position, start_s)
        self._ends_s[p].insert(position, self.end_s[v])

    def _slot(self, v: int, p: int) -> tuple[int, float]:
        """Position among the operators of p, and start."""
        start_s = arrival_s(self._inputs[v], p, self.processor, self.end_s)
        starts_s, ends_s = self._starts_s[p], self._ends_s[p]
        # behind all that has ended by then, so that no operator gets in front of one that it
        # waits for, not even of one that takes no time
        position = bisect_right(ends_s, start_s)
        while position < len(ends_s) and start_s + self.problem.time_s[v][p] > starts_s[position]:
            start_s = max(start_s, ends_s[position])
            position += 1
        return position, start_s


def list_schedule(
    problem: MappingProblem,
    priority: Sequence[float],
    *,
    pinned: Mapping[int, int] | None = None,
    tail_s: Sequence[Sequence[float]] | None = None,
) -> Timetable:
    """Place one operator after the other where it ends first.

    Of the operators whose producers are placed, the one with the highest priority is next; among
    equals the least operator. It goes on the supporting processor on which its end is least (the
    least processor among equals), into the first gap in which it fits.

    Parameters
    ----------
    pinned
        Processors of operators that have no choice. They must support them.
    tail_s
        `tail_s[v][p]`, added to the end of v on p before ends are compared.
    """
    pinned = pinned or {}
    support = supporting(problem)
    readers = readers_of(problem)
    waits = [0] * problem.operators
    for edges in readers:
        for w in edges:
            waits[w] += 1
    ready = [(-priority[v], v) for v, count in enumerate(waits) if not count]
    heapify(ready)
    table = Timetable(problem)
    while ready:
        v = heappop(ready)[1]
        weighed = {
            p: table.earliest_end_s(v, p) + (tail_s[v][p] if tail_s else 0.0)
            for p in ([pinned[v]] if v in pinned else support[v])
        }
        table.place(v, min(weighed, key=weighed.__getitem__))
        for w in readers[v]:
            waits[w] -= 1
            if not waits[w]:
                heappush(ready, (-priority[w], w))
    return table
