"""Buckets: shapes that differ in one dimension, and which requests each of them serves."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass

from parapipe.errors import ArgumentError


@dataclass(frozen=True, slots=True)
class Bucket:
    """A shape, the requests that it serves, and how many of a mix it does.

    Parameters
    ----------
    from_size, to_size
        The least and the largest request that it serves; the largest is its own size.
    requests
        How many requests of the mix.
    padding
        Share of its size, over these requests, that is padding; None if there are none.
    """

    from_size: int
    to_size: int
    requests: int
    padding: float | None


def buckets_of(sizes: Mapping[str, int], requests: Mapping[int, int]) -> dict[str, Bucket]:
    """Return the buckets by name: a request goes to the smallest one that holds it.

    Parameters
    ----------
    sizes
        Of each bucket, all different.
    requests
        How many of the mix have each size.

    Raises
    ------
    ArgumentError
        A request is larger than any bucket.
    """
    names = sorted(sizes, key=lambda name: sizes[name])
    edges = [sizes[name] for name in names]
    served: dict[str, dict[int, int]] = {name: {} for name in names}
    for size, count in requests.items():
        if size > edges[-1]:
            raise ArgumentError(
                f"map: no shape holds a request of {size}: the largest is of {edges[-1]}; give a "
                "larger one, or leave that request out of the mix"
            )
        served[names[bisect_left(edges, size)]][size] = count
    buckets = {}
    for at, name in enumerate(names):
        own, counts = edges[at], served[name]  # a cache may have the size 0
        total = sum(counts.values())
        used = sum(size * count for size, count in counts.items())
        buckets[name] = Bucket(
            from_size=edges[at - 1] + 1 if at else min(1, own),
            to_size=own,
            requests=total,
            padding=(1 - used / (own * total) if own else 0.0) if total else None,
        )
    return {name: buckets[name] for name in sizes}
