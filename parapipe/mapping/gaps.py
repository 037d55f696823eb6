"""Where a processor is free between what it runs already."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Time = TypeVar("Time", int, float)


@dataclass(slots=True)
class Gaps(Generic[Time]):
    """Gaps between the operators that a processor runs.

    Operators without time between them are one block: a search passes all of them in one step.
    """

    _starts: list[Time] = field(default_factory=list)
    _ends: list[Time] = field(default_factory=list)
    _block_starts: list[Time] = field(default_factory=list)
    _block_ends: list[Time] = field(default_factory=list)

    def first(self, begin: Time, lasts: Time) -> Time:
        """Return the start of what is put into the first gap from `begin` on that is long enough.

        It comes behind all that has ended by then, so that no operator gets in front of one that
        it waits for, not even of one that takes no time.
        """
        # what takes no time fits between the operators of a block
        starts, ends = (
            (self._block_starts, self._block_ends) if lasts else (self._starts, self._ends)
        )
        position = bisect_right(ends, begin)
        while position < len(ends) and begin + lasts > starts[position]:
            begin = max(begin, ends[position])
            position += 1
        return begin

    def fill(self, start: Time, end: Time) -> None:
        """Put an operator where `first` has found room for it."""
        position = bisect_right(self._ends, start)
        self._starts.insert(position, start)
        self._ends.insert(position, end)
        starts, ends = self._block_starts, self._block_ends
        position = bisect_right(ends, start)
        touches_before = position > 0 and ends[position - 1] == start
        touches_behind = position < len(starts) and starts[position] == end
        if touches_before and touches_behind:
            del ends[position - 1], starts[position]
        elif touches_before:
            ends[position - 1] = end
        elif touches_behind:
            starts[position] = start
        elif position == len(starts) or end < starts[position]:
            starts.insert(position, start)
            ends.insert(position, end)
