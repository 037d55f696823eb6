"""Where the best configurations may go: a model of all requests, with bounds for unsolved ones.

Many processors and several live tensors make more mapping problems than can be solved, or even
built. Here each is a number in an array, at first a lower bound by longest paths and loads of its
operators. Shortest paths through units and locations, for all sets of processors at once, show
which problems the best configurations ask for at least. If these are solved, and numbers replaced
by what was found, until the shortest paths hold solved problems only, the paths' lengths are both
bounds of all configurations and reached ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import permutations, product
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from parapipe.cost.cost_table import CostTable
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.graph.partition import Partition
from parapipe.problems.exit_choices import count_changes
from parapipe.problems.identical_processors import is_leading
from parapipe.problems.problems import (
    MOST_LOCATIONS,
    Request,
    UnitRun,
    copies_count,
    runs_of,
    whole_problem,
    without_copies,
)
from parapipe.problems.time_energy import Locations
from parapipe.search.stages.relaxed_step import (
    MOST_CELLS,
    Step,
    UnitModes,
    bounds_s,
    code_of,
    least_energy_j,
    modes_of,
    places_behind,
)
from parapipe.search.stages.search import FEW_CUTS
from parapipe.solvers.paths import simple_bound_s
from parapipe.solvers.schedule import Names

Numbers = NDArray[np.float64]
MOST_CHOICES = 1296  # of processors for the exits of a unit, where these are limited: 4 of 6
NEAREST = 100  # ways to run a unit that are looked at
PLACES_EACH = 2  # places at a boundary, for each processor, that stages of one processor begin at


@dataclass(frozen=True, slots=True)
class Cell:
    """One request: the unit, which of its steps, the place before, processors, and column."""

    unit: int
    step: int
    place: int
    processors: int
    column: int


class Stretch(NamedTuple):
    """Units between two boundaries, the place at the first one, and processors that may be used."""

    begin: int
    place: int
    end: int
    processors: int


class Relaxed:
    """Bounds of all requests, and the shortest paths through them.

    Parameters
    ----------
    identical
        Groups of identical processors.
    limited
        Whether choices for the exits of a unit, and places at a boundary, are left out where there
        are very many: those in which tensors, in the order in which they are made, change
        processors most often.
    most_cells
        Likewise, of all steps together.
    """

    def __init__(
        self,
        graph: OperatorGraph,
        partition: Partition,
        costs: CostTable,
        identical: Sequence[Sequence[int]],
        *,
        limited: bool = False,
        most_cells: int = MOST_CELLS,
    ) -> None:
        self._network = graph, costs
        self.most_cells = most_cells
        self.limited = limited
        self.count = len(costs.processors)
        self.units = partition.cuts.last
        self._inside = cache(lambda mask: np.flatnonzero(np.arange(1 << self.count) & ~mask == 0))
        every = list(_list_permutations(self.count, identical))
        self._names = cache(lambda mask: _list_distinct(every, mask))
        sets = np.arange(1 << self.count)
        self.sets = [mask for mask in sets.tolist() if mask and is_leading(mask, identical)]
        self.places: list[dict[Locations, int]] = [{} for _ in range(self.units + 1)]
        self.places[0][()] = 0
        self._ages: list[Sequence[tuple[int, int]]] = [()] * (self.units + 1)
        runs = [list(runs_of(graph, partition, costs, unit)) for unit in range(self.units)]
        choices = MOST_CHOICES if limited else inf
        modes = [[modes_of(each.template, self.count, choices) for each in some] for some in runs]
        self.left_out = any(each.template.choices > choices for some in runs for each in some)
        """Whether anything is left out."""
        self._most_places = [self._place_limit(some) if limited else inf for some in (*modes, ())]
        self.steps: list[list[Step]] = []
        for some in zip(runs, modes, strict=True):
            pairs = zip(*some, strict=True)
            self.steps.append([self._step(*each, partition, costs) for each in pairs])
        self._closed: dict[tuple[int, int, bool], Numbers] = {}

    @cached_property
    def least_latency_s(self) -> float:
        """Return what no latency is below, where the shortest path may be, since some are left out.

        Infinite if none are.
        """
        return simple_bound_s(whole_problem(*self._network)) if self.left_out else inf

    def _place_limit(self, some: Sequence[UnitModes]) -> float:
        """Return how many places may be told apart at a boundary, given the ways from there."""
        cells = self.most_cells / self.units / max((len(each.columns) for each in some), default=1)
        return max(self.count**2, cells / (1 << self.count))

    def _step(self, run: UnitRun, own: UnitModes, partition: Partition, costs: CostTable) -> Step:
        unit, modes, size = run.begin, own.modes, len(own.columns)
        able = np.zeros((size, 1 << self.count), bool)
        for column, processors in modes:
            able[column, processors] = True
        # where exits run decides where tensors are behind, not on how many more processors
        by_column = {column: mode for (column, _), mode in modes.items()}
        places = list(self.places[unit])
        behind = places_behind(run.template, [without_copies(at) for at in places], by_column)
        if copies_count({at for row in behind for at in row.values()}, partition):
            copied = places_behind(run.template, places, by_column, copies=True)
            if copies_count({at for row in copied for at in row.values()}, partition):
                behind = copied
        self._ages[run.end] = [
            self._ages[unit][before] if maker is None else (unit, maker)
            for maker, before in run.template.behind
        ]
        number = self._number_places(run.end, [at for row in behind for at in row.values()])
        out = np.zeros((len(places), size), np.int64)
        lost = np.zeros(out.shape, bool)
        for i, row in enumerate(behind):
            for column, at in row.items():
                out[i, column] = number.get(at, 0)
                lost[i, column] = at not in number
        pins = [by_column[c].pins if c in by_column else None for c in range(size)]
        time_s = bounds_s(run.template, places, pins, self.count)
        time_s[:, ~able] = inf
        time_s[lost] = inf
        energy_j = least_energy_j(run, pins, costs)
        energy_j[~able] = inf
        solved = np.zeros(time_s.shape, bool)
        return Step(run, modes, own.columns, time_s, energy_j, out, solved)

    def _number_places(self, boundary: int, reached: list[Locations]) -> Mapping[Locations, int]:
        """Return numbers of places at a boundary, given those that more ways lead to."""
        number = self.places[boundary]
        more = [at for at in dict.fromkeys(reached) if at not in number]
        if len(number) + len(more) > self._most_places[boundary]:
            self.left_out = True
            ages = self._ages[boundary]
            order = sorted(range(len(ages)), key=ages.__getitem__)
            more.sort(key=lambda at: count_changes([at[i][0] for i in order]))
            more = more[: max(0, int(self._most_places[boundary]) - len(number))]
        for at in more:
            number[at] = len(number)
        return number

    def request(self, cell: Cell) -> Request:
        """Return what is asked for."""
        step = self.steps[cell.unit][cell.step]
        at = list(self.places[cell.unit])[cell.place]
        behind = list(self.places[step.run.end])[step.out[cell.place, cell.column]]
        unplaced = step.run.template.unplaced(at, step.modes[cell.column, cell.processors])
        return replace(step.run.request(at, unplaced), locations_out=behind)

    def swap_identical(self, cell: Cell) -> dict[Cell, Names]:
        """Return it with identical processors in all orders, itself included, and their names."""
        step = self.steps[cell.unit][cell.step]
        at = list(self.places[cell.unit])[cell.place]
        cells: dict[Cell, Names] = {}
        concerned = cell.processors | sum(1 << p for p in {p for each in at for p in each})
        for names in self._names(concerned):
            there = tuple((names[each[0]], *sorted(names[p] for p in each[1:])) for each in at)
            processors = sum(1 << names[p] for p in range(self.count) if cell.processors >> p & 1)
            pins = step.modes[cell.column, cell.processors].pins.values()
            code = code_of(processors, [names[p] for p in pins], self.count)
            if there in self.places[cell.unit] and code in step.columns:
                place, column = self.places[cell.unit][there], step.columns[code]
                cells.setdefault(Cell(cell.unit, cell.step, place, processors, column), names)
        return cells

    def set_bound(self, cell: Cell, time_s: float, used: int) -> None:
        """Take what is proven of a request for its bound, and for those on fewer processors.

        Parameters
        ----------
        used
            Processors that its schedule really uses.
        """
        step = self.steps[cell.unit][cell.step]
        row_s = step.time_s[cell.place, cell.column]
        sets = np.arange(len(row_s))
        fewer = sets & ~cell.processors == 0
        if cell.column >= self.count:  # what one processor does alone is a column of its own
            row_s[fewer] = np.maximum(row_s[fewer], time_s)
        else:
            row_s[cell.processors] = max(time_s, row_s[cell.processors])
        step.solved[cell.place, cell.column] |= fewer & (used & ~sets == 0)
        for solved in (False, True):
            self._closed.pop((cell.unit, cell.step, solved), None)

    def is_solved(self, cell: Cell) -> bool:
        """Tell whether a schedule of it, or of one on more processors, answers it."""
        step = self.steps[cell.unit][cell.step]
        return bool(step.solved[cell.place, cell.column, cell.processors])

    def cells_of_pipelines(self) -> list[Cell]:
        """Return what stages of one processor each ask for; few of them if there are many."""
        cells: dict[Cell, None] = {}
        units = self.units
        most = units if units <= FEW_CUTS * 3 else FEW_CUTS
        begins = {round(i * units / most) for i in range(most)}
        most_places = PLACES_EACH * self.count if self.limited else MOST_LOCATIONS
        reached: list[set[tuple[int, int]]] = [{(0, 0)}, *(set() for _ in range(units))]
        for unit, steps in enumerate(self.steps):
            places = list(self.places[unit])
            spread = [len({p for each in at for p in each}) for at in places]
            here = sorted(reached[unit], key=lambda each: (spread[each[0]], each))
            for place, before in here[:most_places]:
                processors = range(self.count) if unit in begins else (before,)
                for p, (number, step) in product(processors, enumerate(steps)):
                    if step.time_s[place, p, 1 << p] < inf:
                        cells[Cell(unit, number, place, 1 << p, p)] = None
                        reached[step.run.end].add((int(step.out[place, p]), p))
        return list(cells)

    def least_latency(self, sets: Sequence[int]) -> tuple[float, list[Cell]]:
        """Return the least latency, in seconds, and what shortest paths ask for, by some sets."""
        behind = self._least_to_end_s()
        cells = [
            cell
            for mask in sets
            if behind[0][0, mask] < inf
            for cell in self._trace_path(behind, mask)
        ]
        return float(behind[0][0, -1]), cells

    def least_energy(self) -> list[Cell]:
        """Return what paths of least dynamic energy ask for, by any set."""
        times = [[step.time_s.copy() for step in some] for some in self.steps]
        for some in self.steps:
            for step in some:
                step.time_s[:] = np.where(step.time_s < inf, step.energy_j[None], inf)
        self._closed.clear()
        cells = self.least_latency(self.sets)[1]
        for some, before in zip(self.steps, times, strict=True):
            for step, time_s in zip(some, before, strict=True):
                step.time_s[:] = time_s
        self._closed.clear()
        return cells

    def shortest(self) -> list[Cell]:
        """Return what a shortest path asks for, by any set."""
        return self._trace_path(self._least_to_end_s(), self.sets[-1])

    def _least_to_end_s(self) -> list[Numbers]:
        """Return the least time from each place to the end, by boundary: [place, set]."""
        sets = 1 << self.count
        least_s = [np.zeros((len(some), sets)) for some in self.places]
        for unit in reversed(range(self.units)):
            least_s[unit][:] = inf
            for number, step in enumerate(self.steps[unit]):
                through_s = self.bounds_within(unit, number) + least_s[step.run.end][step.out]
                np.minimum(least_s[unit], through_s.min(axis=1), out=least_s[unit])
        return least_s

    def bounds_within(self, unit: int, number: int, *, solved: bool = False) -> Numbers:
        """Return bounds by the processors that may be used, instead of those that are."""
        key = unit, number, solved
        if key not in self._closed:
            step = self.steps[unit][number]
            bounds = np.where(step.solved, step.time_s, inf) if solved else step.time_s.copy()
            self._closed[key] = _least_of_subsets(bounds)
        return self._closed[key]

    def _trace_path(self, behind: Sequence[Numbers], mask: int) -> list[Cell]:
        """Return what a shortest path on some processors asks for."""
        cells: list[Cell] = []
        unit = place = 0
        while unit < self.units:
            best = (inf, 0, 0)
            for number, step in enumerate(self.steps[unit]):
                rest_s = behind[step.run.end][step.out[place], mask]
                modes_s = self.bounds_within(unit, number)[place, :, mask] + rest_s
                column = int(modes_s.argmin())
                best = min(best, (float(modes_s[column]), number, column))
            _, number, column = best
            step = self.steps[unit][number]
            cells.append(self.cell_of_most(unit, number, place, column, mask))
            unit, place = step.run.end, int(step.out[place, column])
        return cells

    def cell_of_most(self, unit: int, number: int, place: int, column: int, mask: int) -> Cell:
        """Return the cell of most processors of a set: what many may do bounds what few do."""
        row_s = self.steps[unit][number].time_s[place, column]
        inside = self._inside(mask)
        least = inside[row_s[inside] == row_s[inside].min()].tolist()
        return Cell(unit, number, place, max(least, key=int.bit_count), column)

    def least_between(self, stretch: Stretch) -> tuple[float, float, list[tuple[float, Cell]]]:
        """Return what a stretch on some processors takes at least and at most, and what decides it.

        Returns
        -------
        Seconds at least and, by known schedules alone, at most; and what is not known of paths that
        may be shorter than that, each with the length of the shortest through it, ascending.
        """
        begin, place, end, mask = stretch
        lower: dict[tuple[int, int], Numbers] = {}
        rest = [np.full(len(some), inf) for some in self.places]
        most = [np.full(len(some), inf) for some in self.places]
        rest[end] = most[end] = np.zeros(len(self.places[end]))
        for unit in reversed(range(begin, end)):
            for number, step in enumerate(self.steps[unit]):
                if step.run.end <= end:
                    least = lower[unit, number] = self.bounds_within(unit, number)[:, :, mask]
                    solved = self.bounds_within(unit, number, solved=True)[:, :, mask]
                    for total, modes in ((rest, least), (most, solved)):
                        through = (modes + total[step.run.end][step.out]).min(axis=1)
                        total[unit] = np.minimum(total[unit], through)
        first = [np.full(len(some), inf) for some in self.places]
        first[begin][place] = 0.0
        limit_s, unsolved = float(most[begin][place]), []
        for unit in range(begin, end):
            for number, step in enumerate(self.steps[unit]):
                if (unit, number) not in lower:
                    continue
                reached = first[unit][:, None] + lower[unit, number]
                np.minimum.at(first[step.run.end], step.out, reached)
                through = reached + rest[step.run.end][step.out]
                near = np.argwhere((through < limit_s) & np.isfinite(through))
                lengths_s = through[tuple(near.T)]
                some = np.argsort(lengths_s, kind="stable")[:NEAREST]
                for length_s, (at, column) in zip(
                    lengths_s[some].tolist(), near[some].tolist(), strict=True
                ):
                    cell = self.cell_of_most(unit, number, at, column, mask)
                    if not self.is_solved(cell):
                        unsolved.append((length_s, cell))
        unsolved.sort(key=lambda each: each[0])
        return float(rest[begin][place]), limit_s, unsolved


def _least_of_subsets(values: Numbers) -> Numbers:
    """Return the least values of all subsets; the last axis holds those of sets."""
    values = np.ascontiguousarray(values)
    sets = values.shape[-1]
    for p in range(sets.bit_length() - 1):
        halves = values.reshape(*values.shape[:-1], sets >> (p + 1), 2, 1 << p)
        np.minimum(halves[..., 1, :], halves[..., 0, :], out=halves[..., 1, :])
    return values


def _list_distinct(every: Sequence[Names], mask: int) -> list[Names]:
    """Return names of processors that differ on some of these, the first of equal ones."""
    some = [p for p in range(len(every[0])) if mask >> p & 1]
    return list({tuple(names[p] for p in some): names for names in reversed(every)}.values())[::-1]


def _list_permutations(count: int, identical: Sequence[Sequence[int]]) -> Iterator[Names]:
    for orders in product(*(permutations(group) for group in identical)):
        names = list(range(count))
        for group, order in zip(identical, orders, strict=True):
            for p, q in zip(group, order, strict=True):
                names[p] = q
        yield tuple(names)
