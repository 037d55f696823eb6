"""Trade-offs of time and energy of small problems: from longest paths, and from all assignments.

Of all that an operator waits for, only what comes last counts, and processors run everything at
once. Operators then form trees, and dynamic programming from the leaves finds the least energy for
every time. Where networks are one operator after the other, with little beside them, the
assignments found take hardly longer than that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from parapipe.solvers.assignments.enumerate import NAME, EnumeratedSchedule, enumerated
from parapipe.solvers.assignments.tables import Floats, Tables, tables
from parapipe.solvers.problem import MappingProblem
from parapipe.solvers.replay import is_as_short
from parapipe.solvers.schedule import Answer, Certificate, Energies, EnergyClaim, Schedule
from parapipe.solvers.verify import energy_of


@dataclass(frozen=True, slots=True)
class PathFront:
    """Times, ascending, and energies, descending.

    Parameters
    ----------
    processor
        By pair and operator; 0 where operators are not part of it.
    """

    time_s: Floats
    energy_j: Floats
    processor: NDArray[np.int8]


def path_front(problem: MappingProblem, energy_j: Energies, share: float) -> PathFront:
    """Return times and energies such that no schedule is better than all by more than a share.

    Parameters
    ----------
    share
        Of the time: every schedule takes at least the energy of a pair that takes at most
        1 + share times as long.
    """
    inner = tuple(flow for flow in problem.flows if flow.producer is not None)
    bare = MappingProblem(problem.time_s, inner, problem.structure)
    arrays, roots = _fronts_of_roots(bare, energy_j, share)
    release_s = tables(problem, energy_j).release_s
    total = _empty_front(arrays)
    for v, fronts in roots:
        arrived = [
            _delayed(front, release_s[v, p])
            for p, front in zip(arrays.choices[v], fronts, strict=True)
        ]
        total = _side_by_side(total, _thin_out(_union(arrived), 0.0))
    return total


@lru_cache(maxsize=8)
def _fronts_of_roots(
    problem: MappingProblem, energy_j: Energies, share: float
) -> tuple[Tables, list[tuple[int, list[PathFront]]]]:
    """Return what is to be had from each operator that waits for none, on each processor.

    Inputs from outside do not count, so that problems that differ in them share it.
    """
    arrays = tables(problem, energy_j)
    producer = _latest_producers(arrays)
    count = arrays.operators
    step = (1 + share) ** (1 / count) - 1
    behind: dict[tuple[int, int], PathFront] = {}
    roots = []
    for v in reversed(range(count)):
        fronts = []
        for p in arrays.choices[v]:
            front = behind.get((v, p)) or _empty_front(arrays)
            processor = front.processor.copy()
            processor[:, v] = p
            fronts.append(
                PathFront(
                    front.time_s + arrays.time_s[v, p],
                    front.energy_j + arrays.energy_j[v, p],
                    processor,
                )
            )
        latest = producer[v]
        if latest is None:
            roots.append((v, fronts))
            continue
        u, delay_s = latest
        for p in arrays.choices[u]:
            moved = [
                _delayed(front, delay_s[p, q])
                for q, front in zip(arrays.choices[v], fronts, strict=True)
            ]
            latest_front = _thin_out(_union(moved), step)
            other = behind.get((u, p))
            behind[u, p] = _side_by_side(other, latest_front) if other else latest_front
    return arrays, roots


def _latest_producers(arrays: Tables) -> list[tuple[int, Floats] | None]:
    """Return, of what each operator waits for, what takes longest by the shortest times."""
    end_s: list[float] = []
    latest: list[tuple[int, Floats] | None] = []
    for v, inputs in enumerate(arrays.edges):
        latest.append(max(inputs, key=lambda edge: end_s[edge[0]], default=None))
        begin_s = max((end_s[u] for u, _ in inputs), default=0.0)
        end_s.append(begin_s + arrays.time_s[v].min())
    return latest


def _empty_front(arrays: Tables) -> PathFront:
    return PathFront(np.zeros(1), np.zeros(1), np.zeros((1, arrays.operators), np.int8))


def _delayed(front: PathFront, delay_s: float) -> PathFront:
    return PathFront(front.time_s + delay_s, front.energy_j, front.processor)


def _union(fronts: Sequence[PathFront]) -> PathFront:
    return PathFront(
        np.concatenate([front.time_s for front in fronts]),
        np.concatenate([front.energy_j for front in fronts]),
        np.concatenate([front.processor for front in fronts]),
    )


def _side_by_side(one: PathFront, other: PathFront) -> PathFront:
    """Return what two branches take together; each has columns of its own operators."""
    latest_s = max(one.time_s[0], other.time_s[0])
    time_s = np.union1d(one.time_s, other.time_s)
    time_s = time_s[time_s >= latest_s]
    first, second = (np.searchsorted(each.time_s, time_s, "right") - 1 for each in (one, other))
    return PathFront(
        time_s,
        one.energy_j[first] + other.energy_j[second],
        one.processor[first] + other.processor[second],
    )


def _thin_out(front: PathFront, step: float) -> PathFront:
    """Leave out what is beaten, and of times within a step all but the least energy."""
    order = np.lexsort((front.energy_j, front.time_s))
    energy_j = front.energy_j[order]
    least_j = np.minimum.accumulate(energy_j)
    order = order[np.append(True, energy_j[1:] < least_j[:-1])]
    if step:
        cell = np.floor(np.log(np.maximum(front.time_s[order], 1e-12)) / np.log1p(step))
        order = order[np.append(cell[1:] != cell[:-1], True)]
    return PathFront(front.time_s[order], front.energy_j[order], front.processor[order])


def enumerated_set(
    problem: MappingProblem,
    energy_j: Energies,
    fastest: Callable[[Schedule], Schedule],
    *,
    resolution: float,
    gap: float,
    seed: int,
) -> Answer | None:
    """Return the set, not verified; None if `enumerated` gives up.

    Parameters
    ----------
    fastest
        Given the shortest schedule of the set, returns the one of a mapper, which stands in the set
        itself if no schedule as short takes less energy.
    resolution
        As for `trade_offs`.
    gap
        What may be left out before it is known exactly, at most the resolution.
    """
    began_s = perf_counter()
    share = (1 + resolution) / (1 + gap) - 1
    optima = enumerated(problem, energy_j, gap=gap, share=share)
    if optima is None:
        return None
    pairs = _descending(problem, energy_j, optima)
    least_s = pairs[0][0].timed.makespan_s
    schedules = []
    for i, (each, taken_j) in enumerate(pairs):
        time_s, last = each.timed.makespan_s, i == len(pairs) - 1
        claim = EnergyClaim(
            taken_j,
            min(each.bound_j, taken_j),
            None if last else time_s,
            proven=last or not i or not gap,
        )
        certificate = Certificate(
            proves="makespan",
            objective_s=time_s,
            bound_s=min(least_s, time_s),
            proven=not i,
            wall_s=perf_counter() - began_s,
            seed=seed,
            solver=NAME,
        )
        schedule = Schedule(each.processor, each.timed.start_s, each.timed.end_s, certificate)
        if not i:
            schedule = _better(problem, energy_j, fastest(schedule), schedule)
        schedules.append(replace(schedule, certificate=replace(schedule.certificate, energy=claim)))
    return Answer(tuple(schedules), resolution, timed_out=False)


def _better(
    problem: MappingProblem, energy_j: Energies, one: Schedule, other: Schedule
) -> Schedule:
    """Return the first schedule if it is as good in time and energy, else the other one."""
    one_j, other_j = (energy_of(energy_j, each.processor) for each in (one, other))
    as_fast = is_as_short(problem, one.makespan_s, other.makespan_s)
    return one if as_fast and is_as_short(problem, one_j, other_j) else other


def _descending(
    problem: MappingProblem, energy_j: Energies, optima: Sequence[EnumeratedSchedule]
) -> list[tuple[EnumeratedSchedule, float]]:
    """Return schedules with their energies; of those equal to rounding the one of less energy."""
    front: list[tuple[EnumeratedSchedule, float]] = []
    for each in optima:
        taken_j = energy_of(energy_j, each.processor)
        if front and is_as_short(problem, front[-1][1], taken_j):
            continue
        if front and is_as_short(problem, each.timed.makespan_s, front[-1][0].timed.makespan_s):
            front.pop()
        front.append((each, taken_j))
    return front
