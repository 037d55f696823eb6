"""From placed operators and a bound to a schedule that the verifier has read."""

from __future__ import annotations

from collections.abc import Sequence
from math import ulp
from time import perf_counter

from parapipe.mapping.carried import by_start, settled
from parapipe.mapping.problem import MappingProblem
from parapipe.mapping.schedule import Certificate, Schedule, Transfer
from parapipe.mapping.verify import verify


def certified(
    problem: MappingProblem,
    processor: Sequence[int],
    start_s: Sequence[float],
    end_s: Sequence[float],
    *,
    bound_s: float,
    proves: str = "makespan",
    solver: str,
    seed: int,
    began_s: float,
    transfers: tuple[Transfer, ...] | None = None,
) -> Schedule:
    """Return the verified schedule; its certificate's objective is the latest end.

    Where transfers occupy something and are not given, start and end are those of pure delays:
    the operators stay where they are and get new times, see `carried.settled`.

    It is proven if the bound meets the makespan, to one unit in the last place for each operator:
    both are sums of doubles, added up in different orders.

    Parameters
    ----------
    bound_s
        Lower bound on what `proves` names.
    began_s
        When the mapper was called, on the clock of `time.perf_counter`.
    transfers
        Those that occupy something, if the times reckon with them.

    Raises
    ------
    VerificationError
        If the schedule breaks a rule.
    """
    if problem.carrier and transfers is None:
        timed = settled(problem, processor, by_start(start_s, end_s))
        start_s, end_s, transfers = timed.start_s, timed.end_s, timed.transfers
    makespan_s = max(end_s)
    certificate = Certificate(
        proves=proves,
        objective_s=makespan_s,
        bound_s=min(bound_s, makespan_s),
        proven=bound_s >= makespan_s - (problem.operators + 2) * ulp(makespan_s),
        wall_s=perf_counter() - began_s,
        seed=seed,
        solver=solver,
    )
    schedule = Schedule(
        tuple(processor), tuple(start_s), tuple(end_s), certificate, transfers or ()
    )
    verify(problem, schedule)
    return schedule
