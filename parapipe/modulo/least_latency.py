"""Least latency of a whole network at a period: assignments and modulo schedules together."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence

from parapipe.modulo.beam_search import Manner, Values, built
from parapipe.modulo.cyclic_problem import NEVER, Cyclic, ModuloSchedule
from parapipe.modulo.modulo_schedules import Works, scheduled, tightened

MOVERS = 60  # operators of which swaps are tried, those that take longest
PARTNERS = 20  # operators that may go back for one that moves
HAND_OVER = 0.02  # share of a period that one more hand-over counts for

Change = tuple[tuple[int, int], ...]  # operators and where they go


def fitted(
    net: Cyclic,
    place: Sequence[int],
    period: int,
    prices: Sequence[float],
    *,
    over: Callable[[], bool] = lambda: False,
) -> list[int] | None:
    """Return an assignment near a given one with loads of at most a period; None if none is found.

    Transfers that are work are not looked at: they may break the period still.

    Parameters
    ----------
    prices
        What a second of each processor is worth; see `prices_of`.
    over
        Whether to give up.
    """
    found, loads = [*place], [0] * net.processors
    for v, p in enumerate(found):
        loads[p] += net.time[v][p]
    for _ in range(net.operators):
        if not _over(loads, period, prices):
            return found
        if over():
            return None
        change = _best(net, found, loads, period, prices)
        if change is None:
            return None
        for v, q in change:
            loads[found[v]] -= net.time[v][found[v]]
            loads[q] += net.time[v][q]
            found[v] = q
    return None


def _over(loads: Sequence[int], period: int, prices: Sequence[float]) -> float:
    return sum(max(0, load - period) * price for load, price in zip(loads, prices, strict=True))


def _best(
    net: Cyclic,
    place: Sequence[int],
    loads: Sequence[int],
    period: int,
    prices: Sequence[float],
) -> Change | None:
    """Return the change that lessens most of what is above the period, and adds few hand-overs."""
    before = _over(loads, period, prices)
    best, change = 0.0, None
    for changes in (_moves(net, place, loads, period), _swaps(net, place, loads, period)):
        for each in changes:
            after = [*loads]
            for v, q in each:
                after[place[v]] -= net.time[v][place[v]]
                after[q] += net.time[v][q]
            less = before - _over(after, period, prices)
            if less <= 0:
                continue
            added = sum(_added(net, place, v, q) for v, q in each)
            worth = less / (before + HAND_OVER * period * max(prices) * max(0, added + 1))
            if worth > best:
                best, change = worth, each
        if change:
            return change
    return None


def _moves(
    net: Cyclic, place: Sequence[int], loads: Sequence[int], period: int
) -> Iterator[Change]:
    for v, p in enumerate(place):
        if loads[p] > period:
            for q, time in enumerate(net.time[v]):
                if q != p and time < NEVER:
                    yield ((v, q),)


def _swaps(
    net: Cyclic, place: Sequence[int], loads: Sequence[int], period: int
) -> Iterator[Change]:
    """Yield moves together with another operator's, away from where the first one goes."""
    on: dict[int, list[int]] = {p: [] for p in range(net.processors)}
    for v, p in enumerate(place):
        on[p].append(v)
    moves = sorted(
        _moves(net, place, loads, period), key=lambda each: -net.time[each[0][0]][each[0][1]]
    )
    for ((v, q),) in moves[:MOVERS]:
        for u in sorted(on[q], key=lambda u: abs(net.time[u][q] - net.time[v][q]))[:PARTNERS]:
            for r, time in enumerate(net.time[u]):
                if r != q and time < NEVER:
                    yield ((v, q), (u, r))


def _added(net: Cyclic, place: Sequence[int], v: int, q: int) -> int:
    """Return by how much hand-overs become more if an operator moves."""
    near = [*net.before[v], *net.after[v]]
    return sum((place[u] != q) - (place[u] != place[v]) for u in near)


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
