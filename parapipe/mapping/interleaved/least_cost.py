"""The least cost of an assignment whose loads stay within a period."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from parapipe.mapping.fine.budget import Budget
from parapipe.mapping.interleaved.cp_sat import search
from parapipe.mapping.interleaved.programme import Programme
from parapipe.mapping.interleaved.relaxation import Aim, relaxed


@dataclass(frozen=True, slots=True)
class LeastCost:
    """What is known of the least cost.

    Parameters
    ----------
    bound
        No assignment within the period costs less; infinite if there is none.
    proven
        Whether none costs less than the one found, to a millionth, or there is none.
    processor
        Of each operator in the best one found; empty if none was.
    """

    bound: float
    proven: bool
    processor: tuple[int, ...]


def least_cost(
    stated: Programme,
    aim: Aim,
    *,
    start: Sequence[int] = (),
    enough: float = inf,
    budget: Budget,
    seed: int,
) -> LeastCost:
    """Minimise the cost under the limit: the relaxation bounds it, CP-SAT searches.

    Parameters
    ----------
    start
        Processor of each operator in an assignment within the limit, if one is known.
    enough
        A bound of so much ends the search: nothing that costs so much is of use.
    """
    least = relaxed(stated, aim).bound
    if least == inf and not start:
        return LeastCost(inf, True, ())
    least = least if least < inf else 0.0  # the solver is right to its tolerances only
    if least >= enough or not budget.left_s:
        return LeastCost(least, False, tuple(start))
    hint = stated.values(start) if start else []
    counts = zip(aim.cost, hint or stated.most, strict=True)
    most = sum(cost * count for cost, count in counts) or 1.0
    found = search(stated, aim, most=most, least=least, hint=hint, budget=budget, seed=seed)
    if found.values:
        return LeastCost(found.bound, found.proven, stated.processors(found.values))
    none = found.proven and not start
    return LeastCost(inf if none else found.bound, none, tuple(start))
