"""The Pareto front, which figures count as equal, and the least of them.

What is on a front is decided by exact figures, all to be least: an item is beaten by another one
that is at most equal in all of them and less in one. Items equal in all figures do not beat each
other.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import hypot, isclose, log
from typing import TypeVar

T = TypeVar("T")
Objectives = Callable[[T], Sequence[float]]
TIE = 1e-9
"""Share within which figures are equal where the least one is looked for: sums of the same times
differ by that, depending on their order."""
ENERGY_TIE = 1e-3
"""The same of energy and power, which no model of a chip knows to a thousandth: so that a little of
it does not weigh more than ten times the latency."""
TIES: Mapping[str, float] = {"energy": ENERGY_TIE, "power": ENERGY_TIE}
"""By figure, where it is not `TIE`."""


def least(items: Iterable[T], figures: Objectives[T], ties: Sequence[float] = ()) -> T:
    """Return the item of least first figure; of those equal in it, of least second, and so on.

    Parameters
    ----------
    ties
        Shares within which figures are equal; `TIE` for those that it is too short for.
    """
    left = list(items)
    for place in range(len(figures(left[0]))):
        best = min(figures(item)[place] for item in left)
        most = best + abs(best) * (ties[place] if place < len(ties) else TIE)
        left = [item for item in left if figures(item)[place] <= most]
    return min(left, key=lambda item: tuple(figures(item)))


def on_front(figures: Sequence[Sequence[float]]) -> list[bool]:
    """Tell of each item, by its figures, whether no other one beats it."""
    front = {tuple(each) for each in nondominated(figures, lambda each: each)}
    return [tuple(each) in front for each in figures]


def equal(some: Sequence[float], others: Sequence[float]) -> bool:
    """Tell whether figures are equal to within rounding."""
    return all(isclose(a, b, rel_tol=TIE) for a, b in zip(some, others, strict=True))


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
        return _nondominated_of_many(items, objectives)

    def three_objectives(item: T) -> tuple[float, float, float]:
        first, second, *third = objectives(item)
        return (first, second, third[0] if third else 0)

    return staircase(items, three_objectives)


def _nondominated_of_many(items: Sequence[T], objectives: Objectives[T]) -> list[T]:
    """As `nondominated`, for any number of objectives, in O(n²) comparisons."""
    front: list[tuple[Sequence[float], T]] = []
    for values, _, item in sorted((objectives(item), i, item) for i, item in enumerate(items)):
        if not any(all(a <= b for a, b in zip(other, values, strict=True)) for other, _ in front):
            front.append((values, item))
    return [item for _, item in front]


def staircase(items: Iterable[T], objectives: Callable[[T], tuple[float, float, float]]) -> list[T]:
    """As `nondominated`, for three objectives, in O(n log n) comparisons.

    Items are taken by ascending first objective. The others of those taken so far form a
    staircase, and an item is dominated if it lies on or above it (Kung, Luccio, Preparata 1975).
    """
    front: list[T] = []
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
        front.append(item)
    return front


def thin_front(
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
    retained = list(keep)
    for item in front:
        values = objectives(item)
        if not any(
            other is item
            or all(
                a <= b * (1 + resolution) for a, b in zip(objectives(other), values, strict=True)
            )
            for other in retained
        ):
            retained.append(item)
    return retained


def most_balanced(front: Sequence[T], objectives: Objectives[T], smallest: float = 1.0) -> T:
    """Return the item nearest to the ideal point, which has the best of the front in everything.

    Distances are those of logarithms: twice the least counts the same in each objective, however
    far the front extends. Of those equally near, it is the one of least first objective, and so on.

    Parameters
    ----------
    smallest
        What an objective counts as that is below it.
    """
    columns = zip(*(objectives(item) for item in front), strict=True)
    best = [log(max(smallest, min(column))) for column in columns]

    def distance(item: T) -> float:
        near = zip(objectives(item), best, strict=True)
        return hypot(*(log(max(smallest, value)) - ideal for value, ideal in near))

    return least(front, lambda item: (distance(item), *objectives(item)))
