"""How often the shortest pattern is put into one, so that its frames can go different ways.

In the shortest pattern, a model of one frame has one assignment for all its frames. In a pattern
that is k times as long it has k: two frames of one operator take turns on two processors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from parapipe.mapping.interleaved.loads import LeastPeriod, bound_s
from parapipe.mapping.interleaved.side_by_side import joined_problem
from parapipe.pipeline.pattern import MOST_FRAMES
from parapipe.pipeline.several import Patterns, Reached

WORTH = 0.05  # share by which rates must be able to grow more for a pattern to be longer
MOST_TIMES = 4  # as long as the shortest, or as many times as there are processors
MOST_OPERATORS = 1500  # of a pattern that is longer than the shortest


@dataclass(frozen=True, slots=True)
class Length:
    """How long a pattern is, and what it takes at least.

    Parameters
    ----------
    times
        As long as the shortest.
    least
        Of all its frames.
    """

    times: int
    least: LeastPeriod

    @property
    def each_s(self) -> float:
        """Least seconds for the frames of the shortest pattern."""
        return self.least.period_s / self.times


def best_length(patterns: Patterns, reached: Reached) -> Length:
    """Return the shortest pattern that keeps the rates and is close to what any can reach.

    That is to within `WORTH` of the bound for patterns of any length, or, if none is that close, of
    the best one that may be tried. If none keeps the rates, it is the one that is nearest to that.

    Parameters
    ----------
    patterns
        The shortest.
    reached
        What it takes at least.
    """
    lengths = [Length(1, reached.shared)]
    close_s = bound_s(patterns.problem) * (1 + WORTH)
    enough_s = patterns.period_s if reached.bound_s <= patterns.period_s else inf
    frames, operators = len(patterns.frames.model), patterns.problem.operators
    most = min(
        max(MOST_TIMES, patterns.problem.processors),
        MOST_FRAMES // frames,
        MOST_OPERATORS // operators,
    )
    for times in range(2, most + 1):
        if min(each.each_s for each in lengths) <= min(close_s, enough_s) or patterns.over():
            break
        lengths.append(Length(times, _least(patterns, lengths, times)))
    best_s = min(each.each_s for each in lengths)
    if best_s > close_s:
        close_s = best_s * (1 + WORTH)
    longest_s = max(best_s, min(close_s, enough_s))
    return next(each for each in lengths if each.each_s <= longest_s)


def _least(patterns: Patterns, lengths: Sequence[Length], times: int) -> LeastPeriod:
    """Return the least period of a longer pattern, never above shorter ones in a row."""
    rivals, counts = patterns.rivals, patterns.frames.counts
    problem = joined_problem(rivals.problems, [count * times for count in counts])
    known = [
        _in_a_row(patterns, [one.least.processor, other.least.processor])
        for one in lengths
        for other in lengths
        if one.times <= other.times and one.times + other.times == times
    ]
    return patterns.least(problem, known)


def _in_a_row(patterns: Patterns, places: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """Return assignments of patterns as that of one with all their frames."""
    found: list[int] = []
    begins = [0] * len(places)
    shortest = patterns.problem.operators
    for size, count in zip(patterns.frames.operators, patterns.frames.counts, strict=True):
        for number, place in enumerate(places):
            end = begins[number] + size * count * (len(place) // shortest)
            found += place[begins[number] : end]
            begins[number] = end
    return tuple(found)
