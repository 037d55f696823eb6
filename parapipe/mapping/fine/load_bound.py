"""A bound on the makespan by the loads of the processors, and what their time is worth."""

from __future__ import annotations

from parapipe.mapping.fine.integer_problem import IntegerProblem

ROUNDS = 60
SCALE = 1 << 20
STEP = 0.5


def load_bound(problem: IntegerProblem) -> tuple[int, tuple[int, ...]]:
    """Return a bound on the makespan in microseconds, and the prices that prove it.

    With any prices λ_p ≥ 0 of sum 1, C ≥ Σ_p λ_p load_p ≥ Σ_v min_p λ_p w_vp: the Lagrangian bound
    of scheduling on unrelated machines. Prices are raised where load gathers (a subgradient
    method) and are whole numbers, so that the bound is exact.

    Returns
    -------
    tuple
        The bound, and λ times their sum.
    """
    share = SCALE // problem.processors
    prices = best_prices = (share,) * problem.processors
    best_us = 0
    for round_ in range(ROUNDS):
        loads_us, worth = _cheapest(problem, prices)
        bound_us = -(-worth // sum(prices))
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
    return best_us, best_prices


def _cheapest(problem: IntegerProblem, prices: tuple[int, ...]) -> tuple[list[int], int]:
    """Put every operator where it costs least; return loads and the total price."""
    loads_us = [0] * problem.processors
    worth = 0
    for row, choices in zip(problem.time_us, problem.choices, strict=True):
        price, p = min((prices[p] * row[p], p) for p in choices)
        loads_us[p] += row[p]
        worth += price
    return loads_us, worth
