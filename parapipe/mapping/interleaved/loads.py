"""The least period that any assignment of operators to processors allows.

If operators of several frames take turns on every processor, only loads limit the period. Where
nothing but pure delays goes between processors, every assignment whose loads are at most T has a
schedule of period T: each processor packs its operators into a window of T in any order, and an
operator waits as many periods as it takes until its inputs have arrived. With transfers that keep
something busy the least greatest load is a bound on the period. (It is what modulo scheduling calls
the resource-constrained minimum initiation interval; B. R. Rau, Iterative modulo scheduling, 1994.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import inf

from parapipe.mapping.budget import Budget
from parapipe.mapping.cp_sat import name
from parapipe.mapping.interleaved.annealed import annealed
from parapipe.mapping.interleaved.cp_sat import search
from parapipe.mapping.interleaved.cyclic import Cyclic
from parapipe.mapping.interleaved.programme import Programme, programme
from parapipe.mapping.interleaved.relaxation import Aim, Relaxed, relaxed
from parapipe.mapping.problem import Flow, MappingProblem
from parapipe.mapping.units import NANO


@dataclass(frozen=True, slots=True)
class LeastPeriod:
    """An assignment with a least greatest load.

    Parameters
    ----------
    period_s
        Its greatest load, in exact times.
    bound_s
        No assignment has less.
    proven
        Whether none has less but for a millionth or what rounding hides.
    processor
        Of each operator.
    solver, seed
        How it was found.
    """

    period_s: float
    bound_s: float
    proven: bool
    processor: tuple[int, ...]
    solver: str
    seed: int

    @property
    def gap(self) -> float:
        """Share of the period by which another assignment may be better: 0 if proven."""
        return 0.0 if self.proven or not self.period_s else 1 - self.bound_s / self.period_s


def least_period(
    problem: MappingProblem,
    *,
    time_limit_s: float,
    seed: int,
    deterministic: bool = False,
    known: Sequence[tuple[int, ...]] = (),
) -> LeastPeriod:
    """Return an assignment whose greatest load is least: min T, Σ_p x_vp = 1, loads ≤ T.

    The linear relaxation bounds it and is rounded to begin with. Where transfers keep something
    busy, annealing goes on from there. CP-SAT searches the rest. Processors may stay unused;
    leave one out by `restricted`.

    Parameters
    ----------
    time_limit_s
        For CP-SAT. When it is over, the best assignment found comes with the bound proven so far.
    seed
        Of all random choices.
    deterministic
        Count work instead of wall time, so that the answer is the same in every run.
    known
        Assignments, none of which has less than what is returned.
    """
    budget = Budget(time_limit_s, deterministic)
    stated = _stated(problem)
    fractions = relaxed(stated, Aim())
    candidates = [rounded(stated, fractions), *_alone(problem), *known]
    best = min(candidates, key=lambda processor: period_s(problem, processor))
    bound_s, resources = fractions.bound, chain.from_iterable(problem.transfer_resource)
    if any(each is not None for each in resources) and period_s(problem, best) > bound_s:
        found = annealed(Cyclic(problem), best, enough=int(bound_s * NANO), seed=seed)
        best = min((best, tuple(found)), key=lambda processor: period_s(problem, processor))
        candidates.append(best)
    most_s = period_s(problem, best)
    if most_s <= bound_s or not budget.left_s:
        return LeastPeriod(most_s, min(bound_s, most_s), most_s <= bound_s, best, "GLOP", seed)
    searched = search(
        stated,
        Aim(),
        most=most_s,
        least=bound_s,
        hint=stated.values(best),
        budget=budget,
        seed=seed,
    )
    if searched.values:
        candidates.append(stated.processors(searched.values))
    best = min(candidates, key=lambda processor: period_s(problem, processor))
    least_s = period_s(problem, best)
    return LeastPeriod(least_s, min(searched.bound, least_s), searched.proven, best, name(), seed)


def bound_s(problem: MappingProblem) -> float:
    """Return what the greatest load of a problem is at least, however often it is repeated.

    It is the linear relaxation. An assignment of any number of frames of each model loads as much
    as fractions of one frame of each: the means over the frames, which keep all rows. So no pattern
    of these models in this ratio has less per frame, however long it is.
    """
    return relaxed(_stated(problem), Aim()).bound


def _stated(problem: MappingProblem) -> Programme:
    return programme(problem, lambda flow, p, q: problem.resource_of(p, q) is not None)


def restricted(problem: MappingProblem, processors: Sequence[int]) -> MappingProblem | None:
    """Return the problem on some processors only; None if they do not support every operator."""
    rows = tuple(
        tuple(time_s if p in processors else inf for p, time_s in enumerate(row))
        for row in problem.time_s
    )
    return None if any(min(row) == inf for row in rows) else replace(problem, time_s=rows)


def loads_s(problem: MappingProblem, processor: Sequence[int]) -> list[float]:
    """Return for how long one frame keeps each resource busy."""
    found = [0.0] * problem.resources
    for v, p in enumerate(processor):
        found[p] += problem.time_s[v][p]
    for flow in problem.flows:
        p = _made_on(flow, processor)
        for q in {processor[v] for v in flow.consumers} - {p}:
            resource = problem.resource_of(p, q)
            if resource is not None:
                found[resource] += flow.transfer_s[p][q]
    return found


def period_s(problem: MappingProblem, processor: Sequence[int]) -> float:
    """Return the greatest load of an assignment."""
    return max(loads_s(problem, processor))


def _made_on(flow: Flow, processor: Sequence[int]) -> int:
    if flow.location is not None:
        return flow.location
    assert flow.producer is not None  # a flow has one of both
    return processor[flow.producer]


def rounded(stated: Programme, fractions: Relaxed) -> tuple[int, ...]:
    """Round a solution in fractions: what is left of a group goes by the greatest remainders."""
    values = [0] * len(stated.most)
    for group in stated.groups:
        shares = {j: fractions.values[j] if fractions.values else 0.0 for j in group.runs.values()}
        for j, share in shares.items():
            values[j] = int(share + 1e-6)
        rest = len(group.operators) - sum(values[j] for j in shares)
        by_remainder = sorted(shares, key=lambda j: values[j] - shares[j])
        for i in range(rest):
            values[by_remainder[i % len(by_remainder)]] += 1
    return stated.processors(values)


def _alone(problem: MappingProblem) -> list[tuple[int, ...]]:
    """Return the assignments to one processor that runs everything."""
    return [
        (p,) * problem.operators
        for p in range(problem.processors)
        if all(row[p] < inf for row in problem.time_s)
    ]
