"""The mapper `streams`: clusters of operators on streams in turn, as PPD places them.

Streams are processors that take the same time for every operator. Where a problem has processors
of several kinds, those of one kind are used, and operators that they do not support go where they
are fastest. The clusters are those of Algorithm 1 for several M, their streams those of Algorithm
2; the shortest schedule is taken. A stream runs its clusters in the order in which Algorithm 1
makes them. The paper's order, whichever cluster is ready first, is known at run time only.

It takes milliseconds and has no random choice, so time limit and seed are of no effect. The
certificate speaks of the makespan, the bound is `simple_bound_s`.
"""

from __future__ import annotations

from math import inf
from time import perf_counter

from parapipe.mapping.certify import certified
from parapipe.mapping.paths import readers_of, simple_bound_s
from parapipe.mapping.problem import MappingProblem
from parapipe.mapping.replay import replay
from parapipe.mapping.schedule import Schedule
from parapipe.mapping.streams.clusters import cluster_readers, clusters, streams_of

SIZES = (1, 2, 3, 5, 10)
"""Values of M that are tried."""

Placed = tuple[tuple[int, ...], tuple[int, ...]]


def map(  # the protocol's name
    problem: MappingProblem, *, time_limit_s: float, seed: int
) -> Schedule:
    """Place clusters on streams in turn; the schedule is verified."""
    began_s = perf_counter()
    tried = [
        (replay(problem, processor, order), processor)
        for kind in _kinds(problem)
        for processor, order in dict.fromkeys(_placed(problem, kind, most) for most in SIZES)
    ]
    best, processor = min(tried, key=lambda each: each[0].makespan_s)
    return certified(
        problem,
        processor,
        best,
        bound_s=simple_bound_s(problem),
        solver="streams",
        seed=seed,
        began_s=began_s,
    )


def _kinds(problem: MappingProblem) -> list[list[int]]:
    """Return the processors by kind; those that support nothing are none."""
    found: dict[tuple[float, ...], list[int]] = {}
    for p in range(problem.processors):
        found.setdefault(tuple(row[p] for row in problem.time_s), []).append(p)
    return [kind for column, kind in found.items() if min(column) < inf]


def _placed(problem: MappingProblem, kind: list[int], most: int) -> Placed:
    """Return each operator's processor, and the order of the clusters' operators."""
    own_s = [row[kind[0]] for row in problem.time_s]
    readers = [tuple(each) for each in readers_of(problem)]
    time_s = [t if t < inf else min(row) for t, row in zip(own_s, problem.time_s, strict=True)]
    found = clusters(time_s, readers, most)
    streams = streams_of(cluster_readers(found, readers), len(kind))
    stream = {v: s for cluster, s in zip(found, streams, strict=True) for v in cluster}
    processor = tuple(
        kind[stream[v]] if own_s[v] < inf else row.index(time_s[v])
        for v, row in enumerate(problem.time_s)
    )
    return processor, tuple(v for cluster in found for v in cluster)
