"""Clusters taken as processors: whole, or divided among several."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from parapipe.errors import ArgumentError
from parapipe.profiling.topology import Cluster, named


def split_clusters(clusters: Sequence[Cluster], parts: int) -> tuple[Cluster, ...]:
    """Divide the cores of each cluster evenly among so many processors, or one for each core."""
    names, groups = [], []
    for cluster in clusters:
        count = min(parts, len(cluster.cores))
        bounds = [len(cluster.cores) * i // count for i in range(count + 1)]
        names += [cluster.name] * count
        groups += [cluster.cores[first:last] for first, last in pairwise(bounds)]
    return named(names, groups)


def chosen_clusters(
    clusters: Sequence[Cluster], chosen: Sequence[Sequence[int]]
) -> tuple[Cluster, ...]:
    """Return processors of the cores that the user lists.

    Raises
    ------
    ArgumentError
        If a core is not there, is listed twice or is not of the cluster of those beside it.
    """
    core_of = {core.cpu: core for cluster in clusters for core in cluster.cores}
    cluster_of = {cpu: cluster for cluster in clusters for cpu in cluster.cpus}
    flat = [cpu for group in chosen for cpu in group]
    mistakes = [
        f"core {cpu} is not among {', '.join(map(str, sorted(core_of)))}"
        for cpu in dict.fromkeys(flat)
        if cpu not in core_of
    ]
    mistakes += [f"core {cpu} is listed twice" for cpu in sorted(set(flat)) if flat.count(cpu) > 1]
    mistakes += [
        f"cores {', '.join(map(str, group))} are of different clusters ({', '.join(names)})"
        for group in chosen
        if len(names := sorted({cluster_of[cpu].name for cpu in group if cpu in core_of})) > 1
    ]
    if mistakes or not flat:
        told = "; ".join(mistakes) or "no core is listed"
        raise ArgumentError(f"the processors asked for cannot be: {told}")
    names = [cluster_of[group[0]].name for group in chosen]
    return named(names, [[core_of[cpu] for cpu in group] for group in chosen])
