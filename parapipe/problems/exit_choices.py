"""On which processors the exits of a unit may run: where what is live behind it is made."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, product
from math import comb, prod


def choices_of(support: Sequence[tuple[int, ...]], most: float) -> list[tuple[int, ...]]:
    """Return choices of one processor for each exit: all of them, or few if there are too many.

    Exits are in their order in the network, and stages are runs of it. So where there are more than
    `most` choices, those are left out in which exits of equal support change processors most often
    from one to the next. Those without a change always stay.

    Parameters
    ----------
    support
        Of each exit: the processors that can run it.
    """
    if prod(map(len, support)) <= most:
        return [*product(*support)]
    groups = {able: support.count(able) for able in support}
    changes = 0
    while prod(_count_sequences(n, len(able), changes + 1) for able, n in groups.items()) <= most:
        changes += 1
    each = [_list_sequences(able, n, changes) for able, n in groups.items()]
    numbers = {able: number for number, able in enumerate(groups)}
    choices = []
    for chosen in product(*each):
        left = [iter(some) for some in chosen]
        choices.append(tuple(next(left[numbers[able]]) for able in support))
    return sorted(choices)


def _count_sequences(length: int, processors: int, most: int) -> int:
    """Return how many sequences of processors there are with at most so many changes."""
    return sum(
        comb(length - 1, changes) * processors * (processors - 1) ** changes
        for changes in range(most + 1)
    )


def _list_sequences(processors: Sequence[int], length: int, most: int) -> list[tuple[int, ...]]:
    """Return the sequences of processors with at most so many changes."""
    sequences: list[tuple[tuple[int, ...], int]] = [((p,), 0) for p in processors]
    for _ in range(length - 1):
        sequences = [
            ((*some, p), changes + (p != some[-1]))
            for some, changes in sequences
            for p in processors
            if changes + (p != some[-1]) <= most
        ]
    return [some for some, _ in sequences]


def count_changes(processors: Sequence[int]) -> int:
    """Return how often the processor changes from one to the next."""
    return sum(p != q for p, q in pairwise(processors))
