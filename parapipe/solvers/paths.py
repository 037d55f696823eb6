"""Orders of operators, and paths through a problem: ranks and lower bounds.

The ranks of Topcuoglu, Hariri and Wu (2002) need one number for an operator and one for an edge,
before anything is placed. Both are means, over what can happen:

- an operator's time, over the processors that support it;
- an edge's delay, over the ordered pairs of *different* processors of which the first supports the
  producer and the second the reader (as in the paper, a transfer that is none does not count); 0
  if there is no such pair. Where several tensors go from one operator to the other, the longest
  transfer of each pair counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from heapq import heapify, heappop, heappush
from math import fsum, inf
from operator import itemgetter

from parapipe.solvers.problem import Flow, MappingProblem


def list_order(
    problem: MappingProblem, processor: Sequence[int], priority: Sequence[int]
) -> tuple[int, ...]:
    """Order in which the placed operators start if no processor ever waits without need.

    List scheduling: of all operators whose producers are done, the one that can start first
    starts; among several, the one with the least `priority[v]`, then the least v.

    Returns
    -------
    tuple
        Every operator once, in a topological order.
    """
    inputs = inputs_of(problem)
    readers: list[set[int]] = [set() for _ in inputs]
    for v, flows in enumerate(inputs):
        for flow in flows:
            if flow.producer is not None:
                readers[flow.producer].add(v)
    left = Counter(v for some in readers for v in some)
    end_s = [0.0] * problem.operators
    queues = [_Queue() for _ in range(problem.processors)]

    def arrive(v: int) -> None:
        at_s = arrival_s(inputs[v], processor[v], processor, end_s)
        queues[processor[v]].put(at_s, priority[v], v)

    for v in range(problem.operators):
        if not left[v]:
            arrive(v)
    order: list[int] = []
    while starts := [(*queue.first(), queue) for queue in queues if queue]:
        start_s, _, v, queue = min(starts, key=itemgetter(0, 1, 2))
        queue.pop()
        end_s[v] = queue.free_s = start_s + problem.time_s[v][processor[v]]
        order.append(v)
        for w in readers[v]:
            left[w] -= 1
            if not left[w]:
                arrive(w)
    return tuple(order)


@dataclass(slots=True)
class _Queue:
    """Operators that wait for a processor.

    Parameters
    ----------
    free_s
        When the processor can run the next one.
    late
        Those whose inputs arrive later, by arrival, priority and number.
    ready
        The others, by priority and number.
    """

    free_s: float = 0.0
    late: list[tuple[float, int, int]] = field(default_factory=list)
    ready: list[tuple[int, int]] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.late or self.ready)

    def put(self, arrived_s: float, priority: int, v: int) -> None:
        heappush(self.late, (arrived_s, priority, v))

    def first(self) -> tuple[float, int, int]:
        """Return start, priority and number of the one that can start first."""
        while self.late and self.late[0][0] <= self.free_s:
            heappush(self.ready, heappop(self.late)[1:])
        return (self.free_s, *self.ready[0]) if self.ready else self.late[0]

    def pop(self) -> None:
        """Take away the first one, which `first` has returned."""
        if self.ready:
            heappop(self.ready)
        else:
            heappop(self.late)


def inputs_of(problem: MappingProblem) -> tuple[tuple[Flow, ...], ...]:
    """Flows that each operator reads."""
    inputs: list[list[Flow]] = [[] for _ in range(problem.operators)]
    for flow in problem.flows:
        for v in flow.consumers:
            inputs[v].append(flow)
    return tuple(map(tuple, inputs))


def arrival_s(
    flows: Iterable[Flow], target: int, processor: Sequence[int], end_s: Sequence[float]
) -> float:
    """Second at which the last of the flows has arrived on the target processor; 0 if none."""
    latest_s = 0.0
    for flow in flows:
        if flow.producer is not None:
            moved_s = flow.transfer_s[processor[flow.producer]][target]
            latest_s = max(latest_s, end_s[flow.producer] + moved_s)
        elif flow.location is not None:
            latest_s = max(latest_s, flow.transfer_s[flow.location][target])
    return latest_s


# `delay_s[p][q]`: seconds until all tensors of an edge have got from p to q.
Delay = tuple[tuple[float, ...], ...]
# `times[v][p]`: seconds of operator v on processor p.
Times = tuple[tuple[float, ...], ...]


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


def complete_processors(problem: MappingProblem) -> list[int]:
    """Return the processors that support every operator."""
    return [p for p, column in enumerate(zip(*problem.time_s, strict=True)) if max(column) < inf]


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


def optimistic_costs_s(problem: MappingProblem) -> Times:
    """Return PEFT's table: seconds from the end of operator v on p to the end of all behind it.

    After Arabnejad and Barbosa (2014): the longest path to an operator that nobody reads, each
    operator on the processor that shortens it most, so that no schedule takes less. The transfer
    is that of the two processors at hand; the paper's mean is the same where all pairs take
    equally long. Infinite where p does not support v.
    """
    return _tails_s(problem.time_s, readers_of(problem))


def _tails_s(rows: Times, readers: Sequence[Mapping[int, Delay]]) -> Times:
    cost_s: list[tuple[float, ...]] = [()] * len(rows)
    ahead_s: list[list[tuple[int, float]]] = [[]] * len(rows)  # by supporting processor
    for v in reversed(range(len(rows))):
        costs = [inf] * len(rows[v])
        support = [p for p, time_s in enumerate(rows[v]) if time_s < inf]
        for p in support:
            costs[p] = max(
                [
                    min([after_s + delay_s[p][q] for q, after_s in ahead_s[w]])
                    for w, delay_s in readers[v].items()
                ],
                default=0.0,
            )
        cost_s[v] = tuple(costs)
        ahead_s[v] = [(p, costs[p] + rows[v][p]) for p in support]
    return tuple(cost_s)


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
    return max(
        _path_bound_s(problem.time_s, start_s),
        _load_bound_s(problem.time_s, readers_of(problem), start_s),
    )


def bound_with_s(problem: MappingProblem, processor: int) -> float:
    """Seconds below which no schedule ends that uses a processor.

    It is the least of what `simple_bound_s` says with one operator on that processor, whichever
    that is; infinite if none can run there.
    """
    inputs, readers, times_s = inputs_of(problem), readers_of(problem), problem.time_s
    bounds: list[tuple[float, Times, Times]] = []
    for v, row in enumerate(times_s):
        if row[processor] < inf:
            pinned = tuple(time_s if p == processor else inf for p, time_s in enumerate(row))
            rows = (*times_s[:v], pinned, *times_s[v + 1 :])
            start_s = _starts_s(rows, inputs)
            bounds.append((_path_bound_s(rows, start_s), rows, start_s))
    least_s = inf
    for path_s, rows, start_s in sorted(bounds, key=itemgetter(0)):
        if path_s >= least_s:
            break  # loads raise bounds only
        least_s = min(least_s, max(path_s, _load_bound_s(rows, readers, start_s)))
    return least_s


def earliest_starts_s(problem: MappingProblem) -> Times:
    """Seconds before which operator v cannot start on p, by paths; infinite without support."""
    return _starts_s(problem.time_s, inputs_of(problem))


def _starts_s(rows: Times, inputs: Sequence[Sequence[Flow]]) -> Times:
    start_s: list[tuple[float, ...]] = []
    end_s: list[list[tuple[int, float]]] = []  # by supporting processor
    for row, flows in zip(rows, inputs, strict=True):
        starts = [inf] * len(row)
        support = [p for p, time_s in enumerate(row) if time_s < inf]
        for p in support:
            starts[p] = 0.0
            for flow in flows:
                if flow.producer is not None:
                    sources = end_s[flow.producer]
                    arrival_s = min([end + flow.transfer_s[q][p] for q, end in sources])
                    starts[p] = max(starts[p], arrival_s)
                elif flow.location is not None:
                    starts[p] = max(starts[p], flow.transfer_s[flow.location][p])
        start_s.append(tuple(starts))
        end_s.append([(p, starts[p] + row[p]) for p in support])
    return tuple(start_s)


def _path_bound_s(rows: Times, start_s: Times) -> float:
    return max(
        [
            min([start + time for start, time in zip(starts, row, strict=True)])
            for starts, row in zip(start_s, rows, strict=True)
        ]
    )


def _load_bound_s(rows: Times, readers: Sequence[Mapping[int, Delay]], start_s: Times) -> float:
    supports = [frozenset(p for p, time_s in enumerate(row) if time_s < inf) for row in rows]
    rest_s = _tails_s(rows, readers)
    bounds_s = []
    for group in {*supports, frozenset[int]().union(*supports)}:
        inside = [v for v, support in enumerate(supports) if support <= group]
        first_s = min([min(start_s[v]) for v in inside])
        load_s = fsum([min(rows[v]) for v in inside]) / len(group)
        last_s = min([min(rest_s[v]) for v in inside])
        bounds_s.append(first_s + load_s + last_s)
    return max(bounds_s)


def _longer(one: Delay, other: Delay) -> Delay:
    return tuple(tuple(map(max, *rows)) for rows in zip(one, other, strict=True))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
