"""The search over stages: which processors, which cut points, which schedules.

A stage is a contiguous range of units on a set of processors that no other stage uses. Labels say
what the stages so far take. Those of one state are kept as long as no other label of that state is
at least as good in every objective, and as long as the best that can come of them is not beaten by
a configuration that is known. So the answer is the exact Pareto front over all configurations that
the units' options allow. A network with many units is first cut at few places, then at more: what
the first passes find is known to the next, so that most of what these could do is left out early.

Where units have many schedules each, there are too many sums of them to keep. With a tolerance,
figures are compared on a grid: of labels that fall into one cell, the one of least energy is kept.
What a label loses by that is bounded by the cells it has passed through.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from math import fsum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from parapipe.pipeline.bounds import Bounds, first_of_each
from parapipe.pipeline.deadline import Deadline
from parapipe.pipeline.dominance import staircase, thinned
from parapipe.pipeline.identical import in_a_row, in_turn
from parapipe.pipeline.mapping import Kind, kind_of
from parapipe.pipeline.stage_table import Asked, StageShape, StageTable
from parapipe.pipeline.time_energy import TimeEnergy
from parapipe.pipeline.tolerance import EXACT, Tolerance, cells, coarsened

FEW_CUTS = 12  # boundaries of the first pass; each further one has three times as many
MOST_CUTS = 300
RIVALS = 64  # known configurations that labels are compared with
AT_ONCE = 1 << 20  # pairs of a label and a stage

Numbers = NDArray[np.int64]


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


class _Aim(NamedTuple):
    """What a label may become: a configuration of the front, or the best of a kind."""

    kind: Kind | None = None
    order: tuple[int, ...] = (0, 1, 2)  # of latency, period and energy, for the best of a kind

    def allows(self, masks: Numbers) -> NDArray[np.bool_]:
        """Tell which sets of processors may be a stage's."""
        if self.kind == "pipe-only":
            return np.bitwise_count(masks) == 1
        return np.ones(masks.shape, bool)

    def best(self, candidates: Iterable[Candidate]) -> Candidate | None:
        """Return the best of its kind."""
        return min((c for c in candidates if c.kind == self.kind), key=self.rank, default=None)

    def rank(self, candidate: Candidate) -> tuple[float, ...]:
        """Return figures, the most important first."""
        return tuple(candidate.objectives[i] for i in self.order)


_FRONT = _Aim()
_BEST = (
    _Aim("pipe-only", (1, 0, 2)),
    _Aim("hybrid", (0, 1, 2)),
    _Aim("hybrid", (1, 0, 2)),
)


class _Points(NamedTuple):
    """All that stages from one boundary may take, as columns; `shape` is a number of `shapes`."""

    place: Numbers
    mask: Numbers
    end: Numbers
    out: Numbers
    time_ns: Numbers
    energy_nj: Numbers
    shape: Numbers
    shapes: Sequence[StageShape]


class _Labels(NamedTuple):
    """What stages so far take, as columns; each is its row `row` at `begin` and a stage's point."""

    aim: Numbers
    wide: Numbers  # whether a stage uses several processors, where that counts
    used: Numbers
    place: Numbers
    latency_ns: Numbers
    period_ns: Numbers
    energy_nj: Numbers
    begin: Numbers
    row: Numbers
    point: Numbers

    def pick(self, chosen: NDArray[np.int64] | NDArray[np.bool_]) -> _Labels:
        """Return some of the labels."""
        return _Labels(*(column[chosen] for column in self))

    @property
    def state(self) -> Numbers:
        """Numbers of states, equal where aim, wide, used and place are."""
        places = int(self.place.max(initial=0)) + 1
        sets = int(self.used.max(initial=0)) + 1
        found: Numbers = ((self.aim * 2 + self.wide) * sets + self.used) * places + self.place
        return found


def search(
    units: int,
    stages: StageTable,
    static_power_w: Sequence[float],
    *,
    tolerance: Tolerance = EXACT,
    cost_table: int = 0,
    identical: Sequence[Sequence[int]] = (),
    known: Iterable[Candidate] = (),
    most_cuts: int = MOST_CUTS,
    deadline: Deadline | None = None,
    tell: Callable[[int, int], None] = lambda _done, _total: None,
) -> list[Candidate]:
    """Find every Pareto-optimal configuration, or what matches all within a tolerance.

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
        For each configuration that the options allow, one is found or known whose latency, period
        and energy are at most (1 + stage) × (1 + label)^stages times as large, besides what the
        fronts of stages are off by themselves.
    cost_table
        Number of the cost table, for the candidates.
    identical
        Groups of identical processors. They are used in the order of their numbers: what differs
        in their places only is searched once. (Each alone may still run the whole network.)
    known
        Configurations that what is found must not be beaten by.
    most_cuts
        If there are more boundaries between units, stages begin and end at so many of them alone.
    deadline
        When to end with what has been found: all configurations of one stage, and those that the
        passes so far have found. The first pass goes to its end.
    tell
        Told how many boundaries of how many have been passed.

    Returns
    -------
    Candidates sorted by objectives, besides those known. If exact, they hold the front of each
    set of processors as one stage, and of those of several stages the Pareto-optimal ones, that of
    kind pipe-only with the least period, and those of kind hybrid with the least latency and the
    least period, the other figures as small as they can then be. Of those that differ in identical
    processors only, the platform's first lead.
    """
    whole = _Search(units, stages, tuple(static_power_w), tolerance, cost_table, identical)
    found = list(whole.single_stages())
    passes = [
        replace(whole, units=len(cuts) - 1, stages=stages.at_cuts(cuts))
        for cuts in _cuts(whole.places, most_cuts)
    ]
    if units <= most_cuts:
        passes.append(whole)
    total = sum(each.units for each in passes)
    done = 0
    until = Deadline()
    for each in passes:
        with (deadline or until).ending():
            run = _Pass(each, [*known, *found], until)
            found = [*run.found(lambda at, done=done: tell(done + at, total)), *found]
        until = deadline or until
        done += each.units
    if tolerance != EXACT:
        found = staircase(found, lambda candidate: candidate.objectives)
    unique: dict[object, Candidate] = {}
    for candidate in found:  # of equal ones that of the last pass
        unique.setdefault((candidate.objectives, candidate.processors), candidate)
    return sorted(unique.values(), key=lambda each: (each.objectives, each.processors))


def _cuts(places: Sequence[Sequence[object]], most: int) -> Iterator[list[int]]:
    """Yield a few boundaries, then more, both ends included; those with few places come first."""
    units = len(places) - 1
    count = FEW_CUTS
    while count < min(units, most):
        yield _spread(places, count)
        count *= 3
    if most < units:
        yield _spread(places, most)


def _spread(places: Sequence[Sequence[object]], count: int) -> list[int]:
    units = len(places) - 1
    ends = [round(i * units / count) for i in range(1, count + 1)]
    inner = [min(range(a, b), key=lambda u: len(places[u])) for a, b in pairwise(ends)]
    return [0, *inner, units]


@dataclass(frozen=True)
class _Search:
    """What all passes share."""

    units: int
    stages: StageTable
    static_power_w: tuple[float, ...]
    tolerance: Tolerance
    cost_table: int
    identical: Sequence[Sequence[int]]

    @cached_property
    def places(self) -> Sequence[Sequence[object]]:
        """Locations of live tensors at each boundary."""
        return self.stages.places(self.units)

    @cached_property
    def number(self) -> list[dict[object, int]]:
        """Number of each place at its boundary."""
        return [{at: i for i, at in enumerate(some)} for some in self.places]

    @cached_property
    def sets(self) -> Numbers:
        """All sets of processors, as bit masks."""
        return np.arange(1 << len(self.static_power_w))

    @cached_property
    def in_turn(self) -> NDArray[np.bool_]:
        """Which sets use identical processors in turn."""
        return np.array([in_turn(mask, self.identical) for mask in self.sets.tolist()])

    @cached_property
    def in_a_row(self) -> NDArray[np.bool_]:
        """Which sets a stage may use, given that."""
        return np.array([in_a_row(mask, self.identical) for mask in self.sets.tolist()])

    @cached_property
    def static_w(self) -> NDArray[np.float64]:
        """Static power of each set; 0 if energy does not count."""
        powers = [
            fsum(power for p, power in enumerate(self.static_power_w) if mask >> p & 1)
            for mask in self.sets.tolist()
        ]
        return np.array(powers) * self.stages.energy

    @cached_property
    def aims(self) -> tuple[_Aim, ...]:
        """What labels may become."""
        return (_FRONT, *_BEST) if self.tolerance == EXACT else (_FRONT,)

    @cached_property
    def ending(self) -> list[dict[object, dict[int, TimeEnergy]]]:
        """What every last stage may take, by first unit, locations and processors."""
        return self.stages.ending(self.units)  # type: ignore[return-value]

    def single_stages(self) -> Iterator[Candidate]:
        """Yield all configurations of one stage."""
        for mask, front in self.ending[0][()].items():
            few = coarsened(front, self.tolerance.stage)
            for time_ns, energy_nj in few.pairs():
                shape = StageShape(0, self.units, (), (), mask)
                yield self.candidate((ChosenStage(shape, time_ns, energy_nj),))

    def candidate(self, chosen: tuple[ChosenStage, ...]) -> Candidate:
        """Return the configuration that some stages make."""
        times_ns = [stage.time_ns for stage in chosen]
        used = [p for stage in chosen for p in range(64) if stage.shape.processors >> p & 1]
        if self.stages.energy:
            dynamic_nj = sum(stage.energy_nj for stage in chosen)
        else:  # the labels left energy out
            dynamic_nj = sum(
                option.energy_nj
                for each in chosen
                for option in self.stages.trace(each.shape, each.time_ns, each.energy_nj)
            )
        static_w = fsum(self.static_power_w[p] for p in used)
        return Candidate(
            chosen,
            sum(times_ns),
            max(times_ns),
            dynamic_nj + static_w * max(times_ns),
            self.stages,
            self.cost_table,
        )


class _Pass:
    """One pass over the boundaries."""

    def __init__(self, search: _Search, known: Sequence[Candidate], deadline: Deadline) -> None:
        self.search = search
        self.deadline = deadline
        self.bounds = Bounds(search.units, search.stages, len(search.static_power_w))
        self.full = int(search.sets[-1])
        rivals = staircase(known, self._figures)
        few = rivals if len(rivals) <= RIVALS else thinned(rivals, self._figures, 0.05, rivals[:1])
        self.rivals = [self._figures(each) for each in few[:RIVALS]]
        self.best = {aim: aim.best(known) for aim in search.aims if aim.kind}
        self.points: dict[int, _Points] = {}
        self.labels: dict[int, _Labels] = {}

    def found(self, tell: Callable[[int], None]) -> Iterator[Candidate]:
        """Pass all boundaries and yield what is found that no known configuration beats."""
        units = self.search.units
        arriving: list[list[_Labels]] = [[] for _ in range(units + 1)]
        arriving[0].append(self._start())
        for begin in range(units):
            if self.deadline.over:
                return
            if arriving[begin]:
                labels = self._undominated(arriving[begin])
                self.labels[begin] = labels
                self.points[begin] = self._stages(begin, np.unique(labels.place).tolist())
                for end, some in self._extended(begin):
                    arriving[end].append(some)
                arriving[begin] = []
            tell(begin + 1)
        if arriving[units]:
            self.labels[units] = self._undominated(arriving[units])
            yield from self._candidates()

    def _start(self) -> _Labels:
        aims = np.arange(len(self.search.aims))
        zero = np.zeros_like(aims)
        return _Labels(aims, zero, zero, zero, zero, zero, zero, zero, zero, zero)

    def _figures(self, candidate: Candidate) -> tuple[float, float, float]:
        energy_nj = candidate.energy_nj if self.search.stages.energy else 0.0
        return (candidate.latency_ns, candidate.period_ns, energy_nj)

    def _hopeful(
        self,
        aim: _Aim,
        latency_ns: NDArray[np.float64],
        period_ns: NDArray[np.float64],
        energy_nj: NDArray[np.float64],
    ) -> NDArray[np.bool_]:
        """Tell which figures no known configuration beats: each is the least that can be."""
        hopeful = np.isfinite(latency_ns) & np.isfinite(period_ns)
        if aim.kind is None:
            total = latency_ns + period_ns + energy_nj
            for rival in self.rivals:
                beaten = (
                    (latency_ns >= rival[0]) & (period_ns >= rival[1]) & (energy_nj >= rival[2])
                )
                hopeful &= ~(beaten & (total > sum(rival)))  # others are equal to it
        elif best := self.best[aim]:
            figures = (latency_ns, period_ns, energy_nj)
            first, second = aim.order[:2]
            limit, then = (self._figures(best)[i] for i in (first, second))
            hopeful &= (figures[first] < limit) | (
                (figures[first] == limit) & (figures[second] <= then)
            )
        return hopeful

    def _stages(self, begin: int, places: Sequence[int]) -> _Points:
        """Return the stages from a boundary that something may come of."""
        search, units = self.search, self.search.units
        alive = self._alive(begin)
        shapes: list[StageShape] = []
        fronts: list[TimeEnergy] = []
        columns: list[tuple[int, int, int, int]] = []
        asked = self._asked(alive)
        stop = max((unit for unit, sets in enumerate(asked.sets[:-1]) if sets), default=begin)
        for place in places:
            locations = search.places[begin][place]
            last = (
                (StageShape(begin, units, locations, (), mask), front)
                for mask, front in search.ending[begin].get(locations, {}).items()
                if mask in asked.sets[units]
            )
            for shape, front in (
                *search.stages.beginning(begin, stop, locations, asked),
                *last,
            ):
                out = search.number[shape.end][shape.locations]
                columns.append((place, shape.processors, shape.end, out))
                shapes.append(shape)
                fronts.append(coarsened(front, search.tolerance.stage))
        place, mask, end, out = np.array(columns, np.int64).reshape(-1, 4).T
        shape = np.repeat(np.arange(len(shapes)), [len(front.time_ns) for front in fronts])
        empty = np.zeros(0, np.int64)
        return _Points(
            place[shape],
            mask[shape],
            end[shape],
            out[shape],
            np.concatenate([empty, *(front.time_ns for front in fronts)]),
            np.concatenate([empty, *(front.energy_nj for front in fronts)]),
            shape,
            shapes,
        )

    def _asked(self, alive: NDArray[np.bool_]) -> Asked:
        """Return sets of processors by boundary, given which stages something may come of."""
        later = np.logical_or.accumulate(alive[-2::-1])[::-1]  # end there or later, and not last
        parts = ((self.bounds.within & sets).any(axis=1) for sets in later)
        return Asked(
            [set(np.flatnonzero(sets).tolist()) for sets in alive],
            [*(set(np.flatnonzero(sets).tolist()) for sets in parts), ()],
        )

    def _alive(self, begin: int) -> NDArray[np.bool_]:
        """Tell which stages from a boundary something may come of: [end, set]."""
        bounds = self.bounds
        others = self.full & ~self.search.sets
        before_ns = bounds.before_ns[begin][others]
        before_nj = bounds.before_nj[begin][others]
        after_ns = bounds.least_after_ns[:, others]
        after_nj = bounds.least_after_nj[:, others]
        stage_ns = bounds.stage_ns[begin]
        latency_ns = before_ns + stage_ns + after_ns
        period_ns = np.maximum(
            np.maximum(bounds.period_before_ns[begin][others], stage_ns),
            bounds.period_after_ns[:, others],
        )
        energy_nj = before_nj + bounds.stage_nj[begin] + after_nj
        energy_nj += self.search.static_w * np.where(np.isfinite(period_ns), period_ns, 0.0)
        alive = np.zeros(stage_ns.shape, bool)
        for aim in self.search.aims:
            hopeful = self._hopeful(aim, latency_ns, period_ns, energy_nj)
            alive |= hopeful & aim.allows(self.search.sets)
        if not begin:
            alive[-1] = False  # configurations of one stage are known
        inner: NDArray[np.bool_] = alive & self.search.in_a_row
        return inner

    def _extended(self, begin: int) -> Iterator[tuple[int, _Labels]]:
        """Yield labels by the boundary that a further stage leads to."""
        parts = [self._tried(begin, row, point) for row, point in self._pairs(begin)]
        if parts:
            ends = np.concatenate([end for end, _ in parts])
            every = _Labels(*map(np.concatenate, zip(*(some for _, some in parts), strict=True)))
            order = np.argsort(ends, kind="stable")
            ends, every = ends[order], every.pick(order)
            for some in _runs(ends):
                yield int(ends[some[0]]), every.pick(some)

    def _pairs(self, begin: int) -> Iterator[tuple[Numbers, Numbers]]:
        """Yield, some at a time, rows of labels and points of the stages that may follow each."""
        labels, points = self.labels[begin], self.points[begin]
        found: list[tuple[Numbers, Numbers]] = []
        count = 0
        for rows in _runs(labels.state):
            first = int(rows[0])
            after = labels.used[first] | points.mask
            chosen = np.flatnonzero(
                (points.place == labels.place[first])
                & (points.mask & labels.used[first] == 0)
                & self.search.in_turn[after]
                & ((after < self.full) | (points.end == self.search.units))
                & self.search.aims[int(labels.aim[first])].allows(points.mask)
            )
            found.append((np.repeat(rows, len(chosen)), np.tile(chosen, len(rows))))
            count += len(found[-1][0])
            if count > AT_ONCE:
                yield _joined(found)
                found, count = [], 0
        if count:
            yield _joined(found)

    def _tried(self, begin: int, row: Numbers, point: Numbers) -> tuple[Numbers, _Labels]:
        """Return ends and labels of those pairs that something may come of."""
        bounds, points = self.bounds, self.points[begin]
        labels = self.labels[begin].pick(row)
        mask, end = points.mask[point], points.end[point]
        made = labels._replace(
            wide=labels.wide | (np.bitwise_count(mask) > 1),
            used=labels.used | mask,
            place=points.out[point],
            latency_ns=labels.latency_ns + points.time_ns[point],
            period_ns=np.maximum(labels.period_ns, points.time_ns[point]),
            energy_nj=labels.energy_nj + points.energy_nj[point],
            begin=np.full_like(row, begin),
            row=row,
            point=point,
        )
        free = self.full & ~made.used
        rest_ns = bounds.after_ns[end, made.place, free]
        rest_nj = bounds.after_nj[end, made.place, free]
        period_ns = np.maximum(made.period_ns, bounds.period_after_ns[end, free])
        latency_ns = made.latency_ns + rest_ns
        static_nj = self.search.static_w[made.used] * np.where(
            np.isfinite(period_ns), period_ns, 0.0
        )
        energy_nj = made.energy_nj + rest_nj + static_nj
        hopeful = np.zeros(len(row), bool)
        for number, aim in enumerate(self.search.aims):
            some = made.aim == number
            hopeful[some] = self._hopeful(aim, latency_ns[some], period_ns[some], energy_nj[some])
            if aim.kind != "hybrid":
                made.wide[some] = 0  # does not tell states apart
        return end[hopeful], made.pick(hopeful)

    def _undominated(self, parts: Sequence[_Labels]) -> _Labels:
        """Return labels sorted by state, those left out that others of their state match."""
        labels = _Labels(*map(np.concatenate, zip(*parts, strict=True)))
        share = self.search.tolerance.label
        state = labels.state
        if share:
            latency, period = cells(labels.latency_ns, share), cells(labels.period_ns, share)
            order = np.lexsort((labels.latency_ns, labels.energy_nj, period, latency, state))
            cell = np.stack([state[order], latency[order], period[order]])
            new = np.append(True, (cell[:, 1:] != cell[:, :-1]).any(axis=0))
            labels = labels.pick(order[new])
            state = labels.state
        order = np.lexsort((labels.energy_nj, labels.period_ns, labels.latency_ns, state))
        labels, state = labels.pick(order), state[order]
        if not self.search.stages.energy:
            return labels.pick(_descending(state, labels.period_ns))
        figures = list(
            zip(
                *(
                    column.tolist()
                    for column in (labels.latency_ns, labels.period_ns, labels.energy_nj)
                ),
                strict=True,
            )
        )
        kept = [i for rows in _runs(state) for i in staircase(rows.tolist(), figures.__getitem__)]
        return labels.pick(np.array(kept, np.int64))

    def _candidates(self) -> Iterator[Candidate]:
        labels = self.labels[self.search.units]
        energy_nj = labels.energy_nj + self.search.static_w[labels.used] * labels.period_ns
        columns = (labels.latency_ns, labels.period_ns, energy_nj)
        figures = list(zip(*(column.tolist() for column in columns), strict=True))
        for number, aim in enumerate(self.search.aims):
            some = labels.aim == number
            if aim.kind == "hybrid":
                some &= labels.wide == 1
            rows = np.flatnonzero(some).tolist()
            if aim.kind is None:
                wanted = {figures[row] for row in staircase(rows, figures.__getitem__)}
                yield from (self._candidate(labels, r) for r in rows if figures[r] in wanted)
            elif rows:
                ranks = {row: [figures[row][i] for i in aim.order] for row in rows}
                least = min(ranks.values())
                equal = [self._candidate(labels, row) for row in rows if ranks[row] == least]
                yield min(equal, key=aim.rank)

    def _candidate(self, labels: _Labels, row: int) -> Candidate:
        return self.search.candidate(tuple(self._walked_back(labels, row))[::-1])

    def _walked_back(self, labels: _Labels, row: int) -> Iterator[ChosenStage]:
        """Yield the stages of a label, the last one first."""
        begin = self.search.units
        while begin:
            begin, point = int(labels.begin[row]), int(labels.point[row])
            points = self.points[begin]
            yield ChosenStage(
                points.shapes[int(points.shape[point])],
                int(points.time_ns[point]),
                int(points.energy_nj[point]),
            )
            labels, row = self.labels[begin], int(labels.row[row])


def _joined(parts: Sequence[tuple[Numbers, Numbers]]) -> tuple[Numbers, Numbers]:
    rows, points = map(np.concatenate, zip(*parts, strict=True))
    return rows, points


def _runs(numbers: Numbers) -> list[Numbers]:
    """Return the places of each value of a sorted array."""
    return np.split(np.arange(len(numbers)), first_of_each(numbers)[1:]) if len(numbers) else []


def _descending(state: Numbers, period_ns: Numbers) -> NDArray[np.bool_]:
    """Tell which periods are less than all before them of their state; states are sorted."""
    above = int(period_ns.max(initial=0)) + 1
    number = np.cumsum(np.append(False, state[1:] != state[:-1]))
    shifted = period_ns - number * above  # every state begins below all that came before
    least = np.minimum.accumulate(shifted)
    found: NDArray[np.bool_] = np.append(True, shifted[1:] < least[:-1])
    return found
