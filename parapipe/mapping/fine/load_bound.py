"""Bounds on the makespan by the loads of the processors, and what their time is worth."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import combinations

from parapipe.mapping.fine.bounds import Bounds
from parapipe.mapping.fine.integer_problem import IntegerProblem
from parapipe.mapping.units import NEVER

SCALE = 1 << 20
STEP = 0.5
SUBSETS = 4  # processors of which every subset is looked at


def worth(problem: IntegerProblem, rounds: int) -> tuple[int, ...]:
    """Return prices of the processors' time that make the bound by loads nearly the greatest.

    With any prices λ_p ≥ 0 of sum 1, C ≥ Σ_p λ_p load_p ≥ Σ_v min_p λ_p w_vp: the Lagrangian bound
    of scheduling on unrelated machines. Prices are raised where load gathers (a subgradient
    method). They are whole numbers, so that bounds are exact.
    """
    share = SCALE // problem.processors
    prices = best_prices = (share,) * problem.processors
    best_us = 0
    for round_ in range(rounds):
        loads_us, total = _cheapest(problem, prices)
        bound_us = -(-total // sum(prices))
        if bound_us > best_us:
            best_us, best_prices = bound_us, prices
        mean_us = sum(loads_us) / len(loads_us)
        if not mean_us:
            break
        step = STEP / (1 + round_) ** 0.5
        prices = tuple(
            max(1, round(price * max(0.1, 1 + step * (load_us / mean_us - 1))))
            for price, load_us in zip(prices, loads_us, strict=True)
        )
    return best_prices


def load_bound(bounds: Bounds, prices: Sequence[int]) -> int:
    """Return a bound on the makespan, in microseconds, that any prices prove.

    As for `worth`, and a processor that runs anything is idle for the least of its operators'
    heads and again for the least of their tails. Which processors run anything is not known, so
    the bound is the least over all possible sets of them.
    """
    choices = bounds.problem.choices
    forced = {row[0] for row in choices if len(row) == 1}
    idle_us = [
        min((bounds.head_us[v][p] for v, row in enumerate(choices) if p in row), default=0)
        + min((bounds.tail_us[v][p] for v, row in enumerate(choices) if p in row), default=0)
        for p in range(bounds.problem.processors)
    ]
    optional = sorted({p for row in choices for p in row} - forced)
    if len(optional) > SUBSETS:
        idle_us = [us if p in forced else 0 for p, us in enumerate(idle_us)]
        return _bound_of({*forced, *optional}, bounds.problem, prices, idle_us)
    return min(
        _bound_of({*forced, *some}, bounds.problem, prices, idle_us) for some in _subsets(optional)
    )


def _subsets(values: Sequence[int]) -> Iterator[tuple[int, ...]]:
    for size in range(len(values) + 1):
        yield from combinations(values, size)


def _bound_of(
    used: Collection[int], problem: IntegerProblem, prices: Sequence[int], idle_us: Sequence[int]
) -> int:
    """Return the bound if just these processors are used; `NEVER` if they cannot run all."""
    total = sum(prices[p] * idle_us[p] for p in used)
    for row, choices in zip(problem.time_us, problem.choices, strict=True):
        least = min((prices[p] * row[p] for p in choices if p in used), default=None)
        if least is None:
            return NEVER
        total += least
    return -(-total // sum(prices[p] for p in used))


def _cheapest(problem: IntegerProblem, prices: tuple[int, ...]) -> tuple[list[int], int]:
    """Put every operator where it costs least; return loads and the total price."""
    loads_us = [0] * problem.processors
    total = 0
    for row, choices in zip(problem.time_us, problem.choices, strict=True):
        price, p = min((prices[p] * row[p], p) for p in choices)
        loads_us[p] += row[p]
        total += price
    return loads_us, total
