"""Least energy of assignments by the period they allow, and the front of the two.

Energy per frame at period T, equation (8) of the Para-Pipe paper: the dynamic joules of the
operators where they run, and T times the static power of the processors that run any.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from math import inf

from parapipe.mapping.fine.budget import Budget
from parapipe.mapping.interleaved.cp_sat import CLOSE
from parapipe.mapping.interleaved.least_cost import least_cost
from parapipe.mapping.interleaved.loads import LeastPeriod, least_period, period_s, restricted
from parapipe.mapping.interleaved.programme import programme
from parapipe.mapping.interleaved.relaxation import Aim
from parapipe.mapping.problem import MappingProblem
from parapipe.mapping.schedule import Energies


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
    time_limit_s, seed, deterministic
        As for `loads.least_period`.

    Returns
    -------
    LeastEnergy or None
        None if no assignment allows the period, or none was found.
    """
    stated = programme(
        problem, lambda _flow, p, q: problem.resource_of(p, q) is not None, marks=energy_j
    )
    cost = [0.0] * len(stated.most)
    for group in stated.groups:
        for p, j in group.runs.items():
            cost[j] = energy_j[group.operators[0]][p]
    found = least_cost(
        stated,
        Aim(cost, limit_s),
        start=start,
        budget=Budget(time_limit_s, deterministic),
        seed=seed,
    )
    if not found.processor:
        return None
    taken_j = dynamic_j(energy_j, found.processor)
    return LeastEnergy(
        taken_j, min(found.bound, taken_j), period_s(problem, found.processor), found.processor
    )


def dynamic_j(energy_j: Energies, processor: Sequence[int]) -> float:
    """Return the dynamic joules of an assignment."""
    return sum(row[p] for row, p in zip(energy_j, processor, strict=True))


def energy_front(
    problem: MappingProblem,
    energy_j: Energies,
    static_power_w: Sequence[float],
    *,
    resolution: float = 0.01,
    time_limit_s: float,
    seed: int,
    deterministic: bool = False,
    over: Callable[[], bool] = lambda: False,
) -> tuple[Trade, ...]:
    """Return the front of period and energy of all assignments, by ascending period.

    For each set of processors the least dynamic energy is solved at periods that grow by the
    resolution, from the least one on, until it is the least of all. What lies between two of them
    takes at least the dynamic energy of the longer and the static energy of the shorter period, and
    that is what the bounds say. So if all is proven, no assignment has less of both than a point
    by more than the resolution.

    Parameters
    ----------
    static_power_w
        Of each processor, if it runs anything.
    resolution
        A share of the period.
    time_limit_s
        For each of the problems.
    over
        Whether to end; then nothing is proven of what was not looked at, and all bounds are 0.
    """
    solve = partial(least_energy, time_limit_s=time_limit_s, seed=seed, deterministic=deterministic)
    points: list[Trade] = []
    floors: list[tuple[float, float]] = []  # from which period on what is the least
    for processors in _sets(problem):
        if over():
            floors.append((0.0, 0.0))
            break
        alone = restricted(problem, processors)
        if alone is None:
            continue
        static_w = sum(static_power_w[p] for p in processors)
        first = least_period(
            alone, time_limit_s=time_limit_s, seed=seed, deterministic=deterministic
        )
        for least_s, found in _sweep(alone, energy_j, first, resolution, solve):
            used_w = sum(static_power_w[p] for p in set(found.processor))
            taken_j = found.energy_j + found.period_s * used_w
            floors.append((least_s, found.bound_j + least_s * static_w))
            points.append(Trade(found.period_s, taken_j, 0.0, found.processor))
            if over():
                floors.append((0.0, 0.0))
                break
    return tuple(_undominated(points, floors))


def bound_j(front: Sequence[Trade], period_s: float) -> float:
    """Return joules that no assignment of at most a period is below; 0 behind the front's end.

    The bound of a point of the front holds for all periods up to its own.
    """
    longer = (each for each in front if each.period_s * (1 + CLOSE) >= period_s)
    return next((each.bound_j for each in longer), 0.0)


def _sweep(
    problem: MappingProblem,
    energy_j: Energies,
    first: LeastPeriod,
    resolution: float,
    solve: Callable[..., LeastEnergy | None],
) -> Iterator[tuple[float, LeastEnergy]]:
    """Yield the least energies within ever longer periods, each with the end of the one before."""
    least_j = sum(
        min(joules for joules, time_s in zip(*row, strict=True) if time_s < inf)
        for row in zip(energy_j, problem.time_s, strict=True)
    )
    longest_s = sum(max(time_s for time_s in row if time_s < inf) for row in problem.time_s)
    least_s, limit_s, start = first.bound_s, first.period_s, first.processor
    while found := solve(problem, energy_j, limit_s, start=start):
        yield least_s, found
        if found.energy_j <= least_j * (1 + CLOSE) or limit_s > longest_s:
            break
        least_s, limit_s, start = limit_s, limit_s * (1 + resolution), found.processor


def _sets(problem: MappingProblem) -> Iterator[tuple[int, ...]]:
    everyone = range(problem.processors)
    for count in everyone:
        yield from combinations(everyone, count + 1)


def _undominated(points: Sequence[Trade], floors: Sequence[tuple[float, float]]) -> Iterator[Trade]:
    """Yield the points that no other one beats, each with its bound."""
    least_j = inf
    for point in sorted(points, key=lambda point: (point.period_s, point.energy_j)):
        if point.energy_j < least_j:
            least_j = point.energy_j
            bound_j = min(floor_j for from_s, floor_j in floors if from_s <= point.period_s)
            yield replace(point, bound_j=min(bound_j, point.energy_j))
