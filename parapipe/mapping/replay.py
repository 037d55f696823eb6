"""From a placement and an order to exact seconds: every operator starts as early as it can."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from math import isinf

from parapipe.errors import MappingError
from parapipe.mapping.problem import Flow, MappingProblem


def replay(
    problem: MappingProblem, processor: Sequence[int], order: Iterable[int]
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Start and end of every operator, in seconds.

    A transfer is a pure delay, as in equation (4) of the Para-Pipe paper: it keeps neither sender,
    receiver nor link busy, whatever the problem says; see `carried.replay_carried` where they are.

    Parameters
    ----------
    processor
        Of each operator.
    order
        Every operator once. What counts is the order among operators of one processor: one global
        sequence will do as well as the processors' sequences one behind the other.

    Raises
    ------
    MappingError
        If the order misses or repeats operators, an operator is on a processor that does not
        support it, or the order makes operators wait for each other in a circle.
    """
    sequence = tuple(order)
    _check(problem, processor, sequence)
    inputs = inputs_of(problem)
    before: dict[int, int] = {}
    waits: list[set[int]] = [
        {f.producer for f in flows if f.producer is not None} for flows in inputs
    ]
    last: dict[int, int] = {}
    for v in sequence:
        if processor[v] in last:
            before[v] = last[processor[v]]
            waits[v].add(before[v])
        last[processor[v]] = v
    waiters: list[list[int]] = [[] for _ in sequence]
    for v, earlier in enumerate(waits):
        for u in earlier:
            waiters[u].append(v)
    left = [len(earlier) for earlier in waits]
    start_s = [0.0] * len(sequence)
    end_s = [0.0] * len(sequence)
    ready = [v for v in sequence if not left[v]]
    for v in ready:  # grows while it is read
        free_s = end_s[before[v]] if v in before else 0.0
        start_s[v] = max(free_s, arrival_s(inputs[v], processor[v], processor, end_s))
        end_s[v] = start_s[v] + problem.time_s[v][processor[v]]
        for w in waiters[v]:
            left[w] -= 1
            if not left[w]:
                ready.append(w)
    if len(ready) < len(sequence):
        stuck = sorted(set(sequence).difference(ready))
        raise MappingError(
            f"the order on the processors makes operators {stuck} wait for each other in a circle; "
            "list producers before their consumers"
        )
    return tuple(start_s), tuple(end_s)


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
    free_s = [0.0] * problem.processors
    arrived_s = {
        v: arrival_s(flows, processor[v], processor, end_s)
        for v, flows in enumerate(inputs)
        if not left[v]
    }
    order: list[int] = []
    while arrived_s:
        v = min(arrived_s, key=lambda v: (max(arrived_s[v], free_s[processor[v]]), priority[v], v))
        p = processor[v]
        end_s[v] = max(arrived_s.pop(v), free_s[p]) + problem.time_s[v][p]
        free_s[p] = end_s[v]
        order.append(v)
        for w in readers[v]:
            left[w] -= 1
            if not left[w]:
                arrived_s[w] = arrival_s(inputs[w], processor[w], processor, end_s)
    return tuple(order)


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
        elif flow.home is not None:
            latest_s = max(latest_s, flow.transfer_s[flow.home][target])
    return latest_s


def _check(problem: MappingProblem, processor: Sequence[int], sequence: Sequence[int]) -> None:
    if len(processor) != problem.operators:
        raise MappingError(
            f"{problem.operators} operators were given {len(processor)} processors; name one each"
        )
    if sorted(sequence) != list(range(problem.operators)):
        counts = Counter(sequence)
        known = range(problem.operators)
        wrong = sorted(v for v in {*counts, *known} if counts[v] != 1 or v not in known)
        raise MappingError(
            f"an order must list each of the {problem.operators} operators once, and this one "
            f"misses, repeats or invents {wrong}"
        )
    unable = [
        v
        for v, p in enumerate(processor)
        if not 0 <= p < problem.processors or isinf(problem.time_s[v][p])
    ]
    if unable:
        raise MappingError(
            f"operators {unable} were put on processors that do not support them; choose others"
        )
