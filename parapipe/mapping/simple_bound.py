"""A lower bound on the makespan that takes no search: longest path and loads."""

from __future__ import annotations

from math import fsum, inf

from parapipe.mapping.problem import MappingProblem
from parapipe.mapping.replay import inputs_of


def simple_bound_s(problem: MappingProblem) -> float:
    """Seconds below which no schedule ends; the larger of two bounds.

    *Path*: an operator on p starts when each of its inputs, taken for itself, can have arrived
    there from the processor that is best for that input, and not before a tensor from outside has.
    For a chain this is the optimum. *Load*: operators that only some processors support keep these
    busy for at least the sum of their least times, shared evenly. That is taken for each set of
    processors that is some operator's support, and for all processors that support anything.

    Sums of doubles: good to rounding.
    """
    return max(_path_s(problem), _load_s(problem))


def _path_s(problem: MappingProblem) -> float:
    inputs = inputs_of(problem)
    earliest_end_s: list[list[float]] = []
    for v, row in enumerate(problem.time_s):
        ends_s = [inf] * len(row)
        for p, time_s in enumerate(row):
            if time_s == inf:
                continue
            start_s = 0.0
            for flow in inputs[v]:
                if flow.producer is not None:
                    sources = enumerate(earliest_end_s[flow.producer])
                    arrival_s = min(end_s + flow.transfer_s[q][p] for q, end_s in sources)
                    start_s = max(start_s, arrival_s)
                elif flow.home is not None:
                    start_s = max(start_s, flow.transfer_s[flow.home][p])
            ends_s[p] = start_s + time_s
        earliest_end_s.append(ends_s)
    return max(min(ends_s) for ends_s in earliest_end_s)


def _load_s(problem: MappingProblem) -> float:
    supports = [
        frozenset(p for p, time_s in enumerate(row) if time_s < inf) for row in problem.time_s
    ]
    least_s = [min(row) for row in problem.time_s]
    groups = {*supports, frozenset[int]().union(*supports)}
    return max(
        fsum(s for s, support in zip(least_s, supports, strict=True) if support <= group)
        / len(group)
        for group in groups
    )
