"""Assignments changed until their loads fit in a period, with few more hand-overs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from parapipe.mapping.interleaved.cyclic import NEVER, Cyclic

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
