"""The least cost of an assignment whose loads stay within a period."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations_with_replacement, product
from math import floor, inf, prod

from parapipe.mapping.budget import Budget
from parapipe.mapping.interleaved.cp_sat import CLOSE, search
from parapipe.mapping.interleaved.loads import rounded
from parapipe.mapping.interleaved.programme import Programme
from parapipe.mapping.interleaved.relaxation import ROUNDING, Aim, Relaxed, relaxed

TRIES = 4  # to round within the limit
MOST = 64  # roundings that are tried at once


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
    fractions = relaxed(stated, aim)
    least = fractions.bound
    if least == inf and not start:
        return LeastCost(inf, True, ())
    least = least if least < inf else 0.0  # the solver is right to its tolerances only
    if least >= enough or not budget.left_s:
        return LeastCost(least, False, tuple(start))
    known = [each for each in (start, _rounded(stated, aim, fractions)) if each]
    start = min(known, key=lambda each: _cost(aim, stated.values(each)), default=())
    hint = stated.values(start) if start else []
    most = _cost(aim, hint or stated.most) or 1.0
    found = search(stated, aim, most=most, least=least, hint=hint, budget=budget, seed=seed)
    if found.values:
        return LeastCost(found.bound, found.proven, stated.processors(found.values))
    none = found.proven and not start
    return LeastCost(inf if none else found.bound, none, tuple(start))


def _cost(aim: Aim, values: Sequence[int]) -> float:
    return sum(cost * count for cost, count in zip(aim.cost, values, strict=True))


def _rounded(stated: Programme, aim: Aim, fractions: Relaxed) -> tuple[int, ...]:
    """Round a solution in fractions at the least cost; empty if loads stay above the limit.

    By how much rounding exceeds it, the limit of the next try is lower.
    """
    asked_s = (aim.limit_s or inf) * (1 + ROUNDING)
    limit_s = asked_s
    for _ in range(TRIES):
        if not fractions.values or limit_s <= 0:
            break
        found = [*_near(stated, fractions)]
        values = [stated.values(each) for each in found]
        loads_s = [_most_s(stated, each) for each in values]
        fits = [i for i, load_s in enumerate(loads_s) if load_s <= asked_s]
        if fits:
            return found[min(fits, key=lambda i: _cost(aim, values[i]))]
        limit_s -= min(loads_s) - asked_s
        fractions = relaxed(stated, replace(aim, limit_s=limit_s))
    return ()


def _most_s(stated: Programme, values: Sequence[int]) -> float:
    return max(sum(time_s * values[j] for j, time_s in load) for load in stated.load_s)


def _near(stated: Programme, fractions: Relaxed) -> Iterator[tuple[int, ...]]:
    """Yield the ways to round a solution, all if they are few, or one."""
    low = [floor(value + CLOSE) for value in fractions.values]
    ways = []
    for group in stated.groups:
        rest = len(group.operators) - sum(low[j] for j in group.runs.values())
        ways.append([*combinations_with_replacement(group.runs.values(), rest)])
    if prod(map(len, ways)) > MOST:
        yield rounded(stated, fractions)
        return
    for way in product(*ways):
        values = [*low]
        for j in chain.from_iterable(way):
            values[j] += 1
        yield stated.processors(values)
