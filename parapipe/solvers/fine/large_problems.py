"""Problems with more operators than a search can close: good schedules and a bound, in seconds.

List schedules, some of which count what the processors' time is worth, and one of balanced loads:
each operator goes where it costs least at those prices, and while that shortens the longest load,
the operator that loses least by it leaves the processor with that load (as longest processing time
first does for equal processors). Bounds are longest paths and loads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heappop, heappush
from itertools import islice

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
from parapipe.solvers.fine.placement import priced_list_schedules
from parapipe.solvers.lists import heft, peft
from parapipe.solvers.paths import list_order
from parapipe.solvers.problem import MappingProblem, floor_units
from parapipe.solvers.replay import Timed, by_start, certified, replay
from parapipe.solvers.schedule import Schedule

MOST_SEARCHED = 400
"""Operators of the largest problem that CP-SAT and CBC are given."""

ROUNDS = 100
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
    prices = worth(bounds.problem, ROUNDS)
    inner = _inner_operators(bounds)
    candidates = [(best.processor, Timed(best.start_s, best.end_s))]
    for placement in islice(priced_list_schedules(bounds, prices, seed), LISTS):
        order = by_start(placement.start_units, placement.end_units)
        candidates.append((placement.processor, replay(problem, placement.processor, order)))
    able = {p for v in inner for p in bounds.problem.choices[v]}
    idle_units = {p: idle(bounds, inner, p) for p in able}
    for _ in range(BALANCED):
        processor = tuple(_balance_loads(bounds.problem, prices, inner, idle_units))
        order = list_order(
            problem, processor, _ranks_by_path(_paths_to_end(bounds.problem, processor))
        )
        candidates.append((processor, replay(problem, processor, order)))
        idle_units |= _idle_units(bounds, *candidates[-1], inner, per_second)
    bound_units = max(
        bounds.makespan_units(),
        load_bound(bounds, prices),
        inner_load_bound(bounds, prices, inner),
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


def _ranks_by_path(paths_units: Sequence[int]) -> list[int]:
    """Return the rank of each operator in the order of falling paths."""
    places = [0] * len(paths_units)
    for place, v in enumerate(sorted(range(len(places)), key=lambda v: (-paths_units[v], v))):
        places[v] = place
    return places


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
