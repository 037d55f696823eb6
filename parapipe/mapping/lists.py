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
from typing import TypeVar

from parapipe.mapping.certify import certified, with_transfers
from parapipe.mapping.paths import (
    Means,
    by_priority,
    downward_ranks_s,
    means_of,
    optimistic_costs_s,
    readers_of,
    simple_bound_s,
    supporting,
    upward_ranks_s,
)
from parapipe.mapping.problem import Flow, MappingProblem
from parapipe.mapping.replay import Timed, arrival_s, inputs_of
from parapipe.mapping.schedule import Schedule

Time = TypeVar("Time", int, float)


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

    @property
    def timed(self) -> Timed:
        """Start and end of every operator, once all are placed."""
        return Timed(tuple(self.start_s), tuple(self.end_s))

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
        begin_s = arrival_s(self._inputs[v], p, self.processor, self.end_s)
        lasts_s = self.problem.time_s[v][p]
        return first_gap(self._starts_s[p], self._ends_s[p], begin_s, lasts_s)


def first_gap(
    starts: Sequence[Time], ends: Sequence[Time], begin: Time, lasts: Time
) -> tuple[int, Time]:
    """Return position and start of what is put into the first gap that is long enough.

    Parameters
    ----------
    starts, ends
        Of what a processor runs already, in the order of time.
    begin
        The gap is sought from here on.
    """
    # behind all that has ended by then, so that no operator gets in front of one that it waits
    # for, not even of one that takes no time
    position = bisect_right(ends, begin)
    while position < len(ends) and begin + lasts > starts[position]:
        begin = max(begin, ends[position])
        position += 1
    return position, begin


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
