"""A schedule that uses every processor it may, where the shortest one leaves some idle.

A stage is parallel only if it really uses several processors. So beside the shortest schedule of a
subgraph a search wants one that uses them all, however little the others do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import inf
from time import perf_counter

from parapipe.solvers.fine.list_schedules import MOST_SEARCHED
from parapipe.solvers.paths import bound_with_s, list_order
from parapipe.solvers.problem import MappingProblem
from parapipe.solvers.replay import Timed, certified, order_by_start, time_placement
from parapipe.solvers.schedule import Schedule

MOST_MOVED = 16
"""Operators of a problem of more than `MOST_SEARCHED` that are tried on an idle processor."""

Placed = tuple[list[int], Timed]


def use_all_processors(problem: MappingProblem, schedule: Schedule) -> Schedule | None:
    """Return a verified schedule that uses every processor on which some operator can run.

    To each idle processor goes the operator that makes the schedule longer by the least there; of a
    large problem, one of a few short ones. The certificate speaks of the makespans of all such
    schedules: some operator is on each processor. None if nothing is idle, or if some processors
    have no operator to spare.

    Parameters
    ----------
    schedule
        A schedule of the problem whose certificate speaks of the makespan.
    """
    began_s = perf_counter()
    usable = {p for row in problem.time_s for p, time_s in enumerate(row) if time_s < inf}
    idle = usable.difference(schedule.processor)
    if not idle:
        return None
    placed = (list(schedule.processor), Timed(schedule.start_s, schedule.end_s, schedule.transfers))
    large = problem.operators > MOST_SEARCHED
    for p in sorted(idle):
        moved = min(
            _moves(problem, placed, p, MOST_MOVED if large else None),
            key=lambda each: each[1].makespan_s,
            default=None,
        )
        if moved is None:
            return None
        placed = moved
    processor, times = placed
    claim = schedule.certificate
    return certified(
        problem,
        processor,
        times,
        bound_s=max(claim.bound_s, *(0.0 if large else bound_with_s(problem, p) for p in idle)),
        solver=f"{claim.solver}; an operator moved to each idle processor",
        seed=claim.seed,
        began_s=began_s,
    )


def _moves(
    problem: MappingProblem, placed: Placed, idle: int, most: int | None
) -> Iterator[Placed]:
    """Yield placements with one operator moved to a processor so that no other one becomes idle.

    Parameters
    ----------
    most
        So many of them, of the operators that take the least time there; all if None.
    """
    processor, times = placed
    order = order_by_start(times.start_s, times.end_s)
    rank = sorted(range(len(order)), key=order.__getitem__)
    counts = Counter(processor)
    able = [v for v, p in enumerate(processor) if problem.time_s[v][idle] < inf and counts[p] > 1]
    if most is not None:
        able = sorted(able, key=lambda v: problem.time_s[v][idle])[:most]
    for v in able:
        candidate = [*processor[:v], idle, *processor[v + 1 :]]
        yield candidate, time_placement(problem, candidate, list_order(problem, candidate, rank))
