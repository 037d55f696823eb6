"""Schedules in whole units, the list scheduling that makes them, and what is done without a search.

Problems with more operators than a search can close get good schedules and a bound, in seconds:
list schedules, some of which count what the processors' time is worth, and one of balanced loads.
For that, each operator goes where it costs least at those prices, and while that shortens the
longest load, the operator that loses least by it leaves the processor with that load (as longest
processing time first does for equal processors). Bounds are longest paths and loads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import islice, product
from random import Random

from parapipe.solvers.fine.integer_problem import (
    Bounds,
    IntegerProblem,
    idle,
    inner_load_bound,
    integer_problem,
    load_bound,
    path_bounds,
    units_per_second,
    worth,
)
from parapipe.solvers.lists import Gaps, heft, peft
from parapipe.solvers.paths import by_priority, list_order
from parapipe.solvers.problem import MappingProblem, floor_units
from parapipe.solvers.replay import Timed, certified, order_by_start, replay
from parapipe.solvers.schedule import Schedule


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


MOST_SEARCHED = 400
"""Operators of the largest problem that CP-SAT and CBC are given."""

PRICE_ROUNDS = 100
LISTS = 2
BALANCED = 2  # schedules of balanced loads, each with the idle times of the one before
MOST_MOVES = 4  # for each operator


def scheduled(problem: MappingProblem, *, seed: int, began_s: float) -> Schedule:
    """Place and order operators without a search; verified. Transfers are pure delays.

    The work grows with n log n in the number of operators, and ends by itself.
    """
    quick = [heuristic(problem, time_limit_s=0, seed=seed) for heuristic in (heft, peft)]
    best = min(quick, key=lambda schedule: schedule.makespan_s)
    per_second = units_per_second(best.makespan_s)
    bounds = path_bounds(integer_problem(problem, per_second))
    prices = worth(bounds.problem, PRICE_ROUNDS)
    inner = _inner_operators(bounds)
    candidates = [(best.processor, Timed(best.start_s, best.end_s))]
    for listed in islice(priced_list_schedules(bounds, prices, seed), LISTS):
        order = order_by_start(listed.start_units, listed.end_units)
        candidates.append((listed.processor, replay(problem, listed.processor, order)))
    able = {p for v in inner for p in bounds.problem.choices[v]}
    idle_units = {p: idle(bounds, inner, p) for p in able}
    for _ in range(BALANCED):
        processor = tuple(_balance_loads(bounds.problem, prices, inner, idle_units))
        paths_units = _paths_to_end(bounds.problem, processor)
        falling = sorted(range(problem.operators), key=lambda v: (-paths_units[v], v))
        ranks = sorted(range(problem.operators), key=falling.__getitem__)
        order = list_order(problem, processor, ranks)
        candidates.append((processor, replay(problem, processor, order)))
        idle_units |= _idle_units(bounds, *candidates[-1], inner, per_second)
    bound_units = max(
        bounds.makespan_units(), load_bound(bounds, prices), inner_load_bound(bounds, prices, inner)
    )
    processor, timed = min(candidates, key=lambda each: each[1].makespan_s)
    return certified(
        problem,
        processor,
        timed,
        bound_s=max(bound_units / per_second, *(each.certificate.bound_s for each in quick)),
        solver="list scheduling and loads",
        seed=seed,
        began_s=began_s,
    )


def _inner_operators(bounds: Bounds) -> list[int]:
    """Return the operators without those that begin or end everything; all if that leaves none."""
    problem = bounds.problem
    heads, tails = (
        [min(row[p] for p in choices) for row, choices in zip(rows, problem.choices, strict=True)]
        for rows in (bounds.head_units, bounds.tail_units)
    )
    least_head = min(filter(None, heads), default=0)
    least_tail = min(filter(None, tails), default=0)
    most = [[v for v, tail in enumerate(tails) if tail >= least_tail] or [*range(len(tails))]]
    most.append([v for v in most[0] if heads[v] >= least_head])
    return most[1] if 2 * len(most[1]) > len(most[0]) else most[0]


def _balance_loads(
    problem: IntegerProblem,
    prices: Sequence[int],
    operators: Sequence[int],
    idle_units: Mapping[int, int],
) -> list[int]:
    """Return the processor of every operator; the loads of those named are balanced.

    Parameters
    ----------
    idle_units
        When each processor runs none of them.
    """
    rows = problem.time_units
    processor = [
        min(choices, key=lambda p: (prices[p] * row[p], p))
        for row, choices in zip(rows, problem.choices, strict=True)
    ]
    loads_units = dict(idle_units)
    losses = {(p, q): list[tuple[float, int]]() for p in loads_units for q in loads_units}

    def offer(v: int) -> None:
        p = processor[v]
        for q in problem.choices[v]:
            if q != p:
                heappush(losses[p, q], (rows[v][q] / max(rows[v][p], 1), v))

    for v in operators:
        loads_units[processor[v]] += rows[v][processor[v]]
        offer(v)
    for _ in range(MOST_MOVES * len(operators)):
        longest = max(loads_units, key=loads_units.__getitem__)
        moves = []
        for q, load_units in loads_units.items():
            heap = losses[longest, q]
            while heap and (
                processor[heap[0][1]] != longest
                or load_units + rows[heap[0][1]][q] >= loads_units[longest]
            ):
                heappop(heap)
            moves += [(*heap[0], q)] if heap else []
        if not moves:
            break
        _, v, q = min(moves)
        loads_units[longest] -= rows[v][longest]
        loads_units[q] += rows[v][q]
        processor[v] = q
        offer(v)
    return processor


def _paths_to_end(problem: IntegerProblem, processor: Sequence[int]) -> list[int]:
    """Return the longest path from each operator's start to the end, all on their processors."""
    paths_units = [0] * problem.operators
    for v in reversed(range(problem.operators)):
        p = processor[v]
        behind = (delay[p][processor[w]] + paths_units[w] for w, delay in problem.readers[v])
        paths_units[v] = problem.time_units[v][p] + max(behind, default=0)
    return paths_units


def _idle_units(
    bounds: Bounds,
    processor: Sequence[int],
    timed: Timed,
    operators: Sequence[int],
    per_second: float,
) -> dict[int, int]:
    """Return how long each processor runs none of some operators in a schedule."""
    idle_units: dict[int, int] = {}
    for p in {processor[v] for v in operators}:
        own = [v for v in operators if processor[v] == p]
        busy_s = sum(timed.end_s[v] - timed.start_s[v] for v in own)
        waits_s = max(timed.end_s[v] for v in own) - busy_s
        idle_units[p] = floor_units(waits_s, per_second) + min(bounds.tail_units[v][p] for v in own)
    return idle_units
