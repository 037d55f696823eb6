"""CPOP, critical path on a processor: Topcuoglu, Hariri and Wu (2002), where HEFT is from.

Operators are placed by falling sum of their downward and upward rank, as soon as their producers
are placed. Those on the critical path, the longest by mean times, all go on one processor: the
one that runs the path fastest. The others go where they end first.

Where no processor supports the whole path, the paper says nothing. Here the path's processor is
one of those that support most of its operators, of these the one that is fastest on them, and an
operator of the path that it does not support goes where it ends first, like those off the path.
"""

from __future__ import annotations

from math import fsum, inf
from time import perf_counter

from parapipe.mapping.certify import certified
from parapipe.mapping.list_scheduling import list_schedule
from parapipe.mapping.problem import MappingProblem
from parapipe.mapping.ranks import Means, downward_ranks_s, means_of, upward_ranks_s
from parapipe.mapping.schedule import Schedule
from parapipe.mapping.simple_bound import simple_bound_s


def map(problem: MappingProblem, *, time_limit_s: float, seed: int) -> Schedule:
    """Place and order the operators by CPOP; the schedule is verified.

    `ranks` says how times and transfers are averaged where a processor does not support an
    operator; placing counts the true ones. The certificate speaks of the makespan, its bound is
    `simple_bound_s`: it is proven where the two happen to meet.

    Parameters
    ----------
    time_limit_s
        Of no effect: CPOP takes milliseconds.
    seed
        Of no effect: CPOP has no random choice.
    """
    began_s = perf_counter()
    means = means_of(problem)
    path = critical_path(means)
    center = _path_processor(problem, path)
    table = list_schedule(
        problem,
        [d + u for d, u in zip(downward_ranks_s(means), upward_ranks_s(means), strict=True)],
        pinned={v: center for v in path if problem.time_s[v][center] < inf},
    )
    return certified(
        problem,
        table.processor,
        table.start_s,
        table.end_s,
        bound_s=simple_bound_s(problem),
        solver="CPOP",
        seed=seed,
        began_s=began_s,
    )


def critical_path(means: Means) -> tuple[int, ...]:
    """Operators of the longest path by mean times, first to last; of equals the least operators.

    It starts where its length, the arrival of tensors from outside included, is greatest.
    """
    rank_s = upward_ranks_s(means)
    path = [max(range(len(rank_s)), key=lambda v: means.release_s[v] + rank_s[v])]
    while edges := means.delay_s[path[-1]]:
        path.append(min(edges, key=lambda w: (-edges[w] - rank_s[w], w)))
    return tuple(path)


def _path_processor(problem: MappingProblem, path: tuple[int, ...]) -> int:
    def unfit(p: int) -> tuple[int, float]:
        times_s = [problem.time_s[v][p] for v in path]
        return times_s.count(inf), fsum(s for s in times_s if s < inf)

    return min(range(problem.processors), key=unfit)
