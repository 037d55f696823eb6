"""`fine`: the least makespan of operators placed and ordered one by one, with a proof.

The problem is that of the paper's fine-grained ILP, equations (3) to (7). What is done, in this
order, until the proof is complete:

1. A chain of operators and a single usable processor are solved exactly, in doubles; so are small
   problems, all assignments of which are looked at at once (`mapping/assignments`).
2. HEFT, CPOP and PEFT give a schedule to beat.
3. In whole microseconds (fractions, if it is short): longest paths bound the makespan from below,
   and choices that lead beyond the schedule to beat are left out (`bounds`).
4. Large problems: loads, and small exact problems around joins and forks, raise the bounds
   (`load_bound`, `join_bounds`).
5. Problems of more than `MOST_SEARCHED` operators end here, with list schedules and balanced loads
   (`large`).
6. CP-SAT searches the rest (`cp_sat`). If that takes long, list schedules that count what the
   processors' time is worth (`priced_lists`) and searches around the best schedule take turns; with
   few choices CP-SAT is left alone.

`benchmarks/results/ablation.md` says what each of these brings, and which others were tried.

Where transfers keep a resource busy, all this gives a bound and a placement to begin with, and
`occupied` does the rest.
"""

from __future__ import annotations

from time import perf_counter

from parapipe.mapping.assignments.enumerate import LEAST_S, NAME, enumerated
from parapipe.mapping.budget import Budget
from parapipe.mapping.certify import as_short, certified
from parapipe.mapping.chain import is_chain, place_run
from parapipe.mapping.fine import large
from parapipe.mapping.fine.integer_problem import integer_problem, units_per_second
from parapipe.mapping.fine.large import MOST_SEARCHED
from parapipe.mapping.fine.occupied import occupied
from parapipe.mapping.fine.placement import Answer, in_order
from parapipe.mapping.fine.search import Search
from parapipe.mapping.list_order import list_order
from parapipe.mapping.lists import cpop_table, heft_table, peft_table
from parapipe.mapping.paths import simple_bound_s, supporting
from parapipe.mapping.problem import MappingProblem
from parapipe.mapping.replay import Timed, by_start, replay
from parapipe.mapping.schedule import Schedule

QUICK = (heft_table, cpop_table, peft_table)


def map(  # the protocol's name
    problem: MappingProblem,
    *,
    time_limit_s: float,
    seed: int,
    deterministic: bool = False,
    shortest: Schedule | None = None,
) -> Schedule:
    """Place and order the operators so that the makespan is least; verified.

    The search works in whole microseconds, rounded down, so that its bound holds for exact times
    too; if the makespan is below ten milliseconds, in decimal fractions of them. `objective_s` is
    the exact makespan of the schedule, `bound_s` the bound. `proven` says that in rounded times no
    schedule is shorter: objective and bound then differ by less than such a unit for each operator
    and each transfer in a chain of those that wait for each other.
    Chains, problems of one processor and small ones are proven in exact times. The schedule is
    never longer than those of HEFT, CPOP and PEFT.

    Parameters
    ----------
    time_limit_s
        For the whole call. When it is over, the best schedule found comes with the bound proven so
        far; if it is 0, these are the heuristics' best and the longest path.
    seed
        Of all random choices. What is solved within the limit is the same for the same seed.
    deterministic
        Count work instead of wall time, so that what is not solved within the limit is the same
        as well. A second of work takes a fraction of a second to a few seconds.
    shortest
        A schedule that is known to be as short as any, if there is one: it spares a search.
    """
    began_s = perf_counter()
    if problem.transfer_resource:
        return occupied(
            problem, map, time_limit_s=time_limit_s, seed=seed, deterministic=deterministic
        )
    exact = _without_search(problem)
    if exact is None and shortest is not None:
        return shortest
    if exact is None and time_limit_s >= LEAST_S and (every := enumerated(problem)):
        exact = every[0].processor, every[0].timed, NAME
    if exact:
        processor, timed, solver = exact
        return certified(
            problem,
            processor,
            timed,
            bound_s=timed.makespan_s,
            solver=solver,
            seed=seed,
            began_s=began_s,
        )
    if problem.operators > MOST_SEARCHED:
        return large.scheduled(problem, seed=seed, began_s=began_s)
    budget = Budget(time_limit_s, deterministic, began_s)
    quick = min((table(problem) for table in QUICK), key=lambda table: table.timed.makespan_s)
    best = quick.timed
    bound_s = simple_bound_s(problem)
    per_second = units_per_second(best.makespan_s)
    rounded = integer_problem(problem, per_second)
    start = in_order(rounded, quick.processor, by_start(best.start_s, best.end_s))
    search = Search(seed)
    if as_short(problem, best.makespan_s, bound_s):
        answer = Answer(start.makespan_units, None)
    else:
        answer = search.solve(rounded, start.makespan_units - 1, budget)
    placements = [start, *([answer.placement] if answer.placement else [])]
    # a heuristic's schedule may wait where its own order need not, so that is replayed as well
    schedules = [(tuple(quick.processor), best)]
    for found in placements:
        order = by_start(found.start_units, found.end_units)
        schedules.append((found.processor, replay(problem, found.processor, order)))
    processor, timed = min(schedules, key=lambda schedule: schedule[1].makespan_s)
    return certified(
        problem,
        processor,
        timed,
        bound_s=max(answer.bound_units / per_second, bound_s),
        proven=answer.bound_units >= min(found.makespan_units for found in placements),
        solver=search.solver,
        seed=seed,
        began_s=began_s,
    )


def _without_search(problem: MappingProblem) -> tuple[tuple[int, ...], Timed, str] | None:
    """Solve what needs no search: chains, and problems of which one processor runs all."""
    everything = tuple(range(problem.operators))
    usable = sorted({p for support in supporting(problem) for p in support})
    if is_chain(problem, everything):
        processor, order = place_run(problem, everything, {})[0].processor, everything
        return processor, replay(problem, processor, order), "shortest path"
    if len(usable) == 1:
        # whoever never waits without need ends first
        processor = tuple(usable) * problem.operators
        order = list_order(problem, processor, everything)
        return processor, replay(problem, processor, order), "list scheduling"
    return None
