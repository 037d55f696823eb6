"""Modulo schedules that keep an order: one that is given, or that of another period's schedule."""

from __future__ import annotations

from collections.abc import Sequence

from parapipe.modulo.cyclic_problem import ModuloSchedule
from parapipe.modulo.modulo_schedules import (
    FREE,
    Circle,
    Jobs,
    first_fit,
    order_arcs,
    soon_read,
    tighten,
    with_work,
)

ROUNDS = 32  # of relaxation, behind which no schedule of that period is looked for any more


def schedule_in_order(jobs: Jobs, period: int, order: Sequence[int]) -> ModuloSchedule | None:
    """Return a schedule in which operators were placed one after the other, each as early as fits.

    Parameters
    ----------
    period
        Nanoseconds.
    order
        All operators, makers before readers.

    Returns
    -------
    None if something fits nowhere, or a transfer would have to wait for its reader for a period.
    """
    if max(jobs.cyclic.loads(jobs.place)) > period:
        return None
    start = [-1] * len(jobs.time)
    circle: dict[int, Circle] = dict.fromkeys(jobs.resource, FREE)
    arrivals = jobs.cyclic.arrivals(period)
    makers = ((u for u, _ in jobs.before[v] if u >= jobs.cyclic.operators) for v in order)
    for v, transfers in zip(order, makers, strict=True):
        for w in (*(u for u in transfers if start[u] < 0), v):
            ready = arrivals[w] if w < jobs.cyclic.operators else 0
            ready = max([ready, *(start[u] + jobs.time[u] + gap for u, gap in jobs.before[w])])
            resource, time = jobs.resource[w], jobs.time[w]
            at = first_fit(circle[resource], period, ready, time)
            if at is None:
                return None
            start[w] = at
            circle[resource] = with_work(circle[resource], period, at, time)
    schedule = jobs.schedule(period, tighten(jobs, period, start))
    return schedule if soon_read(jobs, schedule) else None


def at_period(jobs: Jobs, schedule: ModuloSchedule, period: int) -> ModuloSchedule | None:
    """Return a schedule of another period in which all resources keep their circular order.

    Frames follow each other on each resource as they did. None if the orders need more time, or as
    of `schedule_in_order`.
    """
    start = jobs.starts(schedule)
    arcs = order_arcs(jobs, schedule.period, start, period)
    arcs.sort(key=lambda arc: start[arc[0]])
    paced = [0] * len(start)
    for _ in range(ROUNDS):
        changed = False
        for u, v, gap in arcs:
            if paced[u] + gap > paced[v]:
                paced[v], changed = paced[u] + gap, True
        if not changed:
            found = jobs.schedule(period, tighten(jobs, period, paced))
            return found if soon_read(jobs, found) else None
    return None
