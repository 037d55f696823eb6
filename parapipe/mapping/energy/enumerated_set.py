"""The set of a small problem, from all its assignments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from time import perf_counter

from parapipe.mapping.assignments.enumerate import NAME, Found, enumerated
from parapipe.mapping.certify import as_short, certified
from parapipe.mapping.problem import MappingProblem
from parapipe.mapping.schedule import Answer, Energies, EnergyClaim, Schedule
from parapipe.mapping.verify import energy_of


def enumerated_set(
    problem: MappingProblem, energy_j: Energies, fastest: Schedule, gap: float, seed: int
) -> Answer | None:
    """Return schedules that match all others within a gap, in time and in energy; None as there.

    Parameters
    ----------
    fastest
        Stands in the set itself if none as short takes less energy.
    gap
        As for `enumerated`.
    """
    began_s = perf_counter()
    found = enumerated(problem, energy_j, gap)
    if found is None:
        return None
    pairs = _descending(problem, energy_j, found)
    schedules: list[Schedule] = []
    for (each, taken_j), following in zip(pairs, [*pairs[1:], None], strict=True):
        if not schedules and _as_good(problem, energy_j, fastest, each, taken_j):
            schedule = fastest
        else:
            schedule = certified(
                problem,
                each.processor,
                each.timed,
                bound_s=pairs[0][0].timed.makespan_s,
                solver=NAME,
                seed=seed,
                began_s=began_s,
            )
        claim = _claim(each, taken_j, pairs, gap, last=following is None)
        schedules.append(replace(schedule, certificate=replace(schedule.certificate, energy=claim)))
    return Answer(tuple(schedules), gap, timed_out=False)


def _descending(
    problem: MappingProblem, energy_j: Energies, found: Sequence[Found]
) -> list[tuple[Found, float]]:
    """Return schedules with their energies; of those equal to rounding one."""
    kept: list[tuple[Found, float]] = []
    for each in found:
        taken_j = energy_of(energy_j, each.processor)
        time_s = each.timed.makespan_s
        if kept and as_short(problem, kept[-1][1], taken_j):
            continue
        if kept and as_short(problem, time_s, kept[-1][0].timed.makespan_s):
            kept.pop()
        kept.append((each, taken_j))
    return kept


def _as_good(
    problem: MappingProblem, energy_j: Energies, fastest: Schedule, found: Found, taken_j: float
) -> bool:
    return as_short(problem, fastest.makespan_s, found.timed.makespan_s) and as_short(
        problem, energy_of(energy_j, fastest.processor), taken_j
    )


def _claim(
    found: Found,
    taken_j: float,
    pairs: Sequence[tuple[Found, float]],
    gap: float,
    *,
    last: bool,
) -> EnergyClaim:
    """Say what is proven of the energy; the two ends are exact."""
    time_s = found.timed.makespan_s
    exact = last or found is pairs[0][0]
    bound_j = taken_j
    if not exact:
        near = [e for each, e in pairs if each.timed.makespan_s <= time_s * (1 + gap)]
        bound_j = min(near) / (1 + gap)
    proven = exact or bound_j >= taken_j
    return EnergyClaim(taken_j, bound_j, None if last else time_s, proven)
