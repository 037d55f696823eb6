"""Least energy of assignments by the period they allow, and the front of the two.

Energy per frame at period T, equation (8) of the Para-Pipe paper: the dynamic joules of the
operators where they run, and T times the static power of the processors that run any.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from heapq import heapify, heappop, heappush
from itertools import chain, combinations, combinations_with_replacement, product
from math import floor, inf, prod

from parapipe.modulo.assignment_programme import (
    CLOSE,
    ROUNDING,
    Objective,
    Programme,
    Relaxed,
    search,
    solve_relaxation,
    state_programme,
)
from parapipe.modulo.least_period import LeastPeriod, least_period, period_s, restrict_to, rounded
from parapipe.pareto import nondominated
from parapipe.solvers.cp_sat import Budget
from parapipe.solvers.problem import MappingProblem
from parapipe.solvers.schedule import Energies

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
    aim: Objective,
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
    fractions = solve_relaxation(stated, aim)
    least = fractions.bound
    if least == inf and not start:
        return LeastCost(inf, True, ())
    least = least if least < inf else 0.0  # the solver is right to its tolerances only
    if least >= enough or not budget.left_s:
        return LeastCost(least, False, tuple(start))
    incumbents = [each for each in (start, _rounded(stated, aim, fractions)) if each]
    start = min(incumbents, key=lambda each: _cost(aim, stated.values(each)), default=())
    hint = stated.values(start) if start else []
    most = _cost(aim, hint or stated.most) or 1.0
    result = search(stated, aim, most=most, least=least, hint=hint, budget=budget, seed=seed)
    if result.values:
        return LeastCost(result.bound, result.proven, stated.processors(result.values))
    none = result.proven and not start
    return LeastCost(inf if none else result.bound, none, tuple(start))


def _cost(aim: Objective, values: Sequence[int]) -> float:
    return sum(cost * count for cost, count in zip(aim.cost, values, strict=True))


def _rounded(stated: Programme, aim: Objective, fractions: Relaxed) -> tuple[int, ...]:
    """Round a solution in fractions at the least cost; empty if loads stay above the limit.

    By how much rounding exceeds it, the limit of the next try is lower.
    """
    allowed_s = (aim.limit_s or inf) * (1 + ROUNDING)
    limit_s = allowed_s
    for _ in range(TRIES):
        if not fractions.values or limit_s <= 0:
            break
        roundings = [*_roundings(stated, fractions)]
        values = [stated.values(each) for each in roundings]
        loads_s = [_greatest_load_s(stated, each) for each in values]
        fits = [i for i, load_s in enumerate(loads_s) if load_s <= allowed_s]
        if fits:
            return roundings[min(fits, key=lambda i: _cost(aim, values[i]))]
        limit_s -= min(loads_s) - allowed_s
        fractions = solve_relaxation(stated, replace(aim, limit_s=limit_s))
    return ()


def _greatest_load_s(stated: Programme, values: Sequence[int]) -> float:
    return max(sum(time_s * values[j] for j, time_s in load) for load in stated.load_s)


def _roundings(stated: Programme, fractions: Relaxed) -> Iterator[tuple[int, ...]]:
    """Yield roundings of a solution, all if they are few, or one."""
    low = [floor(value + CLOSE) for value in fractions.values]
    choices = []
    for group in stated.groups:
        rest = len(group.operators) - sum(low[j] for j in group.runs.values())
        choices.append([*combinations_with_replacement(group.runs.values(), rest)])
    if prod(map(len, choices)) > MOST:
        yield rounded(stated, fractions)
        return
    for choice in product(*choices):
        values = [*low]
        for j in chain.from_iterable(choice):
            values[j] += 1
        yield stated.processors(values)


@dataclass(frozen=True, slots=True)
class LeastEnergy:
    """An assignment of least dynamic energy within a period.

    Parameters
    ----------
    energy_j
        Dynamic joules of its operators, in exact values.
    bound_j
        No assignment within the period takes less.
    period_s
        Its greatest load.
    processor
        Of each operator.
    """

    energy_j: float
    bound_j: float
    period_s: float
    processor: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Trade:
    """A point of the front of period and energy.

    Parameters
    ----------
    period_s, energy_j
        The greatest load of its assignment, and joules per frame with static power at that period.
    bound_j
        No assignment whose period is at most this one takes less.
    processor
        Of each operator.
    """

    period_s: float
    energy_j: float
    bound_j: float
    processor: tuple[int, ...]


def least_energy(
    problem: MappingProblem,
    energy_j: Energies,
    limit_s: float,
    *,
    start: Sequence[int] = (),
    enough_j: float = inf,
    time_limit_s: float,
    seed: int,
    deterministic: bool = False,
) -> LeastEnergy | None:
    """Return an assignment with loads of at most a period, above 0, and the least dynamic energy.

    Loads may exceed the period by a hundred-millionth of it for each operator and transfer, which
    rounding hides: what is scheduled has to have the period of its own greatest load.

    Parameters
    ----------
    energy_j
        Dynamic joules of operator v on processor p.
    start
        Processor of each operator in an assignment within the period, if one is known.
    enough_j
        Once no assignment can take less than so much, the search ends.
    time_limit_s, seed, deterministic
        As for `loads.least_period`.

    Returns
    -------
    LeastEnergy or None
        None if no assignment allows the period, or none was found.
    """
    stated, cost = _cost_programme(problem, energy_j)
    result = least_cost(
        stated,
        Objective(cost, limit_s),
        start=start,
        enough=enough_j,
        budget=Budget(time_limit_s, deterministic),
        seed=seed,
    )
    if not result.processor:
        return None
    taken_j = dynamic_j(energy_j, result.processor)
    return LeastEnergy(
        taken_j, min(result.bound, taken_j), period_s(problem, result.processor), result.processor
    )


def shared_energy_j(problem: MappingProblem, energy_j: Energies, limit_s: float) -> float:
    """Return dynamic joules that operators take at least, shared among processors over many frames.

    Infinite if even then some load is above the limit.
    """
    stated, cost = _cost_programme(problem, energy_j)
    return solve_relaxation(stated, Objective(cost, limit_s)).bound


def _cost_programme(problem: MappingProblem, energy_j: Energies) -> tuple[Programme, list[float]]:
    """Return the programme of the loads, and what its variables cost."""
    stated = state_programme(
        problem, lambda _flow, p, q: problem.resource_of(p, q) is not None, marks=energy_j
    )
    cost = [0.0] * len(stated.most)
    for group in stated.groups:
        for p, j in group.runs.items():
            cost[j] = energy_j[group.operators[0]][p]
    return stated, cost


def dynamic_j(energy_j: Energies, processor: Sequence[int]) -> float:
    """Return the dynamic joules of an assignment."""
    return sum(row[p] for row, p in zip(energy_j, processor, strict=True))


def energy_front(
    problem: MappingProblem,
    energy_j: Energies,
    static_power_w: Sequence[float],
    *,
    arrival_s: float = 0.0,
    resolution: float = 0.01,
    time_limit_s: float,
    seed: int,
    deterministic: bool = False,
    over: Callable[[], bool] = lambda: False,
) -> tuple[Trade, ...]:
    """Return the front of period and energy of all assignments, by ascending period.

    For each set of processors the least dynamic energy is solved at periods that grow by the
    resolution, from the least one on, until it is the least of all. All sets take turns, the
    shortest period first, and end where a shorter one is known to take less. What lies between two
    periods takes at least the dynamic energy of the longer and the static energy of the shorter
    one, and that is what the bounds say. So if all is proven, no assignment has less of both than a
    point by more than the resolution.

    Parameters
    ----------
    static_power_w
        Of each processor, if it runs anything.
    arrival_s
        Seconds between frames as they arrive: static energy is for at least so long.
    resolution
        A share of the period.
    time_limit_s
        For each of the problems.
    over
        Whether to end; then nothing is proven of periods that were not looked at: bounds are 0.
    """
    first = partial(least_period, time_limit_s=time_limit_s, seed=seed, deterministic=deterministic)
    solve = partial(least_energy, time_limit_s=time_limit_s, seed=seed, deterministic=deterministic)
    points: list[Trade] = []
    floors: list[tuple[float, float]] = []  # from which period on what is the least
    sweeps: list[tuple[float, int, _Sweep]] = []
    for number, processors in enumerate(_sets(problem)):
        if over():
            return ()
        if alone := restrict_to(problem, processors):
            static_w = sum(static_power_w[p] for p in processors)
            sweep = _Sweep.of(alone, energy_j, static_w, first(alone))
            sweeps.append((sweep.limit_s, number, sweep))
    heapify(sweeps)
    while sweeps and not over():
        _, number, sweep = heappop(sweeps)
        floor_j = max(sweep.least_s, arrival_s) * sweep.static_w
        front_j = min((p.energy_j for p in points if p.period_s <= sweep.least_s), default=inf)
        if front_j <= sweep.least_j + floor_j:
            floors.append((sweep.least_s, sweep.least_j + floor_j))
            continue
        enough_j = front_j - floor_j
        answer = solve(sweep.problem, energy_j, sweep.limit_s, start=sweep.start, enough_j=enough_j)
        if answer is None:
            continue
        used_w = sum(static_power_w[p] for p in set(answer.processor))
        taken_j = answer.energy_j + max(answer.period_s, arrival_s) * used_w
        floors.append((sweep.least_s, answer.bound_j + floor_j))
        points.append(Trade(answer.period_s, taken_j, 0.0, answer.processor))
        if answer.energy_j > sweep.least_j * (1 + CLOSE) and sweep.limit_s <= sweep.longest_s:
            longer = sweep.after(answer.processor, resolution)
            heappush(sweeps, (longer.limit_s, number, longer))
    floors += [(sweep.least_s, 0.0) for _, _, sweep in sweeps]
    return tuple(_undominated(points, floors))


def bound_j(front: Sequence[Trade], period_s: float) -> float:
    """Return joules that no assignment of at most a period is below; 0 behind the front's end.

    The bound of a point of the front holds for all periods up to its own.
    """
    longer = (each for each in front if each.period_s * (1 + CLOSE) >= period_s)
    return next((each.bound_j for each in longer), 0.0)


@dataclass(frozen=True, slots=True)
class _Sweep:
    """A set of processors, and the range of periods of which its least energy is solved next.

    Parameters
    ----------
    least_j, longest_s
        No assignment takes less dynamic energy; none has a longer period.
    start
        An assignment within the period.
    """

    problem: MappingProblem
    static_w: float
    least_j: float
    longest_s: float
    least_s: float
    limit_s: float
    start: tuple[int, ...]

    @classmethod
    def of(
        cls, problem: MappingProblem, energy_j: Energies, static_w: float, first: LeastPeriod
    ) -> _Sweep:
        """Return a sweep that begins at the least period."""
        least_j = sum(
            min(joules for joules, time_s in zip(*row, strict=True) if time_s < inf)
            for row in zip(energy_j, problem.time_s, strict=True)
        )
        longest_s = sum(max(time_s for time_s in row if time_s < inf) for row in problem.time_s)
        begin = (first.bound_s, first.period_s, first.processor)
        return cls(problem, static_w, least_j, longest_s, *begin)

    def after(self, start: tuple[int, ...], resolution: float) -> _Sweep:
        """Return the sweep with the next longer period."""
        limit_s = self.limit_s * (1 + resolution)
        return replace(self, least_s=self.limit_s, limit_s=limit_s, start=start)


def _sets(problem: MappingProblem) -> Iterator[tuple[int, ...]]:
    everyone = range(problem.processors)
    for count in everyone:
        yield from combinations(everyone, count + 1)


def _undominated(points: Sequence[Trade], floors: Sequence[tuple[float, float]]) -> Iterator[Trade]:
    """Yield the points that no other one beats, each with its bound."""
    for point in nondominated(points, lambda point: (point.period_s, point.energy_j)):
        bound_j = min(floor_j for from_s, floor_j in floors if from_s <= point.period_s)
        yield replace(point, bound_j=min(bound_j, point.energy_j))
