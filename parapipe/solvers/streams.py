"""The mapper `streams`: balanced clusters of operators on streams, as PPD places them.

Xu et al. (2025), ACM Transactions on Design Automation of Electronic Systems 31(2). A processor
that runs several operators at once offers them as *streams*. Launching every operator by itself
costs too much, so operators are put into clusters of about equal time, and each is launched as a
whole on a stream that is chosen beforehand.

Streams are processors that take the same time for every operator. Where a problem has processors
of several kinds, those of one kind are used, and operators that they do not support go where they
are fastest. The clusters are those of Algorithm 1 for several M, their streams those of Algorithm
2; the shortest schedule is taken. A stream runs its clusters in the order in which Algorithm 1
makes them. The paper's order, whichever cluster is ready first, is known at run time only.

It takes milliseconds and has no random choice, so time limit and seed are of no effect. The
certificate speaks of the makespan, the bound is `simple_bound_s`.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Sequence
from graphlib import TopologicalSorter
from heapq import heapify, heappop, heappush
from math import fsum, inf
from time import perf_counter

from parapipe.solvers.paths import readers_of, simple_bound_s
from parapipe.solvers.problem import MappingProblem
from parapipe.solvers.replay import certified, replay
from parapipe.solvers.schedule import Schedule

Readers = Sequence[Collection[int]]
MOST_OPERATORS = 1
"""M. The paper's experiments have 10: with ten fused operators, a cluster is as large as a block of
most networks, and clusters wait for each other in a row."""


def clusters(
    time_s: Sequence[float], readers: Readers, most: float = MOST_OPERATORS
) -> tuple[tuple[int, ...], ...]:
    """Put operators into clusters of about equal time: Algorithm 1.

    A cluster takes operators until its time reaches the threshold, M · Σw / |V|. Its first one, the
    master, is the ready operator that is least deep in the network, of equals the one with the
    fewest producers. Then it takes, of those that are ready, the one with the most edges from the
    cluster, so that the fewest are left between clusters; of equals the one that would be master
    first. An operator is ready when all its producers are in clusters. So a cluster reads from
    itself and earlier ones only, and exceeds the threshold by its last operator at most.

    Parameters
    ----------
    time_s
        Seconds of each operator, w, or another unit: times are compared with their mean only.
    readers
        Operators that read from each, without circles.
    most
        M: about how many operators of mean time a cluster may have.

    Returns
    -------
    tuple
        Clusters in a topological order; in each, its operators in one.
    """
    threshold_s = most * fsum(time_s) / max(1, len(time_s))
    ready = _Ready(readers)
    result: list[tuple[int, ...]] = []
    while ready:
        master = ready.first()
        cluster, cluster_s = [master], time_s[master]
        edges = Counter(ready.take(master))
        while cluster_s < threshold_s and ready:
            v = ready.nearest(edges)
            cluster.append(v)
            cluster_s += time_s[v]
            edges.update(ready.take(v))
        result.append(tuple(cluster))
    return tuple(result)


class _Ready:
    """Operators all of whose producers are in clusters."""

    def __init__(self, readers: Readers) -> None:
        self._readers = [frozenset(each) for each in readers]
        producers = Counter(v for each in self._readers for v in each)
        depths = depths_of(self._readers)
        self._place = [(depths[v], producers[v], v) for v in range(len(readers))]
        self._waits = [producers[v] for v in range(len(readers))]
        self._members = {v for v, count in enumerate(self._waits) if not count}
        self._queue = [self._place[v] for v in self._members]
        heapify(self._queue)

    def __bool__(self) -> bool:
        return bool(self._members)

    def first(self) -> int:
        """Return the one that is least deep, of equals the one with the fewest producers."""
        while self._queue[0][2] not in self._members:
            heappop(self._queue)
        return self._queue[0][2]

    def nearest(self, edges: Counter[int]) -> int:
        """Return the one with the most edges from a cluster."""
        boundary = self._members.intersection(edges)
        return min(boundary, key=lambda v: (-edges[v], self._place[v]), default=self.first())

    def take(self, v: int) -> Collection[int]:
        """Put one into a cluster; return what reads from it."""
        self._members.remove(v)
        for reader in self._readers[v]:
            self._waits[reader] -= 1
            if not self._waits[reader]:
                self._members.add(reader)
                heappush(self._queue, self._place[reader])
        return self._readers[v]


def depths_of(readers: Readers) -> tuple[int, ...]:
    """Return how many edges the longest path to each operator has."""
    producers: dict[int, list[int]] = {v: [] for v in range(len(readers))}
    for v, each in enumerate(readers):
        for reader in each:
            producers[reader].append(v)
    depths: dict[int, int] = {}
    for v in TopologicalSorter(producers).static_order():
        depths[v] = max((depths[u] + 1 for u in producers[v]), default=0)
    return tuple(depths[v] for v in range(len(readers)))


def cluster_readers(parts: Sequence[Sequence[int]], readers: Readers) -> tuple[frozenset[int], ...]:
    """Return the clusters that read from each cluster."""
    of = {v: c for c, cluster in enumerate(parts) for v in cluster}
    return tuple(
        frozenset(of[reader] for v in cluster for reader in readers[v]) - {c}
        for c, cluster in enumerate(parts)
    )


def assign_streams(readers: Readers, streams: int) -> tuple[int, ...]:
    """Give each cluster a stream: Algorithm 2.

    Breadth-first from the clusters that read from no other one; each gets the next stream,
    round-robin, when it is met for the first time.

    Parameters
    ----------
    readers
        Clusters that read from each.
    streams
        How many there are.
    """
    read = {reader for each in readers for reader in each}
    met = dict.fromkeys(c for c in range(len(readers)) if c not in read)
    queue = deque(met)
    while queue:
        for reader in sorted(readers[queue.popleft()]):
            if reader not in met:
                met[reader] = None
                queue.append(reader)
    stream = {c: number % streams for number, c in enumerate(met)}
    return tuple(stream[c] for c in range(len(readers)))


SIZES = (1, 2, 3, 5, 10)
"""Values of M that are tried."""

Placed = tuple[tuple[int, ...], tuple[int, ...]]


def map(  # the protocol's name
    problem: MappingProblem, *, time_limit_s: float, seed: int
) -> Schedule:
    """Place clusters on streams, round-robin; the schedule is verified."""
    began_s = perf_counter()
    results = [
        (replay(problem, processor, order), processor)
        for kind in _kinds(problem)
        for processor, order in dict.fromkeys(
            _place_clusters(problem, kind, most) for most in SIZES
        )
    ]
    best, processor = min(results, key=lambda each: each[0].makespan_s)
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
    kinds: dict[tuple[float, ...], list[int]] = {}
    for p in range(problem.processors):
        kinds.setdefault(tuple(row[p] for row in problem.time_s), []).append(p)
    return [kind for column, kind in kinds.items() if min(column) < inf]


def _place_clusters(problem: MappingProblem, kind: list[int], most: int) -> Placed:
    """Return each operator's processor, and the order of the clusters' operators."""
    kind_s = [row[kind[0]] for row in problem.time_s]
    readers = [tuple(each) for each in readers_of(problem)]
    time_s = [t if t < inf else min(row) for t, row in zip(kind_s, problem.time_s, strict=True)]
    groups = clusters(time_s, readers, most)
    streams = assign_streams(cluster_readers(groups, readers), len(kind))
    stream = {v: s for cluster, s in zip(groups, streams, strict=True) for v in cluster}
    processor = tuple(
        kind[stream[v]] if kind_s[v] < inf else row.index(time_s[v])
        for v, row in enumerate(problem.time_s)
    )
    return processor, tuple(v for cluster in groups for v in cluster)
