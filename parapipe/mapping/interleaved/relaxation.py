"""The linear relaxation of a programme, solved by GLOP, and a bound that its prices prove."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf

from parapipe.mapping.interleaved.programme import Programme

ROUNDING = 1e-9  # share of a bound that sums of doubles may be off


@dataclass(frozen=True, slots=True)
class Aim:
    """What is minimised: Σ cost · variable with no load above `limit_s`, or the greatest load.

    Parameters
    ----------
    cost
        Of a unit of each variable, at least 0.
    limit_s
        None to minimise the greatest load, whatever the cost.
    """

    cost: Sequence[float] = ()
    limit_s: float | None = None


@dataclass(frozen=True, slots=True)
class Relaxed:
    """A solution in fractions.

    Parameters
    ----------
    bound
        No whole solution takes less, in seconds or what the costs are in; infinite if there is not
        even one in fractions.
    values
        Of the variables; empty if there is none.
    """

    bound: float
    values: tuple[float, ...]


def relaxed(stated: Programme, aim: Aim) -> Relaxed:
    """Solve the relaxation.

    The bound is not the solver's objective, which is right to its tolerances only, but what the
    prices of the rows prove, whatever they are: with prices π of rows Σ a x ≥ b and μ of loads, no
    solution takes less than Σ π b - Σ μ limit + Σ_j min(0, cost_j + Σ μ load_j - Σ π a_j) · most_j,
    and without a limit as much with Σ μ = 1.
    """
    from ortools.linear_solver.python import model_builder  # heavy

    def total(terms: Iterable[tuple[int, float]]) -> model_builder.LinearExpr:
        known = list(terms)
        chosen = [values[j] for j, _ in known]
        return model_builder.LinearExpr.weighted_sum(chosen, [factor for _, factor in known])

    scale = aim.limit_s or max(sum(s for _, s in load) for load in stated.load_s) or 1.0
    worth = max(aim.cost, default=0.0) or 1.0
    costs = [cost / worth for cost in aim.cost] or [0.0] * len(stated.most)
    loads = [[(j, time_s / scale) for j, time_s in load] for load in stated.load_s]
    # OR-Tools gives this constructor no types
    model = model_builder.Model()  # type: ignore[no-untyped-call]
    values = [model.new_num_var(0, most, "") for most in stated.most]
    greatest = model.new_num_var(0, inf if aim.limit_s is None else 1, "")
    rows = [
        model.add_linear_constraint(total(row.terms), row.least, row.least if row.equal else inf)
        for row in stated.rows
    ]
    within = [model.add_linear_constraint(greatest - total(load), 0, inf) for load in loads]
    model.minimize(greatest if aim.limit_s is None else total(enumerate(costs)))
    solver = model_builder.Solver("GLOP")
    status = solver.solve(model)
    if status == model_builder.SolveStatus.INFEASIBLE:
        return Relaxed(inf, ())
    if status != model_builder.SolveStatus.OPTIMAL:
        return Relaxed(0.0, ())
    worths = [max(0.0, float(solver.dual_value(each))) for each in within]
    if aim.limit_s is None:  # where no load has a price, all loads are 0
        worths = [each / (sum(worths) or 1.0) for each in worths]
    bound = 0.0 if aim.limit_s is None else -sum(worths)
    left = costs
    for load, each in zip(loads, worths, strict=True):
        for j, time_s in load:
            left[j] += each * time_s
    for row, constraint in zip(stated.rows, rows, strict=True):
        dual = float(solver.dual_value(constraint))
        price = dual if row.equal else max(0.0, dual)
        bound += price * row.least
        for j, factor in row.terms:
            left[j] -= price * factor
    bound += sum(min(0.0, each) * most for each, most in zip(left, stated.most, strict=True))
    proven = max(0.0, bound - ROUNDING * (1 + abs(bound)))
    fractions = tuple(float(solver.value(value)) for value in values)
    return Relaxed(proven * (scale if aim.limit_s is None else worth), fractions)
