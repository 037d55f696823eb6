"""The clusters of a generated program: what each stream runs at one go, and what it waits for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from graphlib import TopologicalSorter
from heapq import heappop, heappush

from parapipe.plan.mapped import mapping_view
from parapipe.plan.schema import Plan
from parapipe.plan.segments import segments
from parapipe.targets.native.library_plan import Operator


@dataclass(frozen=True, slots=True)
class Cluster:
    """A segment of a plan, cut promptly, as operators of the library.

    Parameters
    ----------
    stream
        The processor that runs it.
    lag
        Rounds behind the frame's first operators.
    operators
        In order; never empty.
    time_s
        Seconds from its first start to its last end in the plan.
    waits
        Numbers of those clusters of other streams that make what it reads.
    """

    stream: str
    lag: int
    operators: tuple[Operator, ...]
    time_s: float
    waits: tuple[int, ...] = ()


def clusters_of(
    plan: Plan, operators: Iterable[Operator]
) -> tuple[tuple[Cluster, ...], dict[str, list[int]]]:
    """Return all clusters so that none reads what a later one makes, and the order of each stream.

    Parameters
    ----------
    operators
        Those of the library, each with the operator of the plan that it stands for.
    """
    steps: dict[str, list[Operator]] = {}
    for step in operators:
        steps.setdefault(step.source or step.id, []).append(step)
    at = mapping_view(plan).placements
    found: list[Cluster] = []
    starts: list[tuple[int, float]] = []
    orders: dict[str, list[int]] = {}
    for name, own in segments(plan, prompt=True).items():
        for segment in own:
            run = tuple(step for v in segment.operators for step in steps.get(v, ()))
            if run:
                first, last = at[segment.operators[0]], at[segment.operators[-1]]
                orders.setdefault(name, []).append(len(found))
                found.append(Cluster(name, segment.lag, run, last.end_s - first.start_s))
                starts.append((segment.lag, first.start_s))
    makers = {step.outputs[0]: k for k, each in enumerate(found) for step in each.operators}
    before = {k: _read_from(each, k, makers) for k, each in enumerate(found)}
    order = _topological_order(before, starts)
    number = {k: place for place, k in enumerate(order)}
    clusters = tuple(
        replace(
            found[k],
            waits=tuple(sorted(number[j] for j in before[k] if found[j].stream != found[k].stream)),
        )
        for k in order
    )
    return clusters, {name: [number[k] for k in own] for name, own in orders.items()}


def _read_from(cluster: Cluster, own: int, makers: Mapping[str, int]) -> set[int]:
    read = {name for step in cluster.operators for name in step.inputs}
    return {makers[name] for name in read if name in makers} - {own}


def _topological_order(
    before: Mapping[int, set[int]], starts: Sequence[tuple[int, float]]
) -> list[int]:
    """Of what may come next, the one that starts first in the plan."""
    sorter = TopologicalSorter(before)
    sorter.prepare()
    order: list[int] = []
    ready: list[tuple[tuple[int, float], int]] = []
    while sorter.is_active():
        for k in sorter.get_ready():
            heappush(ready, (starts[k], k))
        _, chosen = heappop(ready)
        order.append(chosen)
        sorter.done(chosen)
    return order
