"""The layer-switched baseline: the whole problem in sequence, each operator on its processor.

What is minimised: operators run one at a time, in the order of the problem (a topological one),
whatever their processors. Each starts when its predecessor in that order has ended and its inputs
have arrived. A transfer is a pure delay, so it counts as far as the sequence has to wait for it,
and not at all while it is hidden behind other operators. The makespan is the end of the last
operator. Running everything on one processor is one of the choices; the order is not.
"""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter

from parapipe.solvers.fine import mapper as fine
from parapipe.solvers.paths import complete_processors
from parapipe.solvers.problem import Flow, MappingProblem
from parapipe.solvers.replay import certified, one_at_a_time
from parapipe.solvers.schedule import Schedule


def map(  # the protocol's name
    problem: MappingProblem, *, time_limit_s: float, seed: int, deterministic: bool = False
) -> Schedule:
    """Choose each operator's processor so that the sequence ends first; the schedule is verified.

    `fine` solves the problem with an edge from every operator to the next one, so what is said
    there about microseconds, time limit and seed holds here as well. The certificate proves the
    makespan of operators run one at a time in the problem's order, not that of schedules in which
    they overlap. Transfers that occupy something are pure delays to the search, whose bound holds
    for them too; the sequence is then timed with what they occupy.
    """
    began_s = perf_counter()
    at_once = ((0.0,) * problem.processors,) * problem.processors
    order = [Flow(v, (v + 1,), at_once) for v in range(problem.operators - 1)]
    fine_schedule = fine.map(
        replace(problem, flows=(*problem.flows, *order), transfer_resource=()),
        time_limit_s=time_limit_s,
        seed=seed,
        deterministic=deterministic,
    )
    alone = [(p,) * problem.operators for p in complete_processors(problem)]
    trials = {trial: one_at_a_time(problem, trial) for trial in (fine_schedule.processor, *alone)}
    best = min(trials, key=lambda trial: trials[trial].makespan_s)
    claim = fine_schedule.certificate
    return certified(
        problem,
        best,
        trials[best],
        bound_s=claim.bound_s,
        proves="makespan of operators run one at a time",
        proven=claim.proven and trials[best].makespan_s <= fine_schedule.makespan_s,
        solver=claim.solver,
        seed=seed,
        began_s=began_s,
    )
