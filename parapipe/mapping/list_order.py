"""When tensors arrive, and the order of operators if no processor waits without need."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from operator import itemgetter

from parapipe.mapping.problem import Flow, MappingProblem


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
