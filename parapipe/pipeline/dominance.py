"""The Pareto front, and the configurations that have a name of their own."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from math import hypot, log
from typing import TypeVar

T = TypeVar("T")
Objectives = Callable[[T], Sequence[float]]


def nondominated(items: Iterable[T], objectives: Objectives[T]) -> list[T]:
    """Return the items that no other is at least as good as, all objectives being minimised.

    Of items equal in all objectives the first is kept. The result is sorted by objectives.

    Parameters
    ----------
    objectives
        Two to four of them.
    """
    items = list(items)
    if items and len(objectives(items[0])) > 3:
        return _undominated(items, objectives)

    def three(item: T) -> tuple[float, float, float]:
        first, second, *third = objectives(item)
        return (first, second, third[0] if third else 0)

    return staircase(items, three)


def _undominated(items: Sequence[T], objectives: Objectives[T]) -> list[T]:
    """As `nondominated`, for any number of objectives, in O(n²) comparisons."""
    kept: list[tuple[Sequence[float], T]] = []
    for values, _, item in sorted((objectives(item), i, item) for i, item in enumerate(items)):
        if not any(all(a <= b for a, b in zip(other, values, strict=True)) for other, _ in kept):
            kept.append((values, item))
    return [item for _, item in kept]


def staircase(items: Iterable[T], objectives: Callable[[T], tuple[float, float, float]]) -> list[T]:
    """As `nondominated`, for three objectives, in O(n log n) comparisons.

    Items are taken by ascending first objective. The others of those taken so far form a
    staircase, and an item is dominated if it lies on or above it (Kung, Luccio, Preparata 1975).
    """
    kept: list[T] = []
    seconds: list[float] = []  # ascending; thirds descend strictly
    thirds: list[float] = []
    for item in sorted(items, key=objectives):
        _, second, third = objectives(item)
        at = bisect_right(seconds, second)
        if at and thirds[at - 1] <= third:
            continue
        stop = at
        while stop < len(thirds) and thirds[stop] >= third:
            stop += 1
        start = at - 1 if at and seconds[at - 1] == second else at
        seconds[start:stop] = [second]
        thirds[start:stop] = [third]
        kept.append(item)
    return kept


def thinned(
    front: Sequence[T], objectives: Objectives[T], resolution: float, keep: Iterable[T]
) -> list[T]:
    """Leave out items that another one matches to within `resolution` in every objective.

    Parameters
    ----------
    resolution
        Relative: 0.01 means that for every item left out there is one left that is at most 1 %
        worse in each objective. 0 leaves out nothing of a front.
    keep
        Items that stay in any case.
    """
    kept = list(keep)
    for item in front:
        values = objectives(item)
        if not any(
            other is item
            or all(
                a <= b * (1 + resolution) for a, b in zip(objectives(other), values, strict=True)
            )
            for other in kept
        ):
            kept.append(item)
    return kept


def most_balanced(front: Sequence[T], objectives: Objectives[T]) -> T:
    """Return the item nearest to the ideal point, which has the best of the front in everything.

    Distances are those of logarithms: twice the least counts the same in each objective, however
    far the front extends. An objective below 1 counts as 1.
    """
    columns = zip(*(objectives(item) for item in front), strict=True)
    best = [log(max(1.0, min(column))) for column in columns]

    def distance(item: T) -> float:
        return hypot(*(log(max(1.0, v)) - b for v, b in zip(objectives(item), best, strict=True)))

    return min(front, key=distance)
