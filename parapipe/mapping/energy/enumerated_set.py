"""The set of a small problem, from all its assignments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from time import perf_counter

from parapipe.mapping.assignments.enumerate import NAME, Found, enumerated
from parapipe.mapping.certify import as_short
from parapipe.mapping.problem import MappingProblem
from parapipe.mapping.schedule import Answer, Certificate, Energies, EnergyClaim, Schedule
from parapipe.mapping.verify import energy_of


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
    found = enumerated(problem, energy_j, gap=gap, share=share)
    if found is None:
        return None
    pairs = _descending(problem, energy_j, found)
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
        found_as = Schedule(each.processor, each.timed.start_s, each.timed.end_s, certificate)
        if not i and _as_good(problem, energy_j, given := fastest(found_as), found_as):
            found_as = given
        schedules.append(replace(found_as, certificate=replace(found_as.certificate, energy=claim)))
    return Answer(tuple(schedules), resolution, timed_out=False)


def _as_good(
    problem: MappingProblem, energy_j: Energies, fastest: Schedule, found: Schedule
) -> bool:
    taken_j, least_j = (energy_of(energy_j, each.processor) for each in (fastest, found))
    return as_short(problem, fastest.makespan_s, found.makespan_s) and as_short(
        problem, taken_j, least_j
    )


def _descending(
    problem: MappingProblem, energy_j: Energies, found: Sequence[Found]
) -> list[tuple[Found, float]]:
    """Return schedules with their energies; of those equal to rounding the more frugal one."""
    kept: list[tuple[Found, float]] = []
    for each in found:
        taken_j = energy_of(energy_j, each.processor)
        if kept and as_short(problem, kept[-1][1], taken_j):
            continue
        if kept and as_short(problem, each.timed.makespan_s, kept[-1][0].timed.makespan_s):
            kept.pop()
        kept.append((each, taken_j))
    return kept
