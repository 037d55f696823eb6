"""Segments one behind the other: the shortest way through them, by as few solves as possible."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter

from parapipe.mapping.fine.articulation import Segment
from parapipe.mapping.fine.bounds import path_bounds
from parapipe.mapping.fine.budget import Budget
from parapipe.mapping.fine.integer_problem import IntegerProblem
from parapipe.mapping.fine.load_bound import load_bound, worth
from parapipe.mapping.fine.placement import Answer, Placement, best_list_schedule, placement
from parapipe.mapping.units import NEVER

Solve = Callable[[IntegerProblem, int, Budget], Answer]


@dataclass(slots=True)
class _Arc:
    """A segment with its entry and its exit on certain processors."""

    problem: IntegerProblem
    answer: Answer
    tried: bool = False

    @property
    def lower_us(self) -> int:
        return self.answer.bound_us

    @property
    def upper_us(self) -> int:
        return self.answer.placement.makespan_us if self.answer.placement else NEVER


# `layers[i][p][q]`: segment i with its entry on p and its exit on q. A segment without an entry or
# an exit has the key -1 in its place.
_Layers = list[dict[int, dict[int, _Arc]]]
FREE = -1
ROUNDS = 20  # for prices that are within a per cent of the best


def chained(
    problem: IntegerProblem,
    segments: Sequence[Segment],
    limit_us: int,
    solve: Solve,
    budget: Budget,
) -> Answer:
    """Chain the segments exactly: min-plus over the processors of entries and exits.

    A segment is solved for a pair of processors only if it lies on a way through all segments
    that, by what is known, may be the shortest. Each solve is limited to what keeps such a way
    within the limit.

    Parameters
    ----------
    solve
        Solves one segment within a limit and a share of the budget.
    """
    layers = [_arcs(problem, segment) for segment in segments]
    while True:
        lower_us, way = _shortest(layers, attrgetter("lower_us"))
        upper_us, best = _shortest(layers, attrgetter("upper_us"))
        open_arcs = [arc for arc in way if not arc.tried]
        if lower_us > limit_us or lower_us >= upper_us or not open_arcs:
            found = _joined(problem, best) if upper_us < NEVER else None
            return Answer(min(lower_us, upper_us), found)
        arc = max(open_arcs, key=lambda arc: arc.problem.operators)
        least_us = lower_us - arc.lower_us  # what the other segments of the way need
        within_us = min(limit_us, upper_us - 1) - least_us
        share = budget.share(sum(not arc.tried for layer in layers for arc in _all(layer)))
        answer = solve(arc.problem, within_us, share)
        budget.settle(share)
        arc.tried = True
        arc.answer = Answer(max(arc.lower_us, answer.bound_us), answer.placement)


def _arcs(problem: IntegerProblem, segment: Segment) -> dict[int, dict[int, _Arc]]:
    entries = (FREE,) if segment.entry is None else problem.choices[segment.entry]
    exits = (FREE,) if segment.exit is None else problem.choices[segment.exit]
    rounds = ROUNDS if segment.last > segment.first else 0
    prices = worth(segment.problem(problem, None, None), rounds)
    return {
        p: {
            q: _arc(
                segment.problem(problem, None if p == FREE else p, None if q == FREE else q), prices
            )
            for q in exits
        }
        for p in entries
    }


def _arc(part: IntegerProblem, prices: Sequence[int]) -> _Arc:
    bounds = path_bounds(part)
    if part.operators == 1:
        return _Arc(part, Answer(bounds.makespan_us(), best_list_schedule(bounds)), tried=True)
    bound_us = max(bounds.makespan_us(), load_bound(bounds, prices))
    return _Arc(part, Answer(bound_us, None))


def _shortest(layers: _Layers, length: Callable[[_Arc], int]) -> tuple[int, list[_Arc]]:
    ways: dict[int, tuple[int, list[_Arc]]] = {p: (0, []) for p in layers[0]}
    for layer in layers:
        exits = next(iter(layer.values()))
        ways = {
            q: min(
                ((ways[p][0] + length(row[q]), [*ways[p][1], row[q]]) for p, row in layer.items()),
                key=lambda way: way[0],
            )
            for q in exits
        }
    return min(ways.values(), key=lambda way: way[0])


def _all(layer: dict[int, dict[int, _Arc]]) -> list[_Arc]:
    return [arc for row in layer.values() for arc in row.values()]


def _joined(problem: IntegerProblem, way: Sequence[_Arc]) -> Placement:
    """Put the placements of segments one behind the other."""
    processor: list[int] = []
    start_us: list[int] = []
    begin_us = 0
    for arc in way:
        found = arc.answer.placement
        assert found is not None
        processor += found.processor
        start_us += [begin_us + s for s in found.start_us]
        begin_us += found.makespan_us
    return placement(problem, processor, start_us)
