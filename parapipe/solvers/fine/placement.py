"""Schedules in whole units, and the list scheduling that makes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from random import Random

from parapipe.solvers.fine.integer_problem import Bounds, IntegerProblem
from parapipe.solvers.lists import Gaps
from parapipe.solvers.paths import by_priority


@dataclass(frozen=True, slots=True)
class Placement:
    """Where and when every operator of an integer problem runs, in units."""

    processor: tuple[int, ...]
    start_units: tuple[int, ...]
    end_units: tuple[int, ...]

    @property
    def makespan_units(self) -> int:
        """The latest end."""
        return max(self.end_units)


@dataclass(frozen=True, slots=True)
class Answer:
    """What is known of a problem after a search below a limit.

    Parameters
    ----------
    bound_units
        No schedule is shorter.
    placement
        The best found; None if none within the limit was found.
    """

    bound_units: int
    placement: Placement | None

    def closed(self, limit_units: int) -> bool:
        """Whether the placement is optimal, or no schedule is within the limit."""
        if self.placement and self.placement.makespan_units <= self.bound_units:
            return True
        return self.bound_units > limit_units

    def within(self, limit_units: int) -> int:
        """Return the limit below which a search is of use."""
        return (
            min(limit_units, self.placement.makespan_units - 1) if self.placement else limit_units
        )

    def and_then(self, other: Answer, within_units: int) -> Answer:
        """Put this and what a search within a limit has found together."""
        bound_units = max(self.bound_units, min(other.bound_units, within_units + 1))
        candidates = [a.placement for a in (self, other) if a.placement]
        best = min(candidates, key=lambda placement: placement.makespan_units, default=None)
        return Answer(bound_units, best)


def placement(
    problem: IntegerProblem, processor: Sequence[int], start_units: Sequence[int]
) -> Placement:
    """Return the placement with these starts."""
    ends_units = [
        s + row[p] for s, row, p in zip(start_units, problem.time_units, processor, strict=True)
    ]
    return Placement(tuple(processor), tuple(start_units), tuple(ends_units))


def in_order(problem: IntegerProblem, processor: Sequence[int], order: Sequence[int]) -> Placement:
    """Start every operator as early as it can in an order, which must be a topological one."""
    start_units = [0] * problem.operators
    end_units = [0] * problem.operators
    free_units = [0] * problem.processors
    for v in order:
        p = processor[v]
        begin_units = max(free_units[p], problem.release_units[v][p])
        for u, delay in problem.edges[v]:
            begin_units = max(begin_units, end_units[u] + delay[processor[u]][p])
        start_units[v] = begin_units
        end_units[v] = free_units[p] = begin_units + problem.time_units[v][p]
    return Placement(tuple(processor), tuple(start_units), tuple(end_units))


def list_schedule(
    problem: IntegerProblem, priority: Sequence[float], tail_units: Sequence[Sequence[float]]
) -> Placement:
    """Place operators one by one, each in the first gap of the processor that suits it best.

    Of the operators whose producers are placed, the one with the highest priority is next (among
    equals the least); it goes where its end plus `tail_units[v][p]` is least.
    """
    processor = [0] * problem.operators
    start_units = [0] * problem.operators
    end_units = [0] * problem.operators
    gaps: list[Gaps[int]] = [Gaps() for _ in range(problem.processors)]
    readers = [[w for w, _ in edges] for edges in problem.readers]
    for v in by_priority(readers, [-rank for rank in priority]):
        options: list[tuple[float, int, int]] = []
        for p in problem.choices[v]:
            begin_units = problem.release_units[v][p]
            for u, delay in problem.edges[v]:
                begin_units = max(begin_units, end_units[u] + delay[processor[u]][p])
            lasts_units = problem.time_units[v][p]
            begin_units = gaps[p].first(begin_units, lasts_units)
            options.append((begin_units + lasts_units + tail_units[v][p], p, begin_units))
        _, p, begin_units = min(options)
        processor[v] = p
        start_units[v] = begin_units
        end_units[v] = begin_units + problem.time_units[v][p]
        gaps[p].fill(start_units[v], end_units[v])
    return placement(problem, processor, start_units)


def list_by_paths(bounds: Bounds) -> Placement:
    """Return the list schedule by falling shortest path to the end, ends compared with tails."""
    problem, tail_units = bounds.problem, bounds.tail_units
    rows = zip(problem.time_units, tail_units, problem.choices, strict=True)
    paths_units = [min(row[p] + tails[p] for p in choices) for row, tails, choices in rows]
    return list_schedule(problem, paths_units, tail_units)


WEIGHTS = (0.0, 0.5, 1.0, 2.0, 3.0, 5.0, 8.0, 12.0, 20.0)
NOISE = 0.1  # share by which a priority varies


def priced_list_schedules(bounds: Bounds, prices: Sequence[int], seed: int) -> Iterator[Placement]:
    """Yield list schedules without end: first each weight as it is, then at random.

    Where loads bound the makespan, an operator should not go where it ends first if its time there
    is worth more than elsewhere: to ends is added weight × (λ_p w_vp − least λ_q w_vq), with the
    prices λ of the load bound.
    """
    problem, processors = bounds.problem, range(bounds.problem.processors)
    scale = problem.processors / sum(prices)
    extra: list[list[float]] = []
    paths_units: list[int] = []
    for row, tails, choices in zip(
        problem.time_units, bounds.tail_units, problem.choices, strict=True
    ):
        least = min(prices[p] * row[p] for p in choices)
        extra.append([scale * (prices[p] * row[p] - least) for p in processors])
        paths_units.append(min(row[p] + tails[p] for p in choices))

    def schedule(priority: Sequence[float], weight: float, tail_share: float) -> Placement:
        behind = [
            [tail_share * tail + weight * more for tail, more in zip(*rows, strict=True)]
            for rows in zip(bounds.tail_units, extra, strict=True)
        ]
        return list_schedule(problem, priority, behind)

    for weight, tail_share in product(WEIGHTS, (0.0, 1.0)):
        yield schedule(paths_units, weight, tail_share)
    random = Random(seed)
    while True:
        priority = [path_units * random.uniform(1 - NOISE, 1 + NOISE) for path_units in paths_units]
        yield schedule(priority, random.choice(WEIGHTS), random.choice((0.0, 0.5, 1.0)))
