"""What processors of this machine do to each other, as a detected platform says it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from parapipe.cost.co_run_fit import SlowdownFit, fit_slowdowns
from parapipe.platform.from_part import four_digits
from parapipe.platform.platform import Platform
from parapipe.profiling.co_run_kernels import KERNEL_BYTES
from parapipe.profiling.co_runs import measure_kernels
from parapipe.profiling.topology import Cluster

LARGER = 4  # times as large as the last cache is what the memory-bound kernel moves
MOST_BYTES = 1 << 29


@dataclass(frozen=True, slots=True)
class CoRunFigures:
    """The table of slowdowns, and what each processor draws.

    Parameters
    ----------
    draws_bytes_per_s
        Of the memory-bound kernel alone, by processor.
    cache_bytes
        What the caches of a CPU processor hold, its share of those that others use too.
    """

    slowdowns: tuple[SlowdownFit, ...]
    draws_bytes_per_s: Mapping[str, float]
    cache_bytes: Mapping[str, float]

    def add_draws(self, processors: Sequence[dict[str, Any]]) -> None:
        """Add to the sections of processors what they draw."""
        for section in processors:
            name = section["name"]
            if name in self.draws_bytes_per_s:
                draw = {"draw_bytes_per_s": four_digits(self.draws_bytes_per_s[name])}
                cache = {"cache_bytes": self.cache_bytes[name]} if name in self.cache_bytes else {}
                section["memory"] = {**section["memory"], **draw, **cache}

    def sections(self) -> dict[str, Any]:
        """Return the section of the law."""
        rows = [each.section() for each in self.slowdowns]
        return {"co_run": {"slowdowns": rows, "source": "co-runs"}}


def co_run_figures(
    platform: Platform, clusters: Sequence[Cluster]
) -> tuple[CoRunFigures | None, tuple[str, ...]]:
    """Measure a platform's processors beside each other; None where there is only one.

    Returns
    -------
    tuple
        The figures, and a sentence for each processor that does not run the kernels.
    """
    if len(platform.processors) < 2:
        return None, ()
    caches = cache_shares(clusters)
    last = max((c.size_bytes for each in clusters for c in each.cores[0].caches), default=0)
    size_bytes = min(max(KERNEL_BYTES, LARGER * last), MOST_BYTES)
    samples, notes = measure_kernels(platform.processors, size_bytes)
    if not samples:
        return None, notes
    draws = {
        each.processor: each.moved_bytes / each.alone_s
        for each in samples
        if each.operator_class == "memory"
    }
    return CoRunFigures(fit_slowdowns(samples, platform), draws, caches), notes


def cache_shares(clusters: Sequence[Cluster]) -> dict[str, float]:
    """Return the bytes of the largest level of caches of each CPU processor, its share of them."""
    every = [frozenset(cluster.cpus) for cluster in clusters]
    shares: dict[str, float] = {}
    for cluster, own in zip(clusters, every, strict=True):
        levels: dict[int, dict[frozenset[int], float]] = {}
        for core in cluster.cores:
            for cache in core.caches:
                users = sum(not cache.cpus.isdisjoint(each) for each in every) or 1
                levels.setdefault(cache.level, {})[cache.cpus & own] = cache.size_bytes / users
        sizes = [sum(each.values()) for each in levels.values()]
        if sizes:
            shares[cluster.name] = max(sizes)
    return shares
