"""Bounds on the makespan by the loads of the processors, and what their time is worth."""

from __future__ import annotations

from collections.abc import Sequence

from parapipe.mapping.fine.bounds import Bounds
from parapipe.mapping.fine.integer_problem import IntegerProblem

SCALE = 1 << 20
STEP = 0.5


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

    As for `worth`, and a processor that has to run something is idle for the least of its
    operators' heads and again for the least of their tails.
    """
    choices = bounds.problem.choices
    forced = {row[0] for row in choices if len(row) == 1}
    _, total = _cheapest(bounds.problem, prices)
    for p in forced:
        able = [v for v, row in enumerate(choices) if p in row]
        idle_units = min(bounds.head_units[v][p] for v in able)
        idle_units += min(bounds.tail_units[v][p] for v in able)
        total += prices[p] * idle_units
    return -(-total // sum(prices[p] for p in {p for row in choices for p in row}))


def _cheapest(problem: IntegerProblem, prices: Sequence[int]) -> tuple[list[int], int]:
    """Put every operator where it costs least; return loads and the total price."""
    loads_units = [0] * problem.processors
    total = 0
    for row, choices in zip(problem.time_units, problem.choices, strict=True):
        price, p = min((prices[p] * row[p], p) for p in choices)
        loads_units[p] += row[p]
        total += price
    return loads_units, total
