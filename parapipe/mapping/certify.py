"""From placed operators and a bound to a schedule that the verifier has read."""

from __future__ import annotations

from collections.abc import Sequence
from math import ulp
from time import perf_counter

from parapipe.mapping.problem import MappingProblem
from parapipe.mapping.replay import Timed, by_start, timed
from parapipe.mapping.schedule import Certificate, Schedule
from parapipe.mapping.verify import verify


def certified(
    problem: MappingProblem,
    processor: Sequence[int],
    found: Timed,
    *,
    bound_s: float,
    proves: str = "makespan",
    objective_s: float | None = None,
    proven: bool | None = None,
    solver: str,
    seed: int,
    began_s: float,
) -> Schedule:
    """Return the verified schedule; its certificate's objective is the latest end unless given.

    Parameters
    ----------
    bound_s
        Lower bound on what `proves` names; it is cut to the objective.
    proven
        If not given, it is proven if the bound meets the objective, to one unit in the last place
        for each operator: both are sums of doubles, added up in different orders.
    began_s
        When the mapper was called, on the clock of `time.perf_counter`.

    Raises
    ------
    VerificationError
        If the schedule breaks a rule.
    """
    objective_s = found.makespan_s if objective_s is None else objective_s
    certificate = Certificate(
        proves=proves,
        objective_s=objective_s,
        bound_s=min(bound_s, objective_s),
        proven=as_short(problem, objective_s, bound_s) if proven is None else proven,
        wall_s=perf_counter() - began_s,
        seed=seed,
        solver=solver,
    )
    schedule = Schedule(tuple(processor), found.start_s, found.end_s, certificate, found.transfers)
    verify(problem, schedule)
    return schedule


def with_transfers(problem: MappingProblem, processor: Sequence[int], found: Timed) -> Timed:
    """Return new times, from those of pure delays, where transfers occupy something."""
    if not problem.carrier:
        return found
    return timed(problem, processor, by_start(found.start_s, found.end_s))


def as_short(problem: MappingProblem, makespan_s: float, other_s: float) -> bool:
    """Compare sums of doubles that were added up in different orders."""
    return makespan_s <= other_s + (problem.operators + 2) * ulp(other_s)
