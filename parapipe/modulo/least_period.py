"""The least period that any assignment of operators to processors allows.

A relaxation says little there, since fractions of operators need no hand-overs. Operators that
follow each other move together, so that hand-overs move with them (S. Kirkpatrick et al.,
Optimization by simulated annealing, 1983).

If operators of several frames take turns on every processor, only loads limit the period. Where
nothing but pure delays goes between processors, every assignment whose loads are at most T has a
schedule of period T: each processor packs its operators into a window of T in any order, and an
operator waits as many periods as it takes until its inputs have arrived. With transfers that keep
something busy the least greatest load is a bound on the period. (It is what modulo scheduling calls
the resource-constrained minimum initiation interval; B. R. Rau, Iterative modulo scheduling, 1994.)
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import exp, inf

from parapipe.modulo.assignment_programme import (
    Objective,
    Programme,
    Relaxed,
    search,
    solve_relaxation,
    state_programme,
)
from parapipe.modulo.cyclic_problem import NEVER, CyclicProblem
from parapipe.solvers.cp_sat import Budget, name
from parapipe.solvers.paths import complete_processors
from parapipe.solvers.problem import NANO, MappingProblem
from parapipe.solvers.replay import source_of

CHANGES, MOST_CHANGES = 1_500, 200_000  # for each operator, and in all
HOT, COLD = 0.03, 0.0003  # shares of the load by which a change may be worse, first and last
NORM = 12  # of the loads: the greatest counts most
LONGEST_RUN = 40  # operators that move together
BESIDE = 0.7  # share of changes that go to the processor of the operator before or behind


def anneal(
    cyclic: CyclicProblem, place: Sequence[int], *, enough: int = 0, seed: int = 0
) -> list[int]:
    """Return an assignment whose greatest load is at most that of a given one.

    Parameters
    ----------
    enough
        Greatest load, in nanoseconds, from which on no less is searched.
    seed
        Of all random choices.
    """
    draw, state = random.Random(seed), Loads(cyclic, place)
    best, least, norm = [*place], max(state.loads), state.norm()
    changes, heat = min(CHANGES * cyclic.operators, MOST_CHANGES), HOT * norm
    for _ in range(changes):
        if least <= enough:
            break
        heat *= (COLD / HOT) ** (1 / changes)
        before = state.apply(random_change(cyclic, state.place, draw))
        now = state.norm()
        if now > norm and draw.random() >= exp((norm - now) / heat):
            state.restore(*before)
            continue
        norm = now
        if max(state.loads) < least:
            best, least = [*state.place], max(state.loads)
    return best


class Loads:
    """An assignment, and for how long one frame keeps each resource busy."""

    def __init__(self, cyclic: CyclicProblem, place: Sequence[int]) -> None:
        self.cyclic, self.place, self.loads = cyclic, [*place], cyclic.loads(place)
        self.flows: list[list[int]] = [[*reads] for reads in cyclic.reads]
        for flow, maker in enumerate(cyclic.maker):
            if maker >= 0:
                self.flows[maker].append(flow)

    def norm(self) -> float:
        """Return the greatest load, and a little of all others."""
        greatest = max(self.loads)
        return greatest * float(sum((load / greatest) ** NORM for load in self.loads) ** (1 / NORM))

    def apply(self, change: dict[int, int]) -> tuple[list[int], dict[int, int]]:
        """Move operators; return what the loads and these places were."""
        before = [*self.loads], {v: self.place[v] for v in change}
        flows = {flow for v in change for flow in self.flows[v]}
        for resource, time in self._moves(flows):
            self.loads[resource] -= time
        for v, p in change.items():
            self.loads[self.place[v]] -= self.cyclic.time[v][self.place[v]]
            self.loads[p] += self.cyclic.time[v][p]
            self.place[v] = p
        for resource, time in self._moves(flows):
            self.loads[resource] += time
        return before

    def restore(self, loads: list[int], places: dict[int, int]) -> None:
        """Undo a change."""
        self.loads = loads
        for v, p in places.items():
            self.place[v] = p

    def _moves(self, flows: Collection[int]) -> Iterator[tuple[int, int]]:
        """Yield the resource and the time of each transfer that keeps something busy."""
        cyclic, place = self.cyclic, self.place
        for flow in flows:
            p = place[cyclic.maker[flow]]
            for q in {place[v] for v in cyclic.problem.flows[flow].consumers}:
                if q != p and (resource := cyclic.resource[p][q]) is not None:
                    yield resource, cyclic.delay[flow][p][q]


def random_change(
    cyclic: CyclicProblem, place: Sequence[int], draw: random.Random
) -> dict[int, int]:
    """Return operators in a row, those that can, with one processor for all of them."""
    begin = draw.randrange(cyclic.operators)
    end = min(cyclic.operators, begin + int(LONGEST_RUN ** draw.random()))
    target = draw.randrange(cyclic.processors)
    if draw.random() < BESIDE:
        target = place[draw.choice((max(0, begin - 1), min(end, cyclic.operators - 1)))]
    return {
        v: target
        for v in range(begin, end)
        if place[v] != target and cyclic.time[v][target] < NEVER
    }


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
    stated = _load_programme(problem)
    fractions = solve_relaxation(stated, Objective())
    alone = [(p,) * problem.operators for p in complete_processors(problem)]
    candidates = [rounded(stated, fractions), *alone, *known]
    best = min(candidates, key=lambda processor: period_s(problem, processor))
    bound_s, resources = fractions.bound, chain.from_iterable(problem.transfer_resource)
    if any(each is not None for each in resources) and period_s(problem, best) > bound_s:
        assignment = anneal(CyclicProblem(problem), best, enough=int(bound_s * NANO), seed=seed)
        best = min((best, tuple(assignment)), key=lambda processor: period_s(problem, processor))
        candidates.append(best)
    most_s = period_s(problem, best)
    if most_s <= bound_s or not budget.left_s:
        return LeastPeriod(most_s, min(bound_s, most_s), most_s <= bound_s, best, "GLOP", seed)
    searched = search(
        stated,
        Objective(),
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
    return solve_relaxation(_load_programme(problem), Objective()).bound


def _load_programme(problem: MappingProblem) -> Programme:
    return state_programme(problem, lambda flow, p, q: problem.resource_of(p, q) is not None)


def restrict_to(problem: MappingProblem, processors: Sequence[int]) -> MappingProblem | None:
    """Return the problem on some processors only; None if they do not support every operator."""
    rows = tuple(
        tuple(time_s if p in processors else inf for p, time_s in enumerate(row))
        for row in problem.time_s
    )
    return None if any(min(row) == inf for row in rows) else replace(problem, time_s=rows)


def loads_s(problem: MappingProblem, processor: Sequence[int]) -> list[float]:
    """Return for how long one frame keeps each resource busy."""
    busy_s = [0.0] * problem.resources
    for v, p in enumerate(processor):
        busy_s[p] += problem.time_s[v][p]
    for flow in problem.flows:
        p = source_of(flow, processor)
        for q in {processor[v] for v in flow.consumers} - {p}:
            resource = problem.resource_of(p, q)
            if resource is not None:
                busy_s[resource] += flow.transfer_s[p][q]
    return busy_s


def period_s(problem: MappingProblem, processor: Sequence[int]) -> float:
    """Return the greatest load of an assignment."""
    return max(loads_s(problem, processor))


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
