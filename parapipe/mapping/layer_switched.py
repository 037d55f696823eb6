"""The layer-switched baseline: the whole problem in sequence, each operator on its processor.

What is minimised: operators run one at a time, in the order of the problem (a topological one),
whatever their processors. Each starts when its predecessor in that order has ended and its inputs
have arrived. A transfer is a pure delay, so it counts as far as the sequence has to wait for it,
and not at all while it is hidden behind other operators. The makespan is the end of the last
operator. Running everything on one processor is one of the choices; the order is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from time import perf_counter

from parapipe.mapping.carried import one_at_a_time
from parapipe.mapping.certify import certified
from parapipe.mapping.problem import MappingProblem
from parapipe.mapping.replay import arrival_s, inputs_of
from parapipe.mapping.schedule import Schedule, Transfer
from parapipe.mapping.sequence_search import SequenceSearch

WIDTHS = (4, 16, 64)  # labels at a time, per processor: the next if one is no proof
WORK_LIMIT = 100_000  # noted or compared arrivals: a tenth of a second or two


def map(problem: MappingProblem, *, time_limit_s: float, seed: int) -> Schedule:
    """Choose each operator's processor so that the sequence ends first; the schedule is verified.

    The certificate proves the makespan of operators run one at a time in the problem's order, not
    that of schedules in which they overlap. It is proven if the search, `sequence_search`, had to
    leave out nothing that might be better; of a chain it always is. Else the best sequence found
    comes with the least that what was left out might have led to. Transfers that occupy something
    are pure delays to the search, whose bound holds for them too; the sequence is then timed with
    what they occupy.

    Parameters
    ----------
    time_limit_s
        When it is over, the search goes on with a single label. There is a schedule even if it is
        0. The search also has a limit of its own, in work and not in time.
    seed
        Of no effect: there is no random choice.
    """
    began_s = perf_counter()
    search = SequenceSearch(problem, deadline_s=began_s + time_limit_s, work_left=WORK_LIMIT)
    best: tuple[int, ...] = ()
    best_s, bound_s = inf, 0.0
    for whole in range(problem.processors):
        if all(row[whole] < inf for row in problem.time_s):
            best, best_s = _shorter(problem, (whole,) * problem.operators, best, best_s)
    for width in WIDTHS:
        found, left_out_s = search.run(width * problem.processors, below_s=best_s)
        if found:
            best, best_s = _shorter(problem, found, best, best_s)
        bound_s = max(bound_s, min(left_out_s, best_s))
        if bound_s >= best_s or search.exhausted():
            break
    start_s, end_s = sequence(problem, best)
    transfers: tuple[Transfer, ...] = ()
    if problem.carrier:
        alone = [
            (p,) * problem.operators
            for p in range(problem.processors)
            if all(row[p] < inf for row in problem.time_s)
        ]
        trials = {trial: one_at_a_time(problem, trial) for trial in (best, *alone)}
        best = min(trials, key=lambda trial: trials[trial].makespan_s)
        timed = trials[best]
        start_s, end_s, transfers = timed.start_s, timed.end_s, timed.transfers
    return certified(
        problem,
        best,
        start_s,
        end_s,
        transfers=transfers,
        bound_s=bound_s,
        proves="makespan of operators run one at a time",
        solver="shortest path",
        seed=seed,
        began_s=began_s,
    )


def sequence(
    problem: MappingProblem, processor: Sequence[int]
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Start and end, in seconds, of operators that run one at a time in the problem's order."""
    start_s: list[float] = []
    end_s: list[float] = []
    for v, flows in enumerate(inputs_of(problem)):
        free_s = end_s[-1] if end_s else 0.0
        start_s.append(max(free_s, arrival_s(flows, processor[v], processor, end_s)))
        end_s.append(start_s[-1] + problem.time_s[v][processor[v]])
    return tuple(start_s), tuple(end_s)


def _shorter(
    problem: MappingProblem, found: tuple[int, ...], best: tuple[int, ...], best_s: float
) -> tuple[tuple[int, ...], float]:
    """Return the better of two choices of processors, and its end; of equals the best so far."""
    found_s = sequence(problem, found)[1][-1]
    return (found, found_s) if found_s < best_s else (best, best_s)
