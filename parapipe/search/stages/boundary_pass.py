"""One pass of the search over all boundaries between units."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from parapipe.pareto import staircase, thinned
from parapipe.processes.deadline import Deadline
from parapipe.search.problems.time_energy import TimeEnergy, coarsened
from parapipe.search.stages.candidates import Aim, ChosenStage, SearchSpace, StageCandidate
from parapipe.search.stages.labels import (
    Bounds,
    Labels,
    Points,
    joined,
    least_of_each,
    runs,
    undominated,
)
from parapipe.search.stages.stage_table import StageShape
from parapipe.search.stages.stage_times import Asked

RIVALS = 64  # known configurations that labels are compared with
AT_ONCE = 1 << 20  # pairs of a label and a stage

Numbers = NDArray[np.int64]


class Pass:
    """One pass over the boundaries."""

    def __init__(
        self, search: SearchSpace, known: Sequence[StageCandidate], deadline: Deadline
    ) -> None:
        self.search = search
        self.deadline = deadline
        self.bounds = Bounds(
            search.units, search.stages, len(search.static_power_w), search.replicas
        )
        self.full = int(search.sets[-1])
        self.static_w = search.static_w * search.stages.energy
        rivals = staircase(known, self._figures)
        few = rivals if len(rivals) <= RIVALS else thinned(rivals, self._figures, 0.05, rivals[:1])
        self.rivals = [self._figures(each) for each in few[:RIVALS]]
        self.best = {aim: aim.best(known) for aim in search.aims if aim.kind}
        self.points: dict[int, Points] = {}
        self.labels: dict[int, Labels] = {}

    def found(self, tell: Callable[[int], None]) -> Iterator[StageCandidate]:
        """Pass all boundaries and yield what is found that no known configuration beats."""
        units = self.search.units
        arriving: list[list[Labels]] = [[] for _ in range(units + 1)]
        arriving[0].append(self._start())
        for begin in range(units):
            if self.deadline.over:
                return
            if arriving[begin]:
                labels = self._kept(arriving[begin])
                self.labels[begin] = labels
                self.points[begin] = self._stages(begin, np.unique(labels.place).tolist())
                for end, some in self._extended(begin):
                    arriving[end].append(some)
                arriving[begin] = []
            tell(begin + 1)
        if arriving[units]:
            self.labels[units] = self._kept(arriving[units])
            yield from self._candidates()

    def _start(self) -> Labels:
        aims = np.arange(len(self.search.aims))
        zero = np.zeros_like(aims)
        return Labels(aims, zero, zero, zero, zero, zero, zero, zero, zero, zero)

    def _figures(self, candidate: StageCandidate) -> tuple[float, float, float]:
        energy_nj = candidate.energy_nj if self.search.stages.energy else 0.0
        return (candidate.latency_ns, candidate.period_ns, energy_nj)

    def _hopeful(
        self,
        aim: Aim,
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

    def _stages(self, begin: int, places: Sequence[int]) -> Points:
        """Return the stages from a boundary that something may come of."""
        search, units = self.search, self.search.units
        alive = self._alive(begin)
        shapes: list[StageShape] = []
        fronts: list[TimeEnergy] = []
        columns: list[tuple[int, ...]] = []
        asked = self._asked(alive)
        stop = max((unit for unit, sets in enumerate(asked.sets[:-1]) if sets), default=begin)
        where_from = [search.places[begin][place] for place in places]
        last = (
            (StageShape(begin, units, locations, (), mask), front)
            for locations in where_from
            for mask, front in search.ending[begin].get(locations, {}).items()
            if mask in asked.sets[units]
        )
        for shape, front in (*search.stages.beginning(begin, stop, where_from, asked), *last):
            place = search.number[begin][shape.locations_in]
            out = search.number[shape.end][shape.locations]
            some = coarsened(front, search.tolerance.stage)
            taken = [
                each for each in search.replicas.get(shape.processors, ()) if alive[shape.end, each]
            ]
            for replicas in (0, *taken):
                mask = replicas or shape.processors
                columns.append((place, mask, shape.end, out, replicas))
                shapes.append(shape)
                fronts.append(some)
        where = np.array(columns, np.int64).reshape(-1, 5)
        each = np.repeat(np.arange(len(shapes)), [len(front.time_ns) for front in fronts])
        empty = np.zeros(0, np.int64)
        replicas = where[each, 4]
        time_ns = np.concatenate([empty, *(front.time_ns for front in fronts)])
        return Points(
            where[each, 0],
            where[each, 1],
            where[each, 2],
            where[each, 3],
            time_ns,
            np.concatenate([empty, *(front.energy_nj for front in fronts)]),
            each,
            shapes,
            -(-time_ns // np.maximum(1, np.bitwise_count(replicas))),
            replicas,
        )

    def _asked(self, alive: NDArray[np.bool_]) -> Asked:
        """Return sets of processors by boundary, given which stages something may come of."""
        later = np.logical_or.accumulate(alive[-2::-1])[::-1]  # end there or later, and not last
        parts = ((self.bounds.within & sets).any(axis=1) for sets in later)
        return Asked(
            [self._with_firsts(np.flatnonzero(sets).tolist()) for sets in alive],
            [*(set(np.flatnonzero(sets).tolist()) for sets in parts), ()],
        )

    def _with_firsts(self, sets: Sequence[int]) -> set[int]:
        """Return sets of processors, and the first of each that may take turns on a stage."""
        found = {*sets}
        first = (mask for mask, some in self.search.replicas.items() if not found.isdisjoint(some))
        return found.union([*first])

    def _alive(self, begin: int) -> NDArray[np.bool_]:
        """Tell which stages from a boundary something may come of: [end, set]."""
        labels, search = self.labels[begin], self.search
        alive = np.zeros(self.bounds.stage_ns[begin].shape, bool)
        for number, aim in enumerate(search.aims):
            few = least_of_each(labels.pick(labels.aim == number))
            after = few.used[:, None] | search.sets
            row, mask = np.nonzero(
                (few.used[:, None] & search.sets == 0)
                & search.in_turn[after]
                & (search.in_a_row & aim.allows(search.sets))
            )
            end, way = np.nonzero(self._hopeful(aim, *self._at_best(begin, few.pick(row), mask)))
            alive[end, mask[way]] = True
        if not begin:
            alive[-1] = False  # configurations of one stage are known
        return alive

    def _at_best(
        self, begin: int, labels: Labels, mask: Numbers
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Return what labels take at best, each with a stage on a set from a boundary.

        Latency, period and energy; each is [end, label].
        """
        bounds, used = self.bounds, labels.used | mask
        free = self.full & ~used
        stage_ns, stage_nj = bounds.stage_ns[begin][:, mask], bounds.stage_nj[begin][:, mask]
        longest_ns = np.maximum(labels.period_ns, bounds.every_ns[begin][:, mask])
        longest_ns = np.maximum(longest_ns, bounds.period_after_ns[:, free])
        static_nj = self.static_w[used] * np.where(np.isfinite(longest_ns), longest_ns, 0.0)
        return (
            labels.latency_ns + stage_ns + bounds.least_after_ns[:, free],
            longest_ns,
            labels.energy_nj + stage_nj + bounds.least_after_nj[:, free] + static_nj,
        )

    def _extended(self, begin: int) -> Iterator[tuple[int, Labels]]:
        """Yield labels by the boundary that a further stage leads to."""
        parts = [self._tried(begin, row, point) for row, point in self._pairs(begin)]
        if parts:
            ends = np.concatenate([end for end, _ in parts])
            every = Labels(*map(np.concatenate, zip(*(some for _, some in parts), strict=True)))
            order = np.argsort(ends, kind="stable")
            ends, every = ends[order], every.pick(order)
            for some in runs(ends):
                yield int(ends[some[0]]), every.pick(some)

    def _pairs(self, begin: int) -> Iterator[tuple[Numbers, Numbers]]:
        """Yield, some at a time, rows of labels and points of the stages that may follow each."""
        labels, points = self.labels[begin], self.points[begin]
        found: list[tuple[Numbers, Numbers]] = []
        count = 0
        for rows in runs(labels.state):
            first = int(rows[0])
            after = labels.used[first] | points.mask
            chosen = np.flatnonzero(
                (points.place == labels.place[first])
                & (points.mask & labels.used[first] == 0)
                & self.search.in_turn[after]
                & ((after < self.full) | (points.end == self.search.units))
                & self.search.aims[int(labels.aim[first])].allows(points.mask)
                & ((points.replicas == 0) | (self.search.aims[int(labels.aim[first])].kind is None))
            )
            found.append((np.repeat(rows, len(chosen)), np.tile(chosen, len(rows))))
            count += len(found[-1][0])
            if count > AT_ONCE:
                yield joined(found)
                found, count = [], 0
        if count:
            yield joined(found)

    def _tried(self, begin: int, row: Numbers, point: Numbers) -> tuple[Numbers, Labels]:
        """Return ends and labels of those pairs that something may come of."""
        bounds, points = self.bounds, self.points[begin]
        labels = self.labels[begin].pick(row)
        mask, end = points.mask[point], points.end[point]
        made = labels._replace(
            wide=labels.wide | ((np.bitwise_count(mask) > 1) & (points.replicas[point] == 0)),
            used=labels.used | mask,
            place=points.out[point],
            latency_ns=labels.latency_ns + points.time_ns[point],
            period_ns=np.maximum(labels.period_ns, points.every_ns[point]),
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
        static_nj = self.static_w[made.used] * np.where(np.isfinite(period_ns), period_ns, 0.0)
        energy_nj = made.energy_nj + rest_nj + static_nj
        hopeful = np.zeros(len(row), bool)
        for number, aim in enumerate(self.search.aims):
            some = made.aim == number
            hopeful[some] = self._hopeful(aim, latency_ns[some], period_ns[some], energy_nj[some])
            if aim.kind != "hybrid":
                made.wide[some] = 0  # does not tell states apart
        return end[hopeful], made.pick(hopeful)

    def _kept(self, parts: Sequence[Labels]) -> Labels:
        """Return labels sorted by state, those left out that others of their state match."""
        labels = Labels(*map(np.concatenate, zip(*parts, strict=True)))
        return undominated(labels, self.search.tolerance.label, energy=self.search.stages.energy)

    def _candidates(self) -> Iterator[StageCandidate]:
        labels = self.labels[self.search.units]
        energy_nj = labels.energy_nj + self.static_w[labels.used] * labels.period_ns
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

    def _candidate(self, labels: Labels, row: int) -> StageCandidate:
        return self.search.candidate(tuple(self._walked_back(labels, row))[::-1])

    def _walked_back(self, labels: Labels, row: int) -> Iterator[ChosenStage]:
        """Yield the stages of a label, the last one first."""
        begin = self.search.units
        while begin:
            begin, point = int(labels.begin[row]), int(labels.point[row])
            points = self.points[begin]
            yield ChosenStage(
                points.shapes[int(points.shape[point])],
                int(points.time_ns[point]),
                int(points.energy_nj[point]),
                int(points.replicas[point]),
            )
            labels, row = self.labels[begin], int(labels.row[row])
