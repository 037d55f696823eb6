"""Paths through a problem: ranks of operators, and a bound that takes no search.

The ranks of Topcuoglu, Hariri and Wu (2002) need one number for an operator and one for an edge,
before anything is placed. Both are means, over what can happen:

- an operator's time, over the processors that support it;
- an edge's delay, over the ordered pairs of *different* processors of which the first supports the
  producer and the second the reader (as in the paper, a transfer that is none does not count); 0
  if there is no such pair. Where several tensors go from one operator to the other, the longest
  transfer of each pair counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from heapq import heapify, heappop, heappush
from math import fsum, inf

from parapipe.mapping.list_order import inputs_of
from parapipe.mapping.problem import MappingProblem

# `delay_s[p][q]`: seconds until all tensors of an edge have got from p to q.
Delay = tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True)
class Means:
    """Mean times of operators and mean delays of edges, in seconds.

    Parameters
    ----------
    time_s
        Of each operator.
    delay_s
        `delay_s[v][w]` of each edge from v to a reader w.
    release_s
        Of each operator: mean arrival of its latest tensor from outside; 0 without any.
    """

    time_s: tuple[float, ...]
    delay_s: tuple[Mapping[int, float], ...]
    release_s: tuple[float, ...]


def readers_of(problem: MappingProblem) -> tuple[Mapping[int, Delay], ...]:
    """For each operator the ones that read it, each once, with the delay of the edge."""
    readers: list[dict[int, Delay]] = [{} for _ in range(problem.operators)]
    for flow in problem.flows:
        if flow.producer is None:
            continue
        edges = readers[flow.producer]
        for w in flow.consumers:
            edges[w] = _longer(edges[w], flow.transfer_s) if w in edges else flow.transfer_s
    return tuple(readers)


def supporting(problem: MappingProblem) -> tuple[tuple[int, ...], ...]:
    """Processors that support each operator."""
    return tuple(tuple(p for p, time_s in enumerate(row) if time_s < inf) for row in problem.time_s)


def means_of(problem: MappingProblem) -> Means:
    """Average times and delays as the ranks need them."""
    support = supporting(problem)
    release_s = [[0.0] * problem.processors for _ in range(problem.operators)]
    for flow in problem.flows:
        if flow.location is not None:
            for w in flow.consumers:
                release_s[w] = [*map(max, release_s[w], flow.transfer_s[flow.location])]
    return Means(
        time_s=tuple(_mean([row[p] for p in support[v]]) for v, row in enumerate(problem.time_s)),
        delay_s=tuple(
            {
                w: _mean([delay_s[p][q] for p in support[v] for q in support[w] if p != q])
                for w, delay_s in edges.items()
            }
            for v, edges in enumerate(readers_of(problem))
        ),
        release_s=tuple(_mean([release_s[v][p] for p in support[v]]) for v in range(len(support))),
    )


def upward_ranks_s(means: Means) -> tuple[float, ...]:
    """Longest mean path from each operator's start to the end of the problem.

    No operator has a higher rank than one that it reads.
    """
    rank_s = [0.0] * len(means.time_s)
    for v in reversed(range(len(rank_s))):
        rank_s[v] = means.time_s[v] + max(
            (delay_s + rank_s[w] for w, delay_s in means.delay_s[v].items()), default=0.0
        )
    return tuple(rank_s)


def downward_ranks_s(means: Means) -> tuple[float, ...]:
    """Longest mean path from the problem's start to the start of each operator.

    The arrival of a tensor from outside counts as a path too.
    """
    rank_s = list(means.release_s)
    for v, edges in enumerate(means.delay_s):
        for w, delay_s in edges.items():
            rank_s[w] = max(rank_s[w], rank_s[v] + means.time_s[v] + delay_s)
    return tuple(rank_s)


def optimistic_costs_s(problem: MappingProblem) -> tuple[tuple[float, ...], ...]:
    """Return PEFT's table: seconds from the end of operator v on p to the end of all behind it.

    After Arabnejad and Barbosa (2014): the longest path to an operator that nobody reads, each
    operator on the processor that shortens it most, so that no schedule takes less. The transfer
    is that of the two processors at hand; the paper's mean is the same where all pairs take
    equally long. Infinite where p does not support v.
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


def by_priority(
    readers: Sequence[Iterable[int]], priority: Sequence[float | tuple[float, ...]]
) -> Iterator[int]:
    """Yield operators in a topological order: of those whose producers came, the least priority.

    Of equals the least operator.
    """
    waits = [0] * len(readers)
    for some in readers:
        for v in some:
            waits[v] += 1
    ready = [(priority[v], v) for v, count in enumerate(waits) if not count]
    heapify(ready)
    while ready:
        u = heappop(ready)[1]
        yield u
        for v in readers[u]:
            waits[v] -= 1
            if not waits[v]:
                heappush(ready, (priority[v], v))


@lru_cache(maxsize=1)  # several mappers look at one problem
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
                elif flow.location is not None:
                    starts[p] = max(starts[p], flow.transfer_s[flow.location][p])
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


def _longer(one: Delay, other: Delay) -> Delay:
    return tuple(tuple(map(max, *rows)) for rows in zip(one, other, strict=True))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
