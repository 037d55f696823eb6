"""Operators that split a problem: all others come before or behind them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from parapipe.mapping.fine.bounds import Bounds
from parapipe.mapping.fine.implied import ancestors_of
from parapipe.mapping.fine.integer_problem import IntegerProblem


@dataclass(frozen=True, slots=True)
class Segment:
    """Operators between two articulations, with the second one, which all others precede.

    Parameters
    ----------
    first, last
        The operators are those from first to last, both inclusive.
    entry, exit
        The articulations before and at its end; None at the ends of the problem.
    """

    first: int
    last: int
    entry: int | None
    exit: int | None

    def problem(
        self, whole: IntegerProblem, entry_processor: int | None, exit_processor: int | None
    ) -> IntegerProblem:
        """Return the segment alone, from the end of its entry on, with both ends placed."""
        operators = range(self.first, self.last + 1)
        release_us = None
        if self.entry is not None and entry_processor is not None:
            idle = (0,) * whole.processors
            arrivals: Mapping[int, tuple[int, ...]] = {
                v: delay[entry_processor] for v, delay in whole.readers[self.entry]
            }
            release_us = [arrivals.get(v, idle) for v in operators]
        alone = whole.part(operators, release_us)
        if exit_processor is None:
            return alone
        return alone.pinned({self.last - self.first: exit_processor})


def segments_of(bounds: Bounds) -> tuple[Segment, ...]:
    """Split the problem at its articulations; a single segment if there is none.

    An articulation is an operator that every other precedes or follows, over which no edge leads
    from one side to the other, and behind which no operator still waits for tensors from outside.
    What is behind it then starts with all processors free when it ends.
    """
    problem = bounds.problem
    cuts = [v for v in _comparable(problem) if _splits(bounds, v)]
    if not cuts or cuts[-1] != problem.operators - 1:
        cuts.append(problem.operators - 1)
        ends: list[int | None] = [*cuts[:-1], None]
    else:
        ends = [*cuts]
    entries = [None, *cuts[:-1]]
    return tuple(
        Segment(0 if entry is None else entry + 1, last, entry, end)
        for entry, last, end in zip(entries, cuts, ends, strict=True)
    )


def _comparable(problem: IntegerProblem) -> list[int]:
    """Operators that all others precede or follow."""
    before = ancestors_of(problem)
    behind = [0] * problem.operators
    for u in reversed(range(problem.operators)):
        for v, _ in problem.readers[u]:
            behind[u] |= behind[v] | 1 << v
    others = problem.operators - 1
    return [
        v
        for v in range(problem.operators)
        if before[v].bit_count() + behind[v].bit_count() == others
    ]


def _splits(bounds: Bounds, v: int) -> bool:
    problem = bounds.problem
    later = range(v + 1, problem.operators)
    if any(u < v for w in later for u, _ in problem.edges[w]):
        return False
    end_us = min(bounds.head_us[v][p] + problem.time_us[v][p] for p in problem.choices[v])
    return all(problem.release_us[w][q] <= end_us for w in later for q in problem.choices[w])
