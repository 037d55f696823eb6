"""Least latency of a whole network at a period: assignments and modulo schedules together."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence

from parapipe.modulo.beam_search import Manner, Values, beam_search
from parapipe.modulo.cyclic_problem import NEVER, CyclicProblem, ModuloSchedule
from parapipe.modulo.modulo_schedules import Jobs, schedule_jobs, tighten

MOVERS = 60  # operators of which swaps are tried, those that take longest
PARTNERS = 20  # operators that may go back for one that moves
HAND_OVER = 0.02  # share of a period that one more hand-over counts for

Change = tuple[tuple[int, int], ...]  # operators and where they go


def fit_loads(
    cyclic: CyclicProblem,
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
    assignment, loads = [*place], [0] * cyclic.processors
    for v, p in enumerate(assignment):
        loads[p] += cyclic.time[v][p]
    for _ in range(cyclic.operators):
        if not _excess(loads, period, prices):
            return assignment
        if over():
            return None
        change = _best_change(cyclic, assignment, loads, period, prices)
        if change is None:
            return None
        for v, q in change:
            loads[assignment[v]] -= cyclic.time[v][assignment[v]]
            loads[q] += cyclic.time[v][q]
            assignment[v] = q
    return None


def _excess(loads: Sequence[int], period: int, prices: Sequence[float]) -> float:
    return sum(max(0, load - period) * price for load, price in zip(loads, prices, strict=True))


def _best_change(
    cyclic: CyclicProblem,
    place: Sequence[int],
    loads: Sequence[int],
    period: int,
    prices: Sequence[float],
) -> Change | None:
    """Return the change that lessens most of what is above the period, and adds few hand-overs."""
    before = _excess(loads, period, prices)
    best, change = 0.0, None
    for changes in (_moves(cyclic, place, loads, period), _swaps(cyclic, place, loads, period)):
        for each in changes:
            after = [*loads]
            for v, q in each:
                after[place[v]] -= cyclic.time[v][place[v]]
                after[q] += cyclic.time[v][q]
            less = before - _excess(after, period, prices)
            if less <= 0:
                continue
            added = sum(_added_hand_overs(cyclic, place, v, q) for v, q in each)
            worth = less / (before + HAND_OVER * period * max(prices) * max(0, added + 1))
            if worth > best:
                best, change = worth, each
        if change:
            return change
    return None


def _moves(
    cyclic: CyclicProblem, place: Sequence[int], loads: Sequence[int], period: int
) -> Iterator[Change]:
    for v, p in enumerate(place):
        if loads[p] > period:
            for q, time in enumerate(cyclic.time[v]):
                if q != p and time < NEVER:
                    yield ((v, q),)


def _swaps(
    cyclic: CyclicProblem, place: Sequence[int], loads: Sequence[int], period: int
) -> Iterator[Change]:
    """Yield moves together with another operator's, away from where the first one goes."""
    on: dict[int, list[int]] = {p: [] for p in range(cyclic.processors)}
    for v, p in enumerate(place):
        on[p].append(v)
    moves = sorted(
        _moves(cyclic, place, loads, period), key=lambda each: -cyclic.time[each[0][0]][each[0][1]]
    )
    for ((v, q),) in moves[:MOVERS]:
        for u in sorted(on[q], key=lambda u: abs(cyclic.time[u][q] - cyclic.time[v][q]))[:PARTNERS]:
            for r, time in enumerate(cyclic.time[u]):
                if r != q and time < NEVER:
                    yield ((v, q), (u, r))


def _added_hand_overs(cyclic: CyclicProblem, place: Sequence[int], v: int, q: int) -> int:
    """Return by how much hand-overs become more if an operator moves."""
    near = [*cyclic.before[v], *cyclic.after[v]]
    return sum((place[u] != q) - (place[u] != place[v]) for u in near)


WIDTH = 16  # partial mappings, of networks of so many operators or fewer:
OPERATORS = 100
SCHEDULED = 3  # mappings of each manner that are scheduled
ROOM = 0.12  # share above the least period from which on operators find gaps as they come
MANNERS = (Manner(True, 0.03, 0.6), Manner(True, 0.1, 0.6))
CLOSE = (Manner(False, 0.03, 0.9), Manner(False, 0.1, 0.6), Manner(False, 0.3, 0.9))
MOST_PLACEMENTS = 3_000  # pieces of work, in changes to one schedule
MOST_CHANGES = 800  # changes, most of which do not keep the loads within the period
RUNS = (1, 1, 2, 3, 4, 6, 10)  # neighbours that move together
SWAPS = 6  # operators that may make room


def least_latency(
    cyclic: CyclicProblem,
    period: int,
    values: Values,
    places: Iterable[Sequence[int]] = (),
    *,
    above: float,
    seed: int = 0,
    over: Callable[[], bool] = lambda: False,
) -> ModuloSchedule | None:
    """Return the schedule of least latency that is found at a period.

    Parameters
    ----------
    places
        Assignments to begin with.
    above
        Share by which the period is above the least one.
    seed
        Of all random choices.
    over
        Whether to end with what is found.
    """
    schedules = [*_beam_schedules(cyclic, period, values, above, over)]
    others = (place for place in places if not (schedules and over()))
    schedules += filter(None, (schedule_jobs(Jobs.of(cyclic, place), period) for place in others))
    if not schedules:
        return None
    best = min(schedules, key=cyclic.cost)
    return improve(cyclic, best, seed, over)


def _beam_schedules(
    cyclic: CyclicProblem, period: int, values: Values, above: float, over: Callable[[], bool]
) -> Iterator[ModuloSchedule]:
    width = max(WIDTH // 4, WIDTH * OPERATORS // max(OPERATORS, cyclic.operators))
    for manner in (*MANNERS, CLOSE[0]) if above > ROOM else CLOSE:
        for each in beam_search(
            cyclic, period, values, manner, above=above, width=width, over=over
        )[:SCHEDULED]:
            if over():
                return
            jobs = Jobs.of(cyclic, each.place)
            if manner.exclusive and not jobs.routes:
                yield jobs.schedule(period, tighten(jobs, period, [*each.start]))
            elif schedule := schedule_jobs(jobs, period):
                yield schedule


def improve(
    cyclic: CyclicProblem,
    schedule: ModuloSchedule,
    seed: int = 0,
    over: Callable[[], bool] = lambda: False,
) -> ModuloSchedule:
    """Return a schedule with operators moved to other processors while that shortens it.

    Parameters
    ----------
    over
        Whether to end with what is found.
    """
    draw = random.Random(seed)
    best, loads = schedule, cyclic.loads(schedule.processor)
    left = MOST_PLACEMENTS
    for _ in range(MOST_CHANGES):
        if left <= 0 or over():
            break
        place = _random_change(cyclic, best.processor, best.period, loads, draw)
        if place is None:
            continue
        jobs = Jobs.of(cyclic, place)
        other = schedule_jobs(jobs, best.period)
        left -= jobs.placements
        if other and cyclic.cost(other) < cyclic.cost(best):
            best, loads = other, cyclic.loads(other.processor)
    return best


def _random_change(
    cyclic: CyclicProblem,
    place: Sequence[int],
    period: int,
    loads: Sequence[int],
    draw: random.Random,
) -> list[int] | None:
    """Move neighbours to another processor, and what gives them room; None if nothing does."""
    moving = _neighbours(cyclic, place, draw)
    source, target = place[moving[0]], draw.randrange(cyclic.processors)
    if target == source or any(cyclic.time[v][target] >= NEVER for v in moving):
        return None
    after = [*place]
    for v in moving:
        after[v] = target
    over = loads[target] + sum(cyclic.time[v][target] for v in moving) - period
    left = {p: period - load for p, load in enumerate(loads[: cyclic.processors])}
    left[source] += sum(cyclic.time[v][source] for v in moving)
    others = [v for v, p in enumerate(place) if p == target]
    for v in draw.sample(others, min(SWAPS, len(others))) if over > 0 else ():
        p = draw.randrange(cyclic.processors)
        if over > 0 and p != target and cyclic.time[v][p] <= left[p]:
            after[v] = p
            left[p] -= cyclic.time[v][p]
            over -= cyclic.time[v][target]
    return after if over <= 0 else None


def _neighbours(cyclic: CyclicProblem, place: Sequence[int], draw: random.Random) -> list[int]:
    """Return operators on one processor that read from each other."""
    first, most = draw.randrange(cyclic.operators), draw.choice(RUNS)
    neighbours = [first]
    for v in neighbours:
        for u in sorted(cyclic.before[v] | cyclic.after[v]):
            if len(neighbours) < most and place[u] == place[first] and u not in neighbours:
                neighbours.append(u)
    return neighbours
