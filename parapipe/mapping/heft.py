"""HEFT, heterogeneous earliest finish time: Topcuoglu, Hariri and Wu (2002).

"Performance-effective and low-complexity task scheduling for heterogeneous computing", IEEE
Transactions on Parallel and Distributed Systems 13(3). Operators are placed by falling upward
rank, each where it ends first, gaps between placed operators included.
"""

from __future__ import annotations

from time import perf_counter

from parapipe.mapping.certify import certified
from parapipe.mapping.list_scheduling import list_schedule
from parapipe.mapping.problem import MappingProblem
from parapipe.mapping.ranks import means_of, upward_ranks_s
from parapipe.mapping.schedule import Schedule
from parapipe.mapping.simple_bound import simple_bound_s


def map(problem: MappingProblem, *, time_limit_s: float, seed: int) -> Schedule:
    """Place and order the operators by HEFT; the schedule is verified.

    `ranks` says how times and transfers are averaged where a processor does not support an
    operator; placing counts the true ones. The certificate speaks of the makespan, its bound is
    `simple_bound_s`: it is proven where the two happen to meet.

    Parameters
    ----------
    time_limit_s
        Of no effect: HEFT takes milliseconds.
    seed
        Of no effect: HEFT has no random choice.
    """
    began_s = perf_counter()
    table = list_schedule(problem, upward_ranks_s(means_of(problem)))
    return certified(
        problem,
        table.processor,
        table.start_s,
        table.end_s,
        bound_s=simple_bound_s(problem),
        solver="HEFT",
        seed=seed,
        began_s=began_s,
    )
