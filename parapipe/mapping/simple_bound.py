"""A lower bound on the makespan that takes no search: longest path and loads."""

from __future__ import annotations

from math import fsum, inf

from parapipe.mapping.problem import MappingProblem
from parapipe.mapping.ranks import optimistic_costs_s, supporting
from parapipe.mapping.replay import inputs_of


def simple_bound_s(problem: MappingProblem) -> float:
    """Seconds below which no schedule ends; the larger of two bounds.

    *Path*: an operator on p starts when each of its inputs, taken for itself, can have arrived
    there from the processor that is best for that input, and not before a tensor from outside has.
    For a chain this is the optimum.

    *Load*: operators that only some processors support keep these busy for at least the sum of
    their least times, shared evenly; before that the first of them has to be able to start, and
    behind it the path from the last of them has to be run. That is taken for each set of
    processors that is some operator's support, and for all processors that support anything.

    Sums of doubles: good to rounding.
    """
    start_s = earliest_starts_s(problem)
    path_s = max(
        min(start + time for start, time in zip(starts, times, strict=True))
        for starts, times in zip(start_s, problem.time_s, strict=True)
    )
    return max(path_s, _load_s(problem, start_s))


def earliest_starts_s(problem: MappingProblem) -> tuple[tuple[float, ...], ...]:
    """Seconds before which operator v cannot start on p, by paths; infinite without support."""
    inputs = inputs_of(problem)
    start_s: list[tuple[float, ...]] = []
    end_s: list[list[tuple[int, float]]] = []  # by supporting processor
    for v, support in enumerate(supporting(problem)):
        starts = [inf] * problem.processors
        for p in support:
            starts[p] = 0.0
            for flow in inputs[v]:
                if flow.producer is not None:
                    sources = end_s[flow.producer]
                    arrival_s = min(end + flow.transfer_s[q][p] for q, end in sources)
                    starts[p] = max(starts[p], arrival_s)
                elif flow.home is not None:
                    starts[p] = max(starts[p], flow.transfer_s[flow.home][p])
        start_s.append(tuple(starts))
        end_s.append([(p, starts[p] + problem.time_s[v][p]) for p in support])
    return tuple(start_s)


def _load_s(problem: MappingProblem, start_s: tuple[tuple[float, ...], ...]) -> float:
    supports = [frozenset(support) for support in supporting(problem)]
    rest_s = optimistic_costs_s(problem)
    bounds_s = []
    for group in {*supports, frozenset[int]().union(*supports)}:
        inside = [v for v, support in enumerate(supports) if support <= group]
        first_s = min(min(start_s[v]) for v in inside)
        load_s = fsum(min(problem.time_s[v]) for v in inside) / len(group)
        last_s = min(min(rest_s[v]) for v in inside)
        bounds_s.append(first_s + load_s + last_s)
    return max(bounds_s)
