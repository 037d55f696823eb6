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
    best_units = 0
    for round_ in range(rounds):
        loads_units, total = _cheapest(problem, prices)
        bound_units = -(-total // sum(prices))
        if bound_units > best_units:
            best_units, best_prices = bound_units, prices
        mean_units = sum(loads_units) / len(loads_units)
        if not mean_units:
            break
        step = STEP / (1 + round_) ** 0.5
        prices = tuple(
            max(1, round(price * max(0.1, 1 + step * (load_units / mean_units - 1))))
            for price, load_units in zip(prices, loads_units, strict=True)
        )
    return best_prices


def load_bound(bounds: Bounds, prices: Sequence[int]) -> int:
    """Return a bound on the makespan, in units, that any prices prove.

    As for `worth`, and a processor that runs anything is idle for the least of its operators'
    heads and again for the least of their tails. Which processors run anything is not known, so
    the bound is the least over all possible sets of them.
    """
    choices = bounds.problem.choices
    forced = {row[0] for row in choices if len(row) == 1}
    idle_units = [
        min((bounds.head_units[v][p] for v, row in enumerate(choices) if p in row), default=0)
        + min((bounds.tail_units[v][p] for v, row in enumerate(choices) if p in row), default=0)
        for p in range(bounds.problem.processors)
    ]
    optional = sorted({p for row in choices for p in row} - forced)
    if len(optional) > SUBSETS:
        idle_units = [us if p in forced else 0 for p, us in enumerate(idle_units)]
        return _bound_of({*forced, *optional}, bounds.problem, prices, idle_units)
    return min(
        _bound_of({*forced, *some}, bounds.problem, prices, idle_units)
        for some in _subsets(optional)
    )


def _subsets(values: Sequence[int]) -> Iterator[tuple[int, ...]]:
    for size in range(len(values) + 1):
        yield from combinations(values, size)


def _bound_of(
    used: Collection[int], problem: IntegerProblem, prices: Sequence[int], idle_units: Sequence[int]
) -> int:
    """Return the bound if just these processors are used; `NEVER` if they cannot run all."""
    total = sum(prices[p] * idle_units[p] for p in used)
    for row, choices in zip(problem.time_units, problem.choices, strict=True):
        least = min((prices[p] * row[p] for p in choices if p in used), default=None)
        if least is None:
            return NEVER
        total += least
    return -(-total // sum(prices[p] for p in used))


def _cheapest(problem: IntegerProblem, prices: tuple[int, ...]) -> tuple[list[int], int]:
    """Put every operator where it costs least; return loads and the total price."""
    loads_units = [0] * problem.processors
    total = 0
    for row, choices in zip(problem.time_units, problem.choices, strict=True):
        price, p = min((prices[p] * row[p], p) for p in choices)
        loads_units[p] += row[p]
        total += price
    return loads_units, total
