"""The best choice of ways, by dynamic programming over the order of operators.

A label says, between two operators, when each processor is free, when each piece of each tensor
that is still to be read is ready, and what the energy so far is worth. Of labels with tensors in
the same pieces on the same processors, those that are nowhere less than another one are dropped:
this loses nothing. Only if there are more than `width` labels at one place, the least promising
ones are dropped as well, and the result is not proven best. Source of the idea: chains of CoDL and
uLayer, there with greedy rules.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from operator import add

import numpy as np

from parapipe.split_search.problem import Held, SplitProblem, Way, makespan_s

WIDTH = 2000

_Held = tuple[tuple[int, Held], ...]
"""Live tensors, ascending, each with the processors that hold regions of it."""


@dataclass(frozen=True, slots=True)
class ChosenWays:
    """Ways that together run all operators, in order.

    Parameters
    ----------
    makespan_s
        Seconds until the last piece has ended.
    energy_j
        Joules of all pieces.
    cost_s
        What was to be least: seconds, and what the energy is worth.
    bound_s
        No choice of the ways costs less.
    proven
        Whether none costs less than `cost_s`, in the order of operators as it is.
    """

    ways: tuple[Way, ...]
    makespan_s: float
    energy_j: float
    cost_s: float
    bound_s: float
    proven: bool


@dataclass(frozen=True, slots=True)
class _Label:
    """What was chosen up to some operator.

    Parameters
    ----------
    times_s
        When each processor is free, and then when each held region is ready, in their order.
    energy_s
        What the energy so far is worth.
    least_s, promise_s
        What it costs in all: no way on costs less, and what may be hoped for.
    """

    times_s: tuple[float, ...]
    energy_s: float
    least_s: float
    promise_s: float
    way: Way | None
    before: _Label | None


def shortest(
    problem: SplitProblem,
    *,
    known_s: float = inf,
    width: int = WIDTH,
    stop: Callable[[], bool] = lambda: False,
) -> ChosenWays | None:
    """Return the choice of ways that costs least; None if none costs less than what is known.

    Parameters
    ----------
    known_s
        Cost of a choice that need not be found again.
    width
        Most labels at one place.
    stop
        Asked at each operator whether to give up.
    """
    return _Search(problem, known_s, width, stop).run()


class _Search:
    def __init__(
        self, problem: SplitProblem, known_s: float, width: int, stop: Callable[[], bool]
    ) -> None:
        self.problem, self.known_s, self.width, self.stop = problem, known_s, width, stop
        self.dropped_s = inf  # least that a label could have led to that did not fit in
        self.moves: dict[tuple[_Held, int], _Move] = {}
        count = problem.operators + 1
        self.places: list[dict[_Held, list[_Label]]] = [{} for _ in range(count)]

    def run(self) -> ChosenWays | None:
        problem = self.problem
        start = _Label((0.0,) * problem.processors, 0.0, problem.rest_s[0], 0.0, None, None)
        self.places[0][()] = [start]
        for v in range(problem.operators):
            if self.stop():
                return None
            place, self.places[v] = self.places[v], {}
            for held, labels in self._kept(place):
                for way in problem.ways[v]:
                    self._extend(held, labels, way)
        last = [label for labels in self.places[-1].values() for label in labels]
        if not last:
            return None
        best = min(last, key=lambda e: max(e.times_s[: problem.processors]) + e.energy_s)
        ways: list[Way] = []
        at: _Label | None = best
        while at is not None and at.way is not None:
            ways.append(at.way)
            at = at.before
        ways.reverse()
        taken_s, energy_j = makespan_s(problem, ways), sum(way.energy_j for way in ways)
        cost_s = taken_s + problem.s_per_j * energy_j
        bound_s = min(self.dropped_s, cost_s, self.known_s)
        return ChosenWays(tuple(ways), taken_s, energy_j, cost_s, bound_s, proven=bound_s >= cost_s)

    def _kept(self, place: dict[_Held, list[_Label]]) -> Sequence[tuple[_Held, list[_Label]]]:
        """Return the labels that no other one beats, the most promising ones if they are many."""
        kept = [(held, label) for held in place for label in _undominated(place[held])]
        kept.sort(key=lambda each: (each[1].promise_s, each[1].least_s))
        for _, label in kept[self.width :]:
            self.dropped_s = min(self.dropped_s, label.least_s)
        found: dict[_Held, list[_Label]] = {}
        for held, label in kept[: self.width]:
            found.setdefault(held, []).append(label)
        return list(found.items())

    def _extend(self, held: _Held, labels: Sequence[_Label], way: Way) -> None:
        move = self._move(held, way)
        place = self.places[way.end].setdefault(move.held, [])
        prices, rest_s = self.problem.prices, self.problem.rest_s[way.end]
        waits = self.problem.waits[way.end]
        way_s, least_rest_s = (
            self.problem.s_per_j * way.energy_j,
            self.problem.rest_energy_s[way.end],
        )
        for label in labels:
            times_s = move.times_s(label.times_s)
            free_s, ready_s = times_s[: move.processors], times_s[move.processors :]
            # what is left to run waits for the first region that is there
            first_s = min(ready_s, default=0.0) if waits else 0.0
            loads_s = sum(p * max(t, first_s) for p, t in zip(prices, free_s, strict=True))
            energy_s, ended_s = label.energy_s + way_s, max(free_s)
            shared_s, all_energy_s = energy_s + loads_s + rest_s, energy_s + least_rest_s
            longest_s = max(ended_s, *map(add, ready_s, move.least_tails_s), 0.0)
            least_s = max(label.least_s, shared_s, longest_s + all_energy_s)
            if least_s < self.known_s:
                hoped_s = max(ended_s, *map(add, ready_s, move.tails_s), 0.0) + all_energy_s
                promise_s = max(shared_s, hoped_s)
                place.append(_Label(times_s, energy_s, least_s, promise_s, way, label))

    def _move(self, held: _Held, way: Way) -> _Move:
        key = (held, id(way))
        if key not in self.moves:
            self.moves[key] = _moved(self.problem, held, way)
        return self.moves[key]


@dataclass(frozen=True, slots=True)
class _Move:
    """What a way makes of a label's times, for all labels that hold the same.

    Parameters
    ----------
    pieces
        Of each piece: its processor, its seconds, those before in which it puts its inputs
        together, and which of the times it waits for, with the seconds of the transfer.
    sources
        Of each held region afterwards: the place of its time before, or ~n if piece n makes it.
    least_tails_s, tails_s
        Of each held region afterwards: as `SplitProblem.tails_s`.
    """

    held: _Held
    processors: int
    pieces: tuple[tuple[int, float, float, tuple[tuple[int, float], ...]], ...]
    joint: bool
    sources: tuple[int, ...]
    least_tails_s: tuple[float, ...]
    tails_s: tuple[float, ...]

    def times_s(self, before_s: tuple[float, ...]) -> tuple[float, ...]:
        """Return when processors are free and regions are ready afterwards."""
        free_s = list(before_s[: self.processors])
        starts_s = []
        for p, _, gather_s, waits in self.pieces:
            start_s = before_s[p]
            for place, moved_s in waits:
                start_s = max(start_s, before_s[place] + moved_s)
            starts_s.append(start_s + gather_s)
        if self.joint:
            starts_s = [max(starts_s)] * len(starts_s)
        ends_s = []
        for (p, time_s, _, _), start_s in zip(self.pieces, starts_s, strict=True):
            free_s[p] = start_s + time_s
            ends_s.append(free_s[p])
        return (*free_s, *(before_s[i] if i >= 0 else ends_s[~i] for i in self.sources))


def _moved(problem: SplitProblem, held: _Held, way: Way) -> _Move:
    first: dict[int, int] = {}  # place of the first time of each tensor
    regions_of = dict(held)
    number = problem.processors
    for tensor, regions in held:
        first[tensor] = number
        number += len(regions)
    pieces = []
    for piece in way.pieces:
        gather_s, waits = 0.0, []
        for tensor, need in piece.reads:
            fetched = problem.fetched(tensor, regions_of[tensor], need, piece.processor)
            waits += [(first[tensor] + i, moved_s) for i, moved_s in fetched.waits]
            gather_s += fetched.gather_s
        pieces.append((piece.processor, piece.time_s, gather_s, tuple(waits)))
    after = {t: regions for t, regions in held if problem.last_reader[t] >= way.end}
    sources = {t: [first[t] + i for i in range(len(after[t]))] for t in after}
    for number, piece in enumerate(way.pieces):
        for tensor, region in piece.makes:
            if problem.last_reader[tensor] >= way.end:
                after[tensor] = (*after.get(tensor, ()), (piece.processor, region))
                sources.setdefault(tensor, []).append(~number)
    live = sorted(after)
    return _Move(
        tuple((tensor, after[tensor]) for tensor in live),
        problem.processors,
        tuple(pieces),
        way.joint,
        tuple(source for tensor in live for source in sources[tensor]),
        *(
            tuple(tails_s[tensor] for tensor in live for _ in after[tensor])
            for tails_s in problem.tails_s
        ),
    )


def _undominated(labels: Sequence[_Label]) -> list[_Label]:
    """Return labels of which no other one is as little everywhere, the most promising first."""
    ordered = sorted(labels, key=lambda label: (label.promise_s, sum(label.times_s)))
    if len(ordered) <= 1:
        return ordered
    times = np.array([(*label.times_s, label.energy_s) for label in ordered])
    kept: list[int] = []
    for i in range(len(ordered)):
        if not kept or not (times[kept] <= times[i]).all(axis=1).any():
            kept.append(i)
    return [ordered[i] for i in kept]
