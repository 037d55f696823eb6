"""Where stages may begin and end if the loops of states are to be short.

The search over stages knows nothing of states: of stages with equal figures it may keep those that
wait longer for them. So it is run again where loops are cut at fewer places.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from parapipe.graph.partition import Partition

FEW = 5  # boundaries inside of a network of which all choices are searched


def cuts_for_loops(
    partition: Partition, loops: Sequence[tuple[int, int]]
) -> Iterator[tuple[int, ...]]:
    """Yield boundaries, ascending, for searches over stages beside that at all places.

    Where there are few, every choice of them; else those alone at which no state is read and still
    to be written. Single stages are searched in any case.

    Parameters
    ----------
    loops
        Operators that read a state, and those that write it; if none, nothing is yielded.
    """
    if not loops:
        return
    closed, done, cuts = list[int](), set[int](), partition.cuts
    for number, boundary in enumerate(cuts.line):
        if all(reader not in done or writer in done for reader, writer in loops):
            closed.append(boundary)
        done.update(*cuts.stretches[number : number + 1])
    first, *inner, last = cuts.line
    if len(inner) <= FEW:
        for count in range(1, len(inner)):
            for some in combinations(inner, count):
                yield (first, *some, last)
    elif 2 < len(closed) < len(cuts.line):
        yield tuple(closed)
