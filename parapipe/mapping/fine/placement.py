"""Schedules in whole microseconds, and list scheduling that makes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from parapipe.mapping.fine.bounds import Bounds
from parapipe.mapping.fine.integer_problem import IntegerProblem
from parapipe.mapping.lists import first_gap
from parapipe.mapping.paths import by_priority


@dataclass(frozen=True, slots=True)
class Placement:
    """Where and when every operator of an integer problem runs, in microseconds."""

    processor: tuple[int, ...]
    start_us: tuple[int, ...]
    end_us: tuple[int, ...]

    @property
    def makespan_us(self) -> int:
        """The latest end."""
        return max(self.end_us)


@dataclass(frozen=True, slots=True)
class Answer:
    """What is known of a problem after a search below a limit.

    Parameters
    ----------
    bound_us
        No schedule is shorter.
    placement
        The best found; None if none within the limit was found.
    """

    bound_us: int
    placement: Placement | None

    def closed(self, limit_us: int) -> bool:
        """Whether the placement is optimal, or no schedule is within the limit."""
        if self.placement and self.placement.makespan_us <= self.bound_us:
            return True
        return self.bound_us > limit_us

    def within(self, limit_us: int) -> int:
        """Return the limit below which a search is of use."""
        return min(limit_us, self.placement.makespan_us - 1) if self.placement else limit_us

    def and_then(self, found: Answer, within_us: int) -> Answer:
        """Put this and what a search within a limit has found together."""
        bound_us = max(self.bound_us, min(found.bound_us, within_us + 1))
        candidates = [a.placement for a in (self, found) if a.placement]
        best = min(candidates, key=lambda placement: placement.makespan_us, default=None)
        return Answer(bound_us, best)


def placement(
    problem: IntegerProblem, processor: Sequence[int], start_us: Sequence[int]
) -> Placement:
    """Return the placement with these starts."""
    ends_us = [s + row[p] for s, row, p in zip(start_us, problem.time_us, processor, strict=True)]
    return Placement(tuple(processor), tuple(start_us), tuple(ends_us))


def in_order(problem: IntegerProblem, processor: Sequence[int], order: Sequence[int]) -> Placement:
    """Start every operator as early as it can in an order, which must be a topological one."""
    start_us = [0] * problem.operators
    end_us = [0] * problem.operators
    free_us = [0] * problem.processors
    for v in order:
        p = processor[v]
        begin_us = max(free_us[p], problem.release_us[v][p])
        for u, delay in problem.edges[v]:
            begin_us = max(begin_us, end_us[u] + delay[processor[u]][p])
        start_us[v] = begin_us
        end_us[v] = free_us[p] = begin_us + problem.time_us[v][p]
    return Placement(tuple(processor), tuple(start_us), tuple(end_us))


def list_schedule(
    problem: IntegerProblem, priority: Sequence[float], tail_us: Sequence[Sequence[float]]
) -> Placement:
    """Place operators one by one, each in the first gap of the processor that suits it best.

    Of the operators whose producers are placed, the one with the highest priority is next (among
    equals the least); it goes where its end plus `tail_us[v][p]` is least.
    """
    processor = [0] * problem.operators
    start_us = [0] * problem.operators
    end_us = [0] * problem.operators
    # of each processor, in the order of time
    starts_us: list[list[int]] = [[] for _ in range(problem.processors)]
    ends_us: list[list[int]] = [[] for _ in range(problem.processors)]
    readers = [[w for w, _ in edges] for edges in problem.readers]
    for v in by_priority(readers, [-rank for rank in priority]):
        options: list[tuple[float, int, int, int]] = []
        for p in problem.choices[v]:
            begin_us = problem.release_us[v][p]
            for u, delay in problem.edges[v]:
                begin_us = max(begin_us, end_us[u] + delay[processor[u]][p])
            lasts_us = problem.time_us[v][p]
            position, begin_us = first_gap(starts_us[p], ends_us[p], begin_us, lasts_us)
            options.append((begin_us + lasts_us + tail_us[v][p], p, begin_us, position))
        _, p, begin_us, position = min(options)
        processor[v] = p
        start_us[v] = begin_us
        end_us[v] = begin_us + problem.time_us[v][p]
        starts_us[p].insert(position, begin_us)
        ends_us[p].insert(position, end_us[v])
    return placement(problem, processor, start_us)


def best_list_schedule(bounds: Bounds) -> Placement:
    """Return the shortest of four list schedules.

    By falling least or mean way to the end, ends compared with and without the tail behind them.
    """
    problem, tail_us = bounds.problem, bounds.tail_us
    ways_us = [
        [row[p] + tails[p] for p in choices]
        for row, tails, choices in zip(problem.time_us, tail_us, problem.choices, strict=True)
    ]
    nothing = [(0,) * problem.processors] * problem.operators
    found = [
        list_schedule(problem, priority, behind_us)
        for priority in ([min(w) for w in ways_us], [sum(w) / len(w) for w in ways_us])
        for behind_us in (tail_us, nothing)
    ]
    return min(found, key=lambda found: found.makespan_us)
