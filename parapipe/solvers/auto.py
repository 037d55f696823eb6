"""`auto`: of the coarse and the fine schedule the better one; of equally good ones the coarse.

A coarse schedule keeps branches whole, so that fewer tensors go from one processor to
another while frames follow each other. What a hand-over costs, its synchronisation included, is in
the problem's transfer times, and both schedules are replayed with them: the fine one wins only if
it is shorter all the same.
"""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter

from parapipe.solvers import coarse
from parapipe.solvers.fine import mapper as fine
from parapipe.solvers.fine.list_schedules import MOST_SEARCHED
from parapipe.solvers.paths import simple_bound_s
from parapipe.solvers.problem import MappingProblem
from parapipe.solvers.replay import is_as_short
from parapipe.solvers.schedule import Certificate, Schedule

COARSE_SHARE = 4  # the coarse mapper gets one part of so many of the time


def map(  # the protocol's name
    problem: MappingProblem,
    *,
    time_limit_s: float,
    seed: int,
    deterministic: bool = False,
    shortest: Schedule | None = None,
) -> Schedule:
    """Map coarsely, and finely too unless the coarse schedule is seen to be as short as any.

    A problem of more than `MOST_SEARCHED` operators is mapped finely alone.
    The certificate always speaks of the makespan. Its bound is that of `fine`, or where that was
    not needed, that of the coarse mapper's exact chain or of longest paths and loads.
    `solver` names what found the schedule, then what proved the bound. The schedule is never longer
    than that of `fine`; it is the coarse one if that is as short, to rounding.

    Parameters
    ----------
    time_limit_s
        For the whole call, of which the coarse mapper gets a quarter at most.
    seed
        Of all random choices.
    deterministic
        Count work in place of wall time.
    shortest
        As for `fine`.

    Raises
    ------
    MappingError
        If CBC cannot be run.
    """
    began_s = perf_counter()
    if problem.operators > MOST_SEARCHED:
        return fine.map(problem, time_limit_s=time_limit_s, seed=seed, deterministic=deterministic)
    coarse_schedule = coarse.map(
        problem, time_limit_s=time_limit_s / COARSE_SHARE, seed=seed, deterministic=deterministic
    )
    claim = coarse_schedule.certificate
    if claim.proves == "makespan" and claim.proven:
        return coarse_schedule
    bound_s = simple_bound_s(problem)
    if is_as_short(problem, coarse_schedule.makespan_s, bound_s):
        return _certified(coarse_schedule, bound_s, proven=True, by="longest path", began_s=began_s)
    spent_s = 0.0 if deterministic else perf_counter() - began_s
    best = fine.map(
        problem,
        time_limit_s=max(time_limit_s - spent_s, 0.0),
        seed=seed,
        deterministic=deterministic,
        shortest=shortest,
    )
    proof = best.certificate
    if not is_as_short(problem, coarse_schedule.makespan_s, best.makespan_s):
        return replace(best, certificate=replace(proof, wall_s=perf_counter() - began_s))
    return _certified(
        coarse_schedule, proof.bound_s, proven=proof.proven, by=proof.solver, began_s=began_s
    )


def _certified(
    schedule: Schedule, bound_s: float, *, proven: bool, by: str, began_s: float
) -> Schedule:
    """Return the coarse schedule with what is proven of its makespan."""
    makespan_s, claim = schedule.makespan_s, schedule.certificate
    return replace(
        schedule,
        certificate=Certificate(
            proves="makespan",
            objective_s=makespan_s,
            bound_s=min(bound_s, makespan_s),
            proven=proven,
            wall_s=perf_counter() - began_s,
            seed=claim.seed,
            solver=f"{claim.solver}; {by}",
        ),
    )
