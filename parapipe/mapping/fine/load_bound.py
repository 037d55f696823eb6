"""Bounds on the makespan by the loads of the processors, and what their time is worth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from parapipe.mapping.fine.bounds import Bounds
from parapipe.mapping.fine.integer_problem import IntegerProblem
from parapipe.mapping.units import NEVER

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
    rows = Counter(problem.time_units)  # networks repeat theirs
    for round_ in range(rounds):
        loads_units, total = _cheapest(rows, prices)
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
    _, total = _cheapest(Counter(bounds.problem.time_units), prices)
    total += sum(prices[p] * idle(bounds, range(len(choices)), p) for p in forced)
    return -(-total // sum(prices[p] for p in {p for row in choices for p in row}))


def inner_load_bound(bounds: Bounds, prices: Sequence[int], operators: Sequence[int]) -> int:
    """Return a bound on the makespan, in units, by the loads of some operators alone.

    Before the first and behind the last of them every processor runs none, whether it is forced
    to run one or not: the makespan is not below that time, so a load of nothing fits into it too.
    """
    problem = bounds.problem
    able = sorted({p for v in operators for p in problem.choices[v]})
    _, total = _cheapest(Counter(problem.time_units[v] for v in operators), prices)
    least_units = bounds.makespan_units()
    total += sum(prices[p] * min(idle(bounds, operators, p), least_units) for p in able)
    return -(-total // sum(prices[p] for p in able))


def idle(bounds: Bounds, operators: Iterable[int], p: int) -> int:
    """Return the least units before and behind all of some operators that a processor can run."""
    able = [v for v in operators if p in bounds.problem.choices[v]]
    head_units = min(bounds.head_units[v][p] for v in able)
    return head_units + min(bounds.tail_units[v][p] for v in able)


def _cheapest(rows: Mapping[tuple[int, ...], int], prices: Sequence[int]) -> tuple[list[int], int]:
    """Put operators, counted by their times, where they cost least; return loads and total."""
    loads_units = [0] * len(prices)
    total = 0
    for row, count in rows.items():
        price, p = min((prices[p] * t, p) for p, t in enumerate(row) if t < NEVER)
        loads_units[p] += count * row[p]
        total += count * price
    return loads_units, total
