"""The search over stages: which processors, which cut points, which schedules.

A stage is a contiguous range of units on a set of processors that no other stage uses. Labels say
what the stages so far take. Those of one state are kept as long as no other label of that state is
at least as good in every objective, so the answer is the exact Pareto front over all configurations
that the units' options allow.

Where units have many schedules each, there are too many sums of them to keep. With a tolerance,
figures are compared on a grid: of labels that fall into one cell, the one of least energy is kept.
What a label loses by that is bounded by the cells it has passed through.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from math import fsum
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from parapipe.pipeline.dominance import staircase
from parapipe.pipeline.identical import in_a_row, in_turn
from parapipe.pipeline.mapping import Kind, kind_of
from parapipe.pipeline.stage_table import StageShape, StageTable
from parapipe.pipeline.time_energy import Locations, TimeEnergy
from parapipe.pipeline.tolerance import EXACT, Tolerance, cells, coarsened

Numbers = NDArray[np.int64]
# Processors used so far, locations of live tensors, number of stages (2 = two or more), whether a
# stage uses several processors; the last two are 0 where kinds of configurations do not matter.
_State = tuple[int, Locations, int, bool]


@dataclass(frozen=True, slots=True)
class ChosenStage:
    """A stage as the search sees it: its shape, and which of its times and dynamic energies."""

    shape: StageShape
    time_ns: int
    energy_nj: int


@dataclass(frozen=True, slots=True)
class Candidate:
    """A configuration as the search sees it.

    `energy_nj` holds static energy, too: of the processors used, over one period. `found_in` knows
    the schedules behind it, and `cost_table` is the number of the cost table that they rest on.
    """

    stages: tuple[ChosenStage, ...]
    latency_ns: int
    period_ns: int
    energy_nj: float
    found_in: StageTable = field(repr=False, compare=False)
    cost_table: int = 0

    @property
    def processors(self) -> tuple[int, ...]:
        """Bit mask of the processors that each stage uses."""
        return tuple(stage.shape.processors for stage in self.stages)

    @property
    def kind(self) -> Kind:
        """What the stages amount to."""
        return kind_of([mask.bit_count() for mask in self.processors])

    @property
    def objectives(self) -> tuple[float, float, float]:
        """What the front trades: latency, period, energy."""
        return (self.latency_ns, self.period_ns, self.energy_nj)


@dataclass(frozen=True, slots=True)
class _Extension:
    """Labels to which a stage is added, in every way that its front allows."""

    before: _Labels
    shape: StageShape
    front: TimeEnergy


@dataclass(frozen=True, slots=True)
class _Labels:
    """What stages so far take, and where each label comes from.

    Label i is number `place[i]` of the pairs of a point of the last stage's front and a label
    before it, of the extension `origin[i]`.
    """

    latency_ns: Numbers
    period_ns: Numbers
    energy_nj: Numbers
    origin: Numbers
    place: Numbers
    extensions: Sequence[_Extension] = ()

    def pick(self, chosen: Numbers) -> _Labels:
        """Return some of the labels."""
        return _Labels(
            self.latency_ns[chosen],
            self.period_ns[chosen],
            self.energy_nj[chosen],
            self.origin[chosen],
            self.place[chosen],
            self.extensions,
        )


_ZERO = np.zeros(1, np.int64)
_START = _Labels(_ZERO, _ZERO, _ZERO, _ZERO, _ZERO)


def search(
    units: int,
    stages: StageTable,
    static_power_w: Sequence[float],
    *,
    tolerance: Tolerance = EXACT,
    cost_table: int = 0,
    identical: Sequence[Sequence[int]] = (),
    tell: Callable[[int], None] = lambda _: None,
) -> list[Candidate]:
    """Find every Pareto-optimal configuration of each kind, or what matches all within a tolerance.

    Parameters
    ----------
    units
        Number of units.
    stages
        What stages can be made of the units' options, and whether the front trades energy, too.
        Without, energy is that of the labels found.
    static_power_w
        Static power of each processor while it belongs to a configuration.
    tolerance
        For each configuration that the options allow, one is found whose latency, period and
        energy are at most (1 + stage) × (1 + label)^stages times as large, besides what the fronts
        of stages are off by themselves.
    cost_table
        Number of the cost table, for the candidates.
    identical
        Groups of identical processors. They are used in the order of their numbers: what differs
        in their places only is searched once. (Each alone may still run the whole network.)
    tell
        Told of each unit before which stages have been begun.

    Returns
    -------
    Candidates sorted by objectives. If exact, for each kind at least the best in every
    lexicographic order of the objectives, and those of one kind and one set of processors do not
    dominate each other; within a tolerance, none dominates another at all. Of those that differ in
    identical processors only, the platform's first lead.
    """
    everything = (1 << len(static_power_w)) - 1
    exact = tolerance == EXACT
    states: list[dict[_State, list[_Extension]]] = [{} for _ in range(units + 1)]
    start: _State = (0, (), 0, False)
    states[0] = {start: []}
    ending = stages.ending(units)
    for begin in range(units):
        within = inner_stages({used for used, *_ in states[begin]}, everything)
        inner = {mask for mask in within if in_a_row(mask, identical)}
        stages_from = cache(
            lambda locations, begin=begin, inner=inner: [
                (shape, coarsened(front, tolerance.stage))
                for shape, front in (
                    *stages.beginning(begin, units - 1, locations, inner),
                    *(
                        (StageShape(begin, units, locations, (), mask), front)
                        for mask, front in ending[begin][locations].items()
                    ),
                )
            ]
        )
        by_set = cache(lambda locations, stages_from=stages_from: _by_set(stages_from(locations)))
        for state, extensions in states[begin].items():
            used, locations, count, parallel = state
            if used == everything:
                continue
            labels = _labels(extensions, tolerance.label) if extensions else _START
            for shape, front in _free(by_set(locations), used, units, identical):
                mask = shape.processors
                if used | mask == everything and shape.end < units:
                    continue
                wide = parallel or mask.bit_count() > 1
                kind = (min(count + 1, 2), wide) if exact else (0, False)
                reached = states[shape.end].setdefault((used | mask, shape.locations, *kind), [])
                reached.append(_Extension(labels, shape, front))
        states[begin].clear()
        tell(begin)
    found = [
        candidate
        for (used, *_), extensions in states[units].items()
        for candidate in _candidates(
            _labels(extensions, 0.0), used, static_power_w, stages, cost_table
        )
    ]
    if not exact:
        found = staircase(found, lambda candidate: candidate.objectives)
    return sorted(found, key=lambda candidate: (candidate.objectives, candidate.processors))


_Stages = dict[int, list[tuple[int, StageShape, TimeEnergy]]]


def _by_set(stages: Iterable[tuple[StageShape, TimeEnergy]]) -> _Stages:
    """Return numbered stages by the processors that they use."""
    found: _Stages = {}
    for number, (shape, front) in enumerate(stages):
        found.setdefault(shape.processors, []).append((number, shape, front))
    return found


def _free(
    stages: _Stages, used: int, units: int, identical: Sequence[Sequence[int]]
) -> Iterator[tuple[StageShape, TimeEnergy]]:
    """Yield in their order the stages on processors that are not used yet."""
    found = [
        each
        for mask, some in stages.items()
        if not mask & used
        for in_order in [in_turn(used | mask, identical)]
        for each in some
        if in_order or (each[1].begin == 0 and each[1].end == units)
    ]
    found.sort(key=itemgetter(0))
    return ((shape, front) for _, shape, front in found)


def inner_stages(used_before: Collection[int], everything: int) -> set[int]:
    """Return the sets of processors that stages can use that are not the last.

    They leave a processor to the next.

    Parameters
    ----------
    used_before
        Sets that the stages before may have used.
    """
    free = [everything & ~used for used in used_before if used != everything]
    return {m for m in range(everything) if any(not m & ~f and m != f for f in free)}


def _labels(extensions: Sequence[_Extension], share: float) -> _Labels:
    """Return the labels of one state, those left out that others match."""
    # Cells are the same for one extension as for all together: thinning twice loses no more.
    parts = [_extended(each, number, share) for number, each in enumerate(extensions)]
    latency_ns, period_ns, energy_nj, origin, place = map(np.concatenate, zip(*parts, strict=True))
    every = _Labels(latency_ns, period_ns, energy_nj, origin, place, extensions)
    if share and len(latency_ns) > 1:
        every = every.pick(_best_of_cells(latency_ns, period_ns, energy_nj, share))
    columns = (every.latency_ns, every.period_ns, every.energy_nj)
    figures = list(zip(*(column.tolist() for column in columns), strict=True))
    kept = staircase(range(len(figures)), figures.__getitem__)
    return every.pick(np.array(kept, np.int64))


def _extended(extension: _Extension, number: int, share: float) -> tuple[Numbers, ...]:
    """Return latencies, periods, energies, origins and places of an extension's labels."""
    before, front = extension.before, extension.front
    latency_ns = np.add.outer(front.time_ns, before.latency_ns).ravel()
    period_ns = np.maximum.outer(front.time_ns, before.period_ns).ravel()
    energy_nj = np.add.outer(front.energy_nj, before.energy_nj).ravel()
    place = np.arange(len(latency_ns), dtype=np.int64)
    if share:
        place = _best_of_cells(latency_ns, period_ns, energy_nj, share)
        latency_ns, period_ns, energy_nj = latency_ns[place], period_ns[place], energy_nj[place]
    return latency_ns, period_ns, energy_nj, np.full(len(place), number, np.int64), place


def _best_of_cells(
    latency_ns: Numbers, period_ns: Numbers, energy_nj: Numbers, share: float
) -> Numbers:
    """Return, of each cell of latency and period, the label of least energy."""
    latency, period = cells(latency_ns, share), cells(period_ns, share)
    order = np.lexsort((latency_ns, energy_nj, period, latency))
    new = np.append(
        True,
        (latency[order][1:] != latency[order][:-1]) | (period[order][1:] != period[order][:-1]),
    )
    chosen: Numbers = order[new]
    return chosen


def _candidates(
    labels: _Labels,
    used: int,
    static_power_w: Sequence[float],
    found_in: StageTable,
    cost_table: int,
) -> Iterator[Candidate]:
    static_w = fsum(power for p, power in enumerate(static_power_w) if used >> p & 1)
    for i, period_ns in enumerate(labels.period_ns.tolist()):
        chosen = tuple(_stages(labels, i))[::-1]
        dynamic_nj = int(labels.energy_nj[i])
        if not found_in.energy:  # the labels left energy out
            dynamic_nj = sum(
                option.energy_nj
                for each in chosen
                for option in found_in.trace(each.shape, each.time_ns, each.energy_nj)
            )
        yield Candidate(
            chosen,
            int(labels.latency_ns[i]),
            period_ns,
            dynamic_nj + static_w * period_ns,
            found_in,
            cost_table,
        )


def _stages(labels: _Labels, i: int) -> Iterator[ChosenStage]:
    """Walk back from a label to the first stage."""
    while labels.extensions:
        extension = labels.extensions[labels.origin[i]]
        point, i = divmod(int(labels.place[i]), len(extension.before.latency_ns))
        front = extension.front
        yield ChosenStage(extension.shape, int(front.time_ns[point]), int(front.energy_nj[point]))
        labels = extension.before
