"""Clusters taken as processors: whole, or divided among several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from parapipe.errors import ArgumentError
from parapipe.profiling.topology import Cluster, Core


def split_clusters(clusters: Sequence[Cluster], parts: int) -> tuple[Cluster, ...]:
    """Divide the cores of each cluster evenly among so many processors, or one for each core."""
    divided = []
    for cluster in clusters:
        count = min(parts, len(cluster.cores))
        bounds = [len(cluster.cores) * i // count for i in range(count + 1)]
        for i in range(count):
            name = f"{cluster.name}{'-' if cluster.name[-1].isdigit() else ''}{i}"
            cores = cluster.cores[bounds[i] : bounds[i + 1]]
            divided.append(Cluster(cluster.name if count == 1 else name, cores))
    return tuple(divided)


def chosen_clusters(
    clusters: Sequence[Cluster], chosen: Sequence[Sequence[int]]
) -> tuple[Cluster, ...]:
    """Return processors of the cores that the user lists.

    Raises
    ------
    ArgumentError
        If a core is not there, is listed twice or is not of the cluster of those beside it.
    """
    home: Mapping[int, tuple[Cluster, Core]] = {
        core.cpu: (cluster, core) for cluster in clusters for core in cluster.cores
    }
    flat = [cpu for group in chosen for cpu in group]
    mistakes = [
        f"core {cpu} is not among {', '.join(map(str, sorted(home)))}"
        for cpu in dict.fromkeys(flat)
        if cpu not in home
    ]
    mistakes += [f"core {cpu} is listed twice" for cpu in sorted(set(flat)) if flat.count(cpu) > 1]
    mistakes += [
        f"cores {', '.join(map(str, group))} are of different clusters ({', '.join(names)})"
        for group in chosen
        if len(names := sorted({home[cpu][0].name for cpu in group if cpu in home})) > 1
    ]
    if mistakes or not flat:
        told = "; ".join(mistakes) or "no core is listed"
        raise ArgumentError(f"the processors asked for cannot be: {told}")
    groups = [(home[group[0]][0].name, [home[cpu][1] for cpu in group]) for group in chosen]
    total: dict[str, int] = {}
    for name, _ in groups:
        total[name] = total.get(name, 0) + 1
    seen: dict[str, int] = {}
    named = []
    for name, cores in groups:
        number = seen.setdefault(name, 0)
        seen[name] += 1
        dash = "-" if name[-1].isdigit() else ""
        named.append(Cluster(name if total[name] == 1 else f"{name}{dash}{number}", tuple(cores)))
    return tuple(named)
