"""PEFT, predict earliest finish time: Arabnejad and Barbosa (2014).

"List scheduling algorithm for heterogeneous systems by an optimistic cost table", IEEE
Transactions on Parallel and Distributed Systems 25(3). The table holds, for an operator on a
processor, how long the rest of the problem takes at least if nothing but paths counted. Operators
are placed by falling mean of their row, over the processors that support them, each where its end
plus the table's entry is least. The table is `ranks.optimistic_costs_s`.
"""

from __future__ import annotations

from time import perf_counter

from parapipe.mapping.certify import certified
from parapipe.mapping.list_scheduling import list_schedule
from parapipe.mapping.problem import MappingProblem
from parapipe.mapping.ranks import optimistic_costs_s, supporting
from parapipe.mapping.schedule import Schedule
from parapipe.mapping.simple_bound import simple_bound_s


def map(problem: MappingProblem, *, time_limit_s: float, seed: int) -> Schedule:
    """Place and order the operators by PEFT, with insertion; the schedule is verified.

    The certificate speaks of the makespan, its bound is `simple_bound_s`: it is proven where the
    two happen to meet.

    Parameters
    ----------
    time_limit_s
        Of no effect: PEFT takes milliseconds.
    seed
        Of no effect: PEFT has no random choice.
    """
    began_s = perf_counter()
    tail_s = optimistic_costs_s(problem)
    rank_s = [
        sum(row[p] for p in support) / len(support)
        for row, support in zip(tail_s, supporting(problem), strict=True)
    ]
    table = list_schedule(problem, rank_s, tail_s=tail_s)
    return certified(
        problem,
        table.processor,
        table.start_s,
        table.end_s,
        bound_s=simple_bound_s(problem),
        solver="PEFT",
        seed=seed,
        began_s=began_s,
    )
