"""A programme solved by CP-SAT, in whole units of time and cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from parapipe.mapping.budget import Budget
from parapipe.mapping.cp_sat import run_cp_sat
from parapipe.mapping.interleaved.programme import Programme
from parapipe.mapping.interleaved.relaxation import Aim
from parapipe.mapping.units import whole

UNITS = 1e8  # in the greatest load that counts, and in the cost to beat
CLOSE = 1e-6  # share of the optimum within which a proof will do


@dataclass(frozen=True, slots=True)
class Found:
    """What the search found.

    Parameters
    ----------
    values
        Of the variables in the best solution found; empty if none was.
    bound
        No solution takes less.
    proven
        Whether nothing better is left: with values, to `CLOSE` of theirs; without, than what was
        asked for.
    """

    values: tuple[int, ...]
    bound: float
    proven: bool


def search(
    stated: Programme,
    aim: Aim,
    *,
    most: float,
    least: float,
    hint: Sequence[int],
    budget: Budget,
    seed: int,
) -> Found:
    """Search for a solution that takes least.

    Times and costs count in hundred-millionths of `aim.limit_s` and `most`, rounded down. So bounds
    hold for exact ones; the loads of what is found may be above the limit by that much for each
    operator and each transfer.

    Parameters
    ----------
    most
        In seconds or what costs are in: at most so much is looked at.
    least
        A bound that is known.
    hint
        Values to begin with; empty if none are known.
    """
    from ortools.sat.python import cp_model  # heavy

    model = cp_model.CpModel()
    values = [model.new_int_var(0, each, "") for each in stated.most]

    def total(terms: Sequence[tuple[int, int]]) -> cp_model.LinearExpr:
        chosen = [values[j] for j, _ in terms]
        return cp_model.LinearExpr.weighted_sum(chosen, [factor for _, factor in terms])

    for row in stated.rows:
        if row.equal:
            model.add(total(row.terms) == row.least)
        else:
            model.add(total(row.terms) >= row.least)
    per_one = UNITS / most
    per_second = per_one if aim.limit_s is None else UNITS / aim.limit_s
    lost = len(stated.most) + sum(stated.most)  # by rounding, at most
    goal = model.new_int_var(max(0, whole(least, per_one) - lost), round(UNITS), "")
    limit = goal if aim.limit_s is None else round(UNITS)
    for load in stated.load_s:
        model.add(total([(j, whole(time_s, per_second)) for j, time_s in load]) <= limit)
    if aim.limit_s is not None:
        costs = [(j, whole(cost, per_one)) for j, cost in enumerate(aim.cost) if cost]
        model.add(total(costs) <= goal)
    model.minimize(goal)
    for value, known in zip(values, hint, strict=False):
        model.add_hint(value, known)
    outcome = run_cp_sat(
        model,
        budget=budget,
        seed=seed,
        interleave_search=True,  # proofs and searches near the best take turns
        linearization_level=2,
        relative_gap_limit=CLOSE,
    )
    if outcome.infeasible:
        return Found((), most, True)
    bound = max(least, (outcome.bound - CLOSE) / per_one)
    if not outcome.found:
        return Found((), bound, False)
    found = tuple(outcome.solver.value(value) for value in values)
    return Found(found, bound, outcome.optimal)
