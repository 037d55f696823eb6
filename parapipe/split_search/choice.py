"""The best choice of modes, by dynamic programming over the order of operators.

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

from parapipe.split_search.problem import ExecutionMode, Regions, SplitProblem, makespan_s

WIDTH = 2000

_LiveTensors = tuple[tuple[int, Regions], ...]
"""Live tensors, ascending, each with the processors that hold regions of it."""


@dataclass(frozen=True, slots=True)
class ChosenModes:
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
        No choice of the modes costs less.
    proven
        Whether none costs less than `cost_s`, in the order of operators as it is.
    """

    modes: tuple[ExecutionMode, ...]
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
    mode: ExecutionMode | None
    before: _Label | None


def shortest(
    problem: SplitProblem,
    *,
    limit_s: float = inf,
    width: int = WIDTH,
    stop: Callable[[], bool] = lambda: False,
) -> ChosenModes | None:
    """Return the choice of modes that costs least; None if none costs less than what is known.

    Parameters
    ----------
    limit_s
        Cost of a choice that need not be found again.
    width
        Most labels at one place.
    stop
        Asked at each operator whether to give up.
    """
    return _LabelSearch(problem, limit_s, width, stop).run()


class _LabelSearch:
    def __init__(
        self, problem: SplitProblem, limit_s: float, width: int, stop: Callable[[], bool]
    ) -> None:
        self.problem, self.limit_s, self.width, self.stop = problem, limit_s, width, stop
        self.dropped_s = inf  # least that a label could have led to that did not fit in
        self.moves: dict[tuple[_LiveTensors, int], _Move] = {}
        count = problem.operators + 1
        self.places: list[dict[_LiveTensors, list[_Label]]] = [{} for _ in range(count)]

    def run(self) -> ChosenModes | None:
        problem = self.problem
        start = _Label((0.0,) * problem.processors, 0.0, problem.rest_s[0], 0.0, None, None)
        self.places[0][()] = [start]
        for v in range(problem.operators):
            if self.stop():
                return None
            place, self.places[v] = self.places[v], {}
            for live, labels in self._retained(place):
                for mode in problem.modes[v]:
                    self._extend(live, labels, mode)
        last = [label for labels in self.places[-1].values() for label in labels]
        if not last:
            return None
        best = min(last, key=lambda e: max(e.times_s[: problem.processors]) + e.energy_s)
        modes: list[ExecutionMode] = []
        at: _Label | None = best
        while at is not None and at.mode is not None:
            modes.append(at.mode)
            at = at.before
        modes.reverse()
        taken_s, energy_j = makespan_s(problem, modes), sum(mode.energy_j for mode in modes)
        cost_s = taken_s + problem.s_per_j * energy_j
        bound_s = min(self.dropped_s, cost_s, self.limit_s)
        return ChosenModes(
            tuple(modes), taken_s, energy_j, cost_s, bound_s, proven=bound_s >= cost_s
        )

    def _retained(
        self, place: dict[_LiveTensors, list[_Label]]
    ) -> Sequence[tuple[_LiveTensors, list[_Label]]]:
        """Return the labels that no other one beats, the most promising ones if they are many."""
        retained = [(live, label) for live in place for label in _undominated(place[live])]
        retained.sort(key=lambda each: (each[1].promise_s, each[1].least_s))
        for _, label in retained[self.width :]:
            self.dropped_s = min(self.dropped_s, label.least_s)
        by_tensors: dict[_LiveTensors, list[_Label]] = {}
        for live, label in retained[: self.width]:
            by_tensors.setdefault(live, []).append(label)
        return list(by_tensors.items())

    def _extend(self, live: _LiveTensors, labels: Sequence[_Label], mode: ExecutionMode) -> None:
        move = self._move(live, mode)
        place = self.places[mode.end].setdefault(move.live, [])
        prices, rest_s = self.problem.prices, self.problem.rest_s[mode.end]
        waits = self.problem.waits[mode.end]
        mode_s, least_rest_s = (
            self.problem.s_per_j * mode.energy_j,
            self.problem.rest_energy_s[mode.end],
        )
        for label in labels:
            times_s = move.times_s(label.times_s)
            free_s, ready_s = times_s[: move.processors], times_s[move.processors :]
            # what is left to run waits for the first region that is there
            first_s = min(ready_s, default=0.0) if waits else 0.0
            loads_s = sum(p * max(t, first_s) for p, t in zip(prices, free_s, strict=True))
            energy_s, ended_s = label.energy_s + mode_s, max(free_s)
            shared_s, all_energy_s = energy_s + loads_s + rest_s, energy_s + least_rest_s
            longest_s = max(ended_s, *map(add, ready_s, move.least_tails_s), 0.0)
            least_s = max(label.least_s, shared_s, longest_s + all_energy_s)
            if least_s < self.limit_s:
                hoped_s = max(ended_s, *map(add, ready_s, move.tails_s), 0.0) + all_energy_s
                promise_s = max(shared_s, hoped_s)
                place.append(_Label(times_s, energy_s, least_s, promise_s, mode, label))

    def _move(self, live: _LiveTensors, mode: ExecutionMode) -> _Move:
        key = (live, id(mode))
        if key not in self.moves:
            self.moves[key] = _move_of(self.problem, live, mode)
        return self.moves[key]


@dataclass(frozen=True, slots=True)
class _Move:
    """What a mode makes of a label's times, for all labels that hold the same.

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

    live: _LiveTensors
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


def _move_of(problem: SplitProblem, live: _LiveTensors, mode: ExecutionMode) -> _Move:
    first: dict[int, int] = {}  # place of the first time of each tensor
    regions_of = dict(live)
    number = problem.processors
    for tensor, regions in live:
        first[tensor] = number
        number += len(regions)
    pieces = []
    for piece in mode.pieces:
        gather_s, waits = 0.0, []
        for tensor, need in piece.reads:
            fetched = problem.fetched(tensor, regions_of[tensor], need, piece.processor)
            waits += [(first[tensor] + i, moved_s) for i, moved_s in fetched.waits]
            gather_s += fetched.gather_s
        pieces.append((piece.processor, piece.time_s, gather_s, tuple(waits)))
    after = {t: regions for t, regions in live if problem.last_reader[t] >= mode.end}
    sources = {t: [first[t] + i for i in range(len(after[t]))] for t in after}
    for number, piece in enumerate(mode.pieces):
        for tensor, region in piece.makes:
            if problem.last_reader[tensor] >= mode.end:
                after[tensor] = (*after.get(tensor, ()), (piece.processor, region))
                sources.setdefault(tensor, []).append(~number)
    tensors = sorted(after)
    return _Move(
        tuple((tensor, after[tensor]) for tensor in tensors),
        problem.processors,
        tuple(pieces),
        mode.joint,
        tuple(source for tensor in tensors for source in sources[tensor]),
        *(
            tuple(tails_s[tensor] for tensor in tensors for _ in after[tensor])
            for tails_s in problem.tails_s
        ),
    )


def _undominated(labels: Sequence[_Label]) -> list[_Label]:
    """Return labels of which no other one is as little everywhere, the most promising first."""
    ordered = sorted(labels, key=lambda label: (label.promise_s, sum(label.times_s)))
    if len(ordered) <= 1:
        return ordered
    times = np.array([(*label.times_s, label.energy_s) for label in ordered])
    retained: list[int] = []
    for i in range(len(ordered)):
        if not retained or not (times[retained] <= times[i]).all(axis=1).any():
            retained.append(i)
    return [ordered[i] for i in retained]
