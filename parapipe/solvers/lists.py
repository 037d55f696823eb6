"""List scheduling with insertion: the mappers HEFT, CPOP and PEFT.

HEFT (heterogeneous earliest finish time) and CPOP (critical path on a processor) are those of
Topcuoglu, Hariri and Wu (2002), "Performance-effective and low-complexity task scheduling for
heterogeneous computing", IEEE Transactions on Parallel and Distributed Systems 13(3). PEFT (predict
earliest finish time) is that of Arabnejad and Barbosa (2014), "List scheduling algorithm for
heterogeneous systems by an optimistic cost table", same journal 25(3).

`paths` says how times and transfers are averaged where a processor does not support an operator;
placing counts the true ones. All of them take milliseconds and have no random choice, so time limit
and seed are of no effect. Their certificates speak of the makespan, the bound is
`simple_bound_s`: a schedule is proven where the two happen to meet.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import fsum, inf
from time import perf_counter
from typing import Generic, TypeVar

from parapipe.solvers.paths import (
    Means,
    arrival_s,
    by_priority,
    downward_ranks_s,
    inputs_of,
    means_of,
    optimistic_costs_s,
    readers_of,
    simple_bound_s,
    supporting,
    upward_ranks_s,
)
from parapipe.solvers.problem import MappingProblem
from parapipe.solvers.replay import Timed, certified, with_transfers
from parapipe.solvers.schedule import Schedule

Time = TypeVar("Time", int, float)


@dataclass(slots=True)
class Gaps(Generic[Time]):
    """Gaps between the operators that a processor runs.

    Operators without time between them are one block: a search passes all of them in one step.
    """

    _starts: list[Time] = field(default_factory=list)
    _ends: list[Time] = field(default_factory=list)
    _block_starts: list[Time] = field(default_factory=list)
    _block_ends: list[Time] = field(default_factory=list)

    def first(self, begin: Time, lasts: Time) -> Time:
        """Return the start of what is put into the first gap from `begin` on that is long enough.

        It comes behind all that has ended by then, so that no operator gets in front of one that
        it waits for, not even of one that takes no time.
        """
        # what takes no time fits between the operators of a block
        starts, ends = (
            (self._block_starts, self._block_ends) if lasts else (self._starts, self._ends)
        )
        position = bisect_right(ends, begin)
        while position < len(ends) and begin + lasts > starts[position]:
            begin = max(begin, ends[position])
            position += 1
        return begin

    def fill(self, start: Time, end: Time) -> None:
        """Put an operator where `first` has found room for it."""
        position = bisect_right(self._ends, start)
        self._starts.insert(position, start)
        self._ends.insert(position, end)
        starts, ends = self._block_starts, self._block_ends
        position = bisect_right(ends, start)
        touches_before = position > 0 and ends[position - 1] == start
        touches_behind = position < len(starts) and starts[position] == end
        if touches_before and touches_behind:
            del ends[position - 1], starts[position]
        elif touches_before:
            ends[position - 1] = end
        elif touches_behind:
            starts[position] = start
        elif position == len(starts) or end < starts[position]:
            starts.insert(position, start)
            ends.insert(position, end)


def heft(problem: MappingProblem, *, time_limit_s: float, seed: int) -> Schedule:
    """Place operators by falling upward rank, each where it ends first; verified."""
    began_s = perf_counter()
    return _certified(heft_table(problem), "HEFT", seed, began_s)


def heft_table(problem: MappingProblem) -> Timetable:
    """Return what `heft` makes of pure delays."""
    return list_schedule(problem, upward_ranks_s(means_of(problem)))


def cpop(problem: MappingProblem, *, time_limit_s: float, seed: int) -> Schedule:
    """Place operators by falling sum of their downward and upward rank; verified.

    Those on the critical path, the longest by mean times, all go on one processor: the one that
    runs the path fastest. The others go where they end first.

    Where no processor supports the whole path, the paper says nothing. Here the path's processor is
    one of those that support most of its operators, of these the one that is fastest on them, and
    an operator of the path that it does not support goes where it ends first, like those off the
    path.
    """
    began_s = perf_counter()
    return _certified(cpop_table(problem), "CPOP", seed, began_s)


def cpop_table(problem: MappingProblem) -> Timetable:
    """Return what `cpop` makes of pure delays."""
    means = means_of(problem)
    path = critical_path(means)
    center = _path_processor(problem, path)
    return list_schedule(
        problem,
        [d + u for d, u in zip(downward_ranks_s(means), upward_ranks_s(means), strict=True)],
        pinned={v: center for v in path if problem.time_s[v][center] < inf},
    )


def peft(problem: MappingProblem, *, time_limit_s: float, seed: int) -> Schedule:
    """Place operators by the optimistic cost table, `paths.optimistic_costs_s`; verified.

    The table holds, for an operator on a processor, how long the rest of the problem takes at least
    if nothing but paths counted. Operators are placed by falling mean of their row, over the
    processors that support them, each where its end plus the table's entry is least.
    """
    began_s = perf_counter()
    return _certified(peft_table(problem), "PEFT", seed, began_s)


def peft_table(problem: MappingProblem) -> Timetable:
    """Return what `peft` makes of pure delays."""
    tail_s = optimistic_costs_s(problem)
    rank_s = [
        sum(row[p] for p in support) / len(support)
        for row, support in zip(tail_s, supporting(problem), strict=True)
    ]
    return list_schedule(problem, rank_s, tail_s=tail_s)


def heft_cpop(problem: MappingProblem, *, time_limit_s: float, seed: int) -> Schedule:
    """Take the better of HEFT and CPOP, the heuristic that the Para-Pipe paper compares with.

    Of equals HEFT's; `solver` in the certificate names the one taken.
    """
    began_s = perf_counter()
    both = [place(problem, time_limit_s=time_limit_s, seed=seed) for place in (heft, cpop)]
    best = min(both, key=lambda schedule: schedule.makespan_s)
    return replace(best, certificate=replace(best.certificate, wall_s=perf_counter() - began_s))


def critical_path(means: Means) -> tuple[int, ...]:
    """Operators of the longest path by mean times, first to last; of equals the least operators.

    It starts where its length, the arrival of tensors from outside included, is greatest.
    """
    rank_s = upward_ranks_s(means)
    path = [max(range(len(rank_s)), key=lambda v: means.release_s[v] + rank_s[v])]
    while edges := means.delay_s[path[-1]]:
        path.append(min(edges, key=lambda w: (-edges[w] - rank_s[w], w)))
    return tuple(path)


def _path_processor(problem: MappingProblem, path: tuple[int, ...]) -> int:
    def unfit(p: int) -> tuple[int, float]:
        times_s = [problem.time_s[v][p] for v in path]
        return times_s.count(inf), fsum(s for s in times_s if s < inf)

    return min(range(problem.processors), key=unfit)


class Timetable:
    """Operators placed so far, with start and end in seconds."""

    def __init__(self, problem: MappingProblem) -> None:
        self.problem = problem
        self.processor = [0] * problem.operators
        self.start_s, self.end_s = [inf] * problem.operators, [inf] * problem.operators
        self._inputs = inputs_of(problem)
        self._gaps: list[Gaps[float]] = [Gaps() for _ in range(problem.processors)]

    @property
    def timed(self) -> Timed:
        """Start and end of every operator, once all are placed."""
        return Timed(tuple(self.start_s), tuple(self.end_s))

    def earliest_end_s(self, v: int, p: int) -> float:
        """Second at which operator v, all of whose producers are placed, can end on p."""
        return self._start_s(v, p) + self.problem.time_s[v][p]

    def place(self, v: int, p: int) -> None:
        """Put operator v into the first gap of p that is long enough."""
        self.processor[v] = p
        self.start_s[v] = self._start_s(v, p)
        self.end_s[v] = self.start_s[v] + self.problem.time_s[v][p]
        self._gaps[p].fill(self.start_s[v], self.end_s[v])

    def _start_s(self, v: int, p: int) -> float:
        begin_s = arrival_s(self._inputs[v], p, self.processor, self.end_s)
        return self._gaps[p].first(begin_s, self.problem.time_s[v][p])


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
    table = Timetable(problem)
    for v in by_priority(readers_of(problem), [-rank for rank in priority]):
        weighed = {
            p: table.earliest_end_s(v, p) + (tail_s[v][p] if tail_s else 0.0)
            for p in ([pinned[v]] if v in pinned else support[v])
        }
        table.place(v, min(weighed, key=weighed.__getitem__))
    return table


def _certified(table: Timetable, solver: str, seed: int, began_s: float) -> Schedule:
    return certified(
        table.problem,
        table.processor,
        with_transfers(table.problem, table.processor, table.timed),
        bound_s=simple_bound_s(table.problem),
        solver=solver,
        seed=seed,
        began_s=began_s,
    )
