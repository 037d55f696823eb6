"""Least latency of a whole network at a period: assignments and modulo schedules together."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence

from parapipe.mapping.interleaved.beam import Manner, built
from parapipe.mapping.interleaved.cyclic import NEVER, Cyclic, ModuloSchedule
from parapipe.mapping.interleaved.modulo import Works, scheduled, tightened
from parapipe.mapping.interleaved.values import Values

WIDTH = 16  # partial mappings kept, of networks of so many operators or fewer:
OPERATORS = 100
SCHEDULED = 3  # mappings of each manner that are scheduled
ROOM = 0.12  # share above the least period from which on operators find gaps as they come
MANNERS = (Manner(True, 0.03, 0.6), Manner(True, 0.1, 0.6))
CLOSE = (Manner(False, 0.03, 0.9), Manner(False, 0.1, 0.6), Manner(False, 0.3, 0.9))
PLACED = 3_000  # pieces of work, in changes to one schedule
DRAWN = 800  # changes, most of which do not keep the loads within the period
RUNS = (1, 1, 2, 3, 4, 6, 10)  # neighbours that move together
SWAPS = 6  # operators that may make room


def least_latency(
    net: Cyclic,
    period: int,
    values: Values,
    known: Iterable[Sequence[int]] = (),
    *,
    above: float,
    seed: int = 0,
    over: Callable[[], bool] = lambda: False,
) -> ModuloSchedule | None:
    """Return the schedule of least latency that is found at a period.

    Parameters
    ----------
    known
        Assignments to begin with.
    above
        Share by which the period is above the least one.
    seed
        Of all random choices.
    over
        Whether to end with what is found.
    """
    found = [*_built(net, period, values, above, over)]
    left = (place for place in known if not (found and over()))
    found += filter(None, (scheduled(Works.of(net, place), period) for place in left))
    if not found:
        return None
    best = min(found, key=net.cost)
    return improved(net, best, seed, over)


def _built(
    net: Cyclic, period: int, values: Values, above: float, over: Callable[[], bool]
) -> Iterator[ModuloSchedule]:
    width = max(WIDTH // 4, WIDTH * OPERATORS // max(OPERATORS, net.operators))
    for manner in (*MANNERS, CLOSE[0]) if above > ROOM else CLOSE:
        for each in built(net, period, values, manner, above=above, width=width, over=over)[
            :SCHEDULED
        ]:
            if over():
                return
            works = Works.of(net, each.place)
            if manner.exclusive and not works.routes:
                yield works.schedule(period, tightened(works, period, [*each.start]))
            elif schedule := scheduled(works, period):
                yield schedule


def improved(
    net: Cyclic, schedule: ModuloSchedule, seed: int = 0, over: Callable[[], bool] = lambda: False
) -> ModuloSchedule:
    """Return a schedule with operators moved to other processors while that shortens it.

    Parameters
    ----------
    over
        Whether to end with what is found.
    """
    draw = random.Random(seed)
    best, loads = schedule, net.loads(schedule.processor)
    left = PLACED
    for _ in range(DRAWN):
        if left <= 0 or over():
            break
        place = _changed(net, best.processor, best.period, loads, draw)
        if place is None:
            continue
        works = Works.of(net, place)
        found = scheduled(works, best.period)
        left -= works.placed
        if found and net.cost(found) < net.cost(best):
            best, loads = found, net.loads(found.processor)
    return best


def _changed(
    net: Cyclic, place: Sequence[int], period: int, loads: Sequence[int], draw: random.Random
) -> list[int] | None:
    """Move neighbours to another processor, and what gives them room; None if nothing does."""
    moving = _neighbours(net, place, draw)
    source, target = place[moving[0]], draw.randrange(net.processors)
    if target == source or any(net.time[v][target] >= NEVER for v in moving):
        return None
    after = [*place]
    for v in moving:
        after[v] = target
    over = loads[target] + sum(net.time[v][target] for v in moving) - period
    left = {p: period - load for p, load in enumerate(loads[: net.processors])}
    left[source] += sum(net.time[v][source] for v in moving)
    others = [v for v, p in enumerate(place) if p == target]
    for v in draw.sample(others, min(SWAPS, len(others))) if over > 0 else ():
        p = draw.randrange(net.processors)
        if over > 0 and p != target and net.time[v][p] <= left[p]:
            after[v] = p
            left[p] -= net.time[v][p]
            over -= net.time[v][target]
    return after if over <= 0 else None


def _neighbours(net: Cyclic, place: Sequence[int], draw: random.Random) -> list[int]:
    """Return operators on one processor that read from each other."""
    first, most = draw.randrange(net.operators), draw.choice(RUNS)
    found = [first]
    for v in found:
        for u in sorted(net.before[v] | net.after[v]):
            if len(found) < most and place[u] == place[first] and u not in found:
                found.append(u)
    return found
