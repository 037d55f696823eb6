"""PEFT, predict earliest finish time: Arabnejad and Barbosa (2014).

"List scheduling algorithm for heterogeneous systems by an optimistic cost table", IEEE
Transactions on Parallel and Distributed Systems 25(3). The table holds, for an operator on a
processor, how long the rest of the problem takes at least if nothing but paths counted. Operators
are placed by falling mean of their row, each where its end plus the table's entry is least.
"""

from __future__ import annotations

from math import inf
from time import perf_counter

from parapipe.mapping.certify import certified
from parapipe.mapping.list_scheduling import list_schedule
from parapipe.mapping.problem import MappingProblem
from parapipe.mapping.ranks import readers_of, supporting
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


def optimistic_costs_s(problem: MappingProblem) -> tuple[tuple[float, ...], ...]:
    """Return the table: seconds from the end of operator v on p to the end of all behind it.

    The longest path to an operator that nobody reads, each operator on
    the processor that shortens it most. The transfer is that of the two processors at hand; the
    paper's mean is the same where all pairs take equally long. Infinite where p does not support
    v; ranks are means over the others.
    """
    cost_s = [[inf] * problem.processors for _ in range(problem.operators)]
    support = supporting(problem)
    for v, edges in reversed([*enumerate(readers_of(problem))]):
        for p in support[v]:
            cost_s[v][p] = max(
                (
                    min(cost_s[w][q] + problem.time_s[w][q] + delay_s[p][q] for q in support[w])
                    for w, delay_s in edges.items()
                ),
                default=0.0,
            )
    return tuple(tuple(row) for row in cost_s)
