"""One pass of the search over all boundaries between units."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parapipe.pareto import staircase, thin_front
from parapipe.problems.time_energy import TimeEnergy, coarsen
from parapipe.processes.deadline import Deadline
from parapipe.search.stages.candidates import Aim, ChosenStage, SearchSpace, StageCandidate
from parapipe.search.stages.labels import (
    Bounds,
    Labels,
    Points,
    groups_of_equal,
    join_pairs,
    least_of_each,
    undominated,
)
from parapipe.search.stages.stage_table import StageShape
from parapipe.search.stages.stage_times import StageFilter

MOST_INCUMBENTS = 64  # known configurations that labels are compared with
AT_ONCE = 1 << 20  # pairs of a label and a stage
MOST_WAITING = 1 << 22  # labels before those that others match are left out on the way

Numbers = NDArray[np.int64]


class Pass:
    """One pass over the boundaries."""

    def __init__(
        self, search: SearchSpace, incumbents: Sequence[StageCandidate], deadline: Deadline
    ) -> None:
        self.search = search
        self.deadline = deadline
        processors = len(search.static_power_w)
        self.bounds = Bounds(search.units, search.stages, processors, search.replicas)
        self.full = int(search.sets[-1])
        self.static_w = search.static_w * search.stages.energy
        few = staircase((c for c in incumbents if c.period_ns < inf), self._figures_of)
        if len(few) > MOST_INCUMBENTS:
            few = thin_front(few, self._figures_of, 0.05, few[:1])
        self.incumbents = [self._figures_of(each) for each in few[:MOST_INCUMBENTS]]
        self.best = {aim: aim.best(incumbents) for aim in search.aims if aim.kind}
        self.points: dict[int, Points] = {}
        self.labels: dict[int, Labels] = {}

    def run(self, tell: Callable[[int], None]) -> Iterator[StageCandidate]:
        """Pass all boundaries and yield what is found that no known configuration beats."""
        units = self.search.units
        arriving: list[list[Labels]] = [[] for _ in range(units + 1)]
        aims = np.arange(len(self.search.aims))
        waiting, most_waiting = 0, MOST_WAITING
        arriving[0].append(Labels(aims, *[np.zeros_like(aims)] * 10))
        for begin in range(units):
            if self.deadline.over:
                return
            if arriving[begin]:
                labels = self._drop_matched(arriving[begin])
                self.labels[begin] = labels
                self.points[begin] = self._list_points(begin, np.unique(labels.place).tolist())
                arriving[begin] = []
                for end, some in self._extend(begin):
                    arriving[end].append(some)
                    waiting += len(some.used)
                    if waiting > most_waiting and not self.search.tolerance.label:
                        arriving = [[self._drop_matched(each)] if each else [] for each in arriving]
                        waiting = sum(len(each.used) for every in arriving for each in every)
                        most_waiting = max(MOST_WAITING, 2 * waiting)
            tell(begin + 1)
        if arriving[units]:
            self.labels[units] = self._drop_matched(arriving[units])
            yield from self._list_candidates()

    def _figures_of(self, candidate: StageCandidate) -> tuple[float, float, float]:
        energy_nj = candidate.energy_nj if self.search.stages.energy else 0.0
        return (candidate.latency_ns, candidate.period_ns, energy_nj)

    def _paced_ns(
        self, used: Numbers, period_ns: NDArray[Any], dynamic_nj: NDArray[Any]
    ) -> NDArray[Any]:
        """Return periods that the power budget allows; labels without energy cannot know."""
        search = self.search
        return search.paced_ns(used, period_ns, dynamic_nj) if search.stages.energy else period_ns

    def _static_nj(self, used: Numbers, period_ns: NDArray[Any]) -> NDArray[np.float64]:
        """Return the static energy of sets of processors, for a frame; 0 where none can be."""
        frame_ns = np.maximum(period_ns, self.search.arrival_ns)
        static_nj: NDArray[np.float64] = self.static_w[used] * np.where(
            np.isfinite(period_ns), frame_ns, 0.0
        )
        return static_nj

    def _may_improve(
        self,
        aim: Aim,
        latency_ns: NDArray[np.float64],
        period_ns: NDArray[np.float64],
        energy_nj: NDArray[np.float64],
    ) -> NDArray[np.bool_]:
        """Tell which figures no known configuration beats: each is the least that can be."""
        promising = np.isfinite(latency_ns) & np.isfinite(period_ns)
        if aim.kind is None:
            total = latency_ns + period_ns + energy_nj
            for other in self.incumbents:
                beaten = (
                    (latency_ns >= other[0]) & (period_ns >= other[1]) & (energy_nj >= other[2])
                )
                promising &= ~(beaten & (total > sum(other)))  # others are equal to it
        elif best := self.best[aim]:
            figures = (latency_ns, period_ns, energy_nj)
            first, second = aim.order[:2]
            limit, then = (self._figures_of(best)[i] for i in (first, second))
            promising &= (figures[first] < limit) | (
                (figures[first] == limit) & (figures[second] <= then)
            )
        return promising

    def _list_points(self, begin: int, places: Sequence[int]) -> Points:
        """Return the stages from a boundary that something may come of."""
        search, units = self.search, self.search.units
        useful = self._useful_stages(begin)
        shapes: list[StageShape] = []
        fronts: list[TimeEnergy] = []
        columns: list[tuple[int, ...]] = []
        wanted = self._filter_stages(useful)
        stop = max((unit for unit, sets in enumerate(wanted.sets[:-1]) if sets), default=begin)
        where_from = [search.places[begin][place] for place in places]
        last = search.stages.last_stages(begin, units, where_from, wanted.sets[units])
        for shape, front in (*search.stages.beginning(begin, stop, where_from, wanted), *last):
            place = search.number[begin][shape.locations_in]
            out = search.number[shape.end][shape.locations]
            some = coarsen(front, search.tolerance.stage)
            sets = search.replicas.get(shape.processors, ())
            taken = [each for each in sets if useful[shape.end, each]]
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

    def _filter_stages(self, useful: NDArray[np.bool_]) -> StageFilter:
        """Return sets of processors by boundary, given which stages something may come of.

        With sets that take turns on a stage there is the first processor of each.
        """
        replicas = self.search.replicas.items()
        every = [{*np.flatnonzero(sets).tolist()} for sets in useful]
        for sets in every:
            sets |= {first for first, some in replicas if not sets.isdisjoint(some)}
        later = np.logical_or.accumulate(useful[-2::-1])[::-1]  # end there or later, and not last
        parts = ((self.bounds.within & sets).any(axis=1) for sets in later)
        return StageFilter(every, [*({*np.flatnonzero(sets).tolist()} for sets in parts), ()])

    def _useful_stages(self, begin: int) -> NDArray[np.bool_]:
        """Tell which stages from a boundary something may come of: [end, set]."""
        labels, search = self.labels[begin], self.search
        useful = np.zeros(self.bounds.stage_ns[begin].shape, bool)
        for number, aim in enumerate(search.aims):
            few = least_of_each(labels.pick(labels.aim == number))
            after = few.used[:, None] | search.sets
            row, mask = np.nonzero(
                (few.used[:, None] & search.sets == 0)
                & search.is_leading[after]
                & (search.is_consecutive & aim.allows(search.sets))
            )
            best = self._best_figures(begin, few.pick(row), mask)
            end, pair = np.nonzero(self._may_improve(aim, *best))
            useful[end, mask[pair]] = True
        if not begin:
            useful[-1] = False  # configurations of one stage are known
        if (labels.stages + 1 == search.most_stages).all():
            useful[:-1] = False  # the next one must be the last
        return useful

    def _best_figures(
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
        dynamic_nj = labels.energy_nj + stage_nj + bounds.least_after_nj[:, free]
        longest_ns = self._paced_ns(used, longest_ns, dynamic_nj)
        return (
            labels.latency_ns + stage_ns + bounds.least_after_ns[:, free],
            longest_ns,
            dynamic_nj + self._static_nj(used, longest_ns),
        )

    def _extend(self, begin: int) -> Iterator[tuple[int, Labels]]:
        """Yield labels by the boundary that a further stage leads to."""
        pairs = self.deadline.of(self._pair_stages(begin))
        if parts := [self._add_stages(begin, row, point) for row, point in pairs]:
            ends = np.concatenate([end for end, _ in parts])
            every = Labels(*map(np.concatenate, zip(*(some for _, some in parts), strict=True)))
            order = np.argsort(ends, kind="stable")
            ends, every = ends[order], every.pick(order)
            for some in groups_of_equal(ends):
                yield int(ends[some[0]]), every.pick(some)

    def _pair_stages(self, begin: int) -> Iterator[tuple[Numbers, Numbers]]:
        """Yield, some at a time, rows of labels and points of the stages that may follow each."""
        labels, points = self.labels[begin], self.points[begin]
        pairs: list[tuple[Numbers, Numbers]] = []
        count = 0
        for rows in groups_of_equal(labels.state):
            first = int(rows[0])
            after = labels.used[first] | points.mask
            is_last = labels.stages[first] + 1 == self.search.most_stages
            chosen = np.flatnonzero(
                (points.place == labels.place[first])
                & (points.mask & labels.used[first] == 0)
                & self.search.is_leading[after]
                & ((after < self.full) & (not is_last) | (points.end == self.search.units))
                & self.search.aims[int(labels.aim[first])].allows(points.mask)
                & ((points.replicas == 0) | (self.search.aims[int(labels.aim[first])].kind is None))
            )
            size = max(1, AT_ONCE // max(1, len(chosen)))
            for some in (rows[low : low + size] for low in range(0, len(rows), size)):
                pairs.append((np.repeat(some, len(chosen)), np.tile(chosen, len(some))))
                count += len(pairs[-1][0])
                if count > AT_ONCE:
                    yield join_pairs(pairs)
                    pairs, count = [], 0
        if count:
            yield join_pairs(pairs)

    def _add_stages(self, begin: int, row: Numbers, point: Numbers) -> tuple[Numbers, Labels]:
        """Return ends and labels of those pairs that something may come of."""
        bounds, points = self.bounds, self.points[begin]
        labels = self.labels[begin].pick(row)
        mask, end = points.mask[point], points.end[point]
        extended = labels._replace(
            wide=labels.wide | ((np.bitwise_count(mask) > 1) & (points.replicas[point] == 0)),
            stages=labels.stages + self.search.counts_stages,
            used=labels.used | mask,
            place=points.out[point],
            latency_ns=labels.latency_ns + points.time_ns[point],
            period_ns=np.maximum(labels.period_ns, points.every_ns[point]),
            energy_nj=labels.energy_nj + points.energy_nj[point],
            begin=np.full_like(row, begin),
            row=row,
            point=point,
        )
        free = self.full & ~extended.used
        rest_ns = bounds.after_ns[end, extended.place, free]
        rest_nj = bounds.after_nj[end, extended.place, free]
        period_ns = np.maximum(extended.period_ns, bounds.period_after_ns[end, free])
        latency_ns = extended.latency_ns + rest_ns
        dynamic_nj = extended.energy_nj + rest_nj
        period_ns = self._paced_ns(extended.used, period_ns, dynamic_nj)
        energy_nj = dynamic_nj + self._static_nj(extended.used, period_ns)
        promising = np.zeros(len(row), bool)
        for number, aim in enumerate(self.search.aims):
            some = extended.aim == number
            figures = (latency_ns[some], period_ns[some], energy_nj[some])
            promising[some] = self._may_improve(aim, *figures)
            if aim.kind != "hybrid":
                extended.wide[some] = 0  # does not tell states apart
        return end[promising], extended.pick(promising)

    def _drop_matched(self, parts: Sequence[Labels]) -> Labels:
        """Return labels sorted by state, those left out that others of their state match."""
        labels = Labels(*map(np.concatenate, zip(*parts, strict=True)))
        return undominated(labels, self.search.tolerance.label, energy=self.search.stages.energy)

    def _list_candidates(self) -> Iterator[StageCandidate]:
        labels = self.labels[self.search.units]
        period_ns = self._paced_ns(labels.used, labels.period_ns, labels.energy_nj)
        energy_nj = labels.energy_nj + self._static_nj(labels.used, period_ns)
        columns = (labels.latency_ns, period_ns, energy_nj)
        figures = list(zip(*(column.tolist() for column in columns), strict=True))
        for number, aim in enumerate(self.search.aims):
            some = labels.aim == number
            if aim.kind == "hybrid":
                some &= labels.wide == 1
            rows = np.flatnonzero(some).tolist()
            if aim.kind is None:
                wanted = {figures[row] for row in staircase(rows, figures.__getitem__)}
                yield from (self._make_candidate(labels, r) for r in rows if figures[r] in wanted)
            elif rows:
                ranks = {row: [figures[row][i] for i in aim.order] for row in rows}
                least = min(ranks.values())
                equal = [self._make_candidate(labels, row) for row in rows if ranks[row] == least]
                yield min(equal, key=aim.rank)

    def _make_candidate(self, labels: Labels, row: int) -> StageCandidate:
        return self.search.candidate(tuple(self._trace_stages(labels, row))[::-1])

    def _trace_stages(self, labels: Labels, row: int) -> Iterator[ChosenStage]:
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
