"""The execution modes of a model's operators: whole or split over processors: a split problem."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, combinations, pairwise, product
from math import inf

from parapipe.cost.precision import move_times_s
from parapipe.graph.data_types import CONVERTIBLE_TYPES
from parapipe.graph.operator_graph import Tensor
from parapipe.parts.part import Range, Ranges
from parapipe.parts.run import outside_reads
from parapipe.parts.work import CutAxis, cuttable_axes
from parapipe.search.stages.unit_schedules import Choice
from parapipe.split_search.part_prices import PartPrices
from parapipe.split_search.problem import ExecutionMode, Piece, Region, SplitProblem, SplitTensor

GRID = 16
"""Shares are multiples of one of so many equal ones."""
NEAR = 1
"""Steps of the grid by which shares may differ from those in proportion to speed."""
MOST_VARIED = 3
"""With more processors or operators than this, only shares in proportion to speed are tried."""
LONGEST_RUN = 8
"""Operators that are cut together at most."""
_ROWS, _COLUMNS = 2, 3


@dataclass(frozen=True, slots=True)
class Split:
    """How operators are cut: the mark of a mode.

    Parameters
    ----------
    operators
        Indices in the graph: one, or a run.
    ranges
        Of the last one's result, one for each piece.
    """

    operators: tuple[int, ...]
    ranges: tuple[Range, ...]


PlacedSplit = tuple[tuple[int, ...], Split]
"""Processors, and how they split operators."""


@dataclass
class ExecutionModes:
    """Makes the split problem of a model.

    Parameters
    ----------
    prices
        What operators and their parts take.
    order
        Operators, in the order in which they are run.
    schedules
        Of units, on some of the processors; those on several processors are modes too.
    """

    prices: PartPrices
    order: Sequence[int]
    schedules: Sequence[Choice] = ()

    def __post_init__(self) -> None:
        self.graph, self.platform = self.prices.graph, self.prices.platform
        self.place = {v: i for i, v in enumerate(self.order)}
        produced = (name for operator in self.graph.operators for name in operator.outputs)
        tensors = (name for name in produced if name in self.graph.tensors)
        self.number = {name: i for i, name in enumerate(tensors)}

    def problem(self) -> SplitProblem:
        """Return the problem on all processors of the platform."""
        modes = [list(self._unsplit_modes(v)) for v in self.order]
        for mode in (*self._priced_modes(self._splits()), *self._side_by_side()):
            modes[mode.begin].append(mode)
        return SplitProblem(
            len(self.order),
            len(self.prices.costs.processors),
            tuple(self._tensor(name) for name in self.number),
            tuple(
                max((self.place[v] for v in self.graph.consumers.get(name, ())), default=-1)
                for name in self.number
            ),
            tuple(map(tuple, modes)),
        )

    def near(self, modes: Sequence[ExecutionMode], grid: int) -> Iterator[ExecutionMode]:
        """Yield modes that split the same operators in shares one step of another grid away.

        Parameters
        ----------
        modes
            Those that split none have none near them.
        grid
            Steps from one end of the axis to the other.
        """
        moved = (
            (tuple(piece.processor for piece in mode.pieces), split)
            for mode in modes
            if isinstance(mode.mark, Split)
            for split in self._shifted(mode.mark, grid)
        )
        return self._priced_modes(moved)

    def _shifted(self, split: Split, grid: int) -> Iterator[Split]:
        axis, extent = split.ranges[0].axis, split.ranges[-1].end
        cut = dict(self._cut_axes(split.operators))[axis]
        step = max(1, round(extent / grid / cut.step)) * cut.step
        inner = [each.end for each in split.ranges[:-1]]
        for moves in product((-step, 0, step), repeat=len(inner)):
            bounds = [0, *(at + move for at, move in zip(inner, moves, strict=True)), extent]
            ranges = tuple(Range(axis, *each) for each in pairwise(bounds))
            if (
                any(moves)
                and all(each.begin < each.end for each in ranges)
                and all(self.prices.part(split.operators, each) for each in ranges)
            ):
                yield Split(split.operators, ranges)

    def _priced_modes(self, splits: Iterable[PlacedSplit]) -> Iterator[ExecutionMode]:
        """Yield modes that split operators so; all are collected first, and priced at once."""
        for processors, split in list(splits):
            run = split.operators
            prices = [
                self.prices.taken(run, requested, p)
                for requested, p in zip(split.ranges, processors, strict=True)
            ]
            if max(prices)[0] < inf and self._are_cut_there(split, processors):
                pieces = tuple(
                    self._part_piece(run, *each)
                    for each in zip(split.ranges, processors, prices, strict=True)
                )
                first = self.place[run[0]]
                yield ExecutionMode(first, first + len(run), pieces, split)

    def _unsplit_modes(self, v: int) -> Iterator[ExecutionMode]:
        """Yield the modes to run an operator whole."""
        operator, at = self.graph.operators[v], self.place[v]
        reads = self._regions(dict.fromkeys(self.graph.reads(operator), ()))
        makes = self._regions(dict.fromkeys(operator.outputs, ()))
        for p in self._processors:
            if (time_s := self.prices.expected.time_s(v, p)) < inf:
                energy_j = self.prices.expected.energy_j(v, p)
                yield ExecutionMode(at, at + 1, (Piece(p, time_s, reads, makes, energy_j),))

    def _splits(self) -> Iterator[PlacedSplit]:
        """Yield how operators and runs may be split, each with its processors."""
        for at, v in enumerate(self.order):
            for run in ((v,), *self._runs_from(at)):
                yield from self._splits_of(run, NEAR)

    def _splits_of(self, run: tuple[int, ...], near: int) -> Iterator[PlacedSplit]:
        last = self.graph.operators[run[-1]]
        shape = self.graph.tensors[last.outputs[0]].shape
        for axis, cut in self._cut_axes(run):
            for processors, counts in self._shares(run, near):
                ranges = _ranges_by(axis, shape[axis], cut.step, counts)
                if ranges and all(self.prices.part(run, each) for each in ranges):
                    yield processors, Split(run, ranges)

    def _runs_from(self, at: int) -> Iterator[tuple[int, ...]]:
        """Yield runs that begin at a place: all of each lies on paths from its first to its last.

        Nothing outside reads what they make, but for the last one's result.
        """
        run = [self.order[at]]
        for v in self.order[at + 1 : at + LONGEST_RUN]:
            if not set(run).intersection(self.graph.predecessors(v)):
                return
            run.append(v)
            if all(self._is_read_within(run, u) for u in run[:-1]):
                yield tuple(run)

    def _is_read_within(self, run: Sequence[int], v: int) -> bool:
        """Whether a run holds all readers of an operator's results."""
        produced = [name for name in self.graph.operators[v].outputs if name in self.graph.tensors]
        readers = {w for name in produced for w in self.graph.consumers.get(name, ())}
        return (
            bool(readers) and readers.issubset(run) and not set(produced) & set(self.graph.outputs)
        )

    def _cut_axes(self, run: tuple[int, ...]) -> Iterator[tuple[int, CutAxis]]:
        """Yield axes to cut along: of rows and columns one, of runs no channels.

        Columns cost what rows cost. Cut along channels, every operator of a run would be computed
        wholly by each part, but for the last.
        """
        axes = cuttable_axes(self.graph, [self.graph.operators[v] for v in run])
        for axis, cut in axes.items():
            repeated = axis == _COLUMNS and isinstance(axes.get(_ROWS), CutAxis)
            within = len(run) > 1 and axis < _ROWS
            if isinstance(cut, CutAxis) and not repeated and not within:
                yield axis, cut

    def in_balance(self) -> Iterator[PlacedSplit]:
        """Yield how each operator may be split by itself, in proportion to speed, and where."""
        for v in self.order:
            yield from self._splits_of((v,), near=0)

    def _shares(
        self, run: tuple[int, ...], near: int
    ) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
        """Yield sets of processors with shares in sixteenths, near those in balance."""
        times_s = [sum(self.prices.expected.time_s(v, p) for v in run) for p in self._processors]
        able = [p for p, time_s in enumerate(times_s) if 0 < time_s < inf]
        for size in range(2, len(able) + 1):
            for processors in combinations(able, size):
                speeds = [1 / times_s[p] for p in processors]
                balanced = [round(GRID * speed / sum(speeds)) for speed in speeds[:-1]]
                step = near if max(size, len(run)) <= MOST_VARIED else 0
                moves = product(range(-step, step + 1), repeat=size - 1)
                shares = [
                    tuple(max(1, count + more) for count, more in zip(balanced, moved, strict=True))
                    for moved in moves
                ]
                for some in dict.fromkeys(shares):
                    if sum(some) < GRID:
                        yield processors, (*some, GRID - sum(some))

    def _are_cut_there(self, split: Split, processors: Sequence[int]) -> bool:
        """Whether all processors can cut and join what the parts read and make, by its type."""
        last = self.graph.operators[split.operators[-1]]
        names = {name for name in last.outputs if name in self.graph.tensors}
        for range_ in split.ranges:
            if part := self.prices.part(split.operators, range_):
                names |= {name for name, ranges in outside_reads(part).items() if ranges}
        dtypes = {self.graph.tensors[name].dtype for name in names if name in self.graph.tensors}
        data_types = [set(self.platform.processors[p].data_types) for p in processors]
        return all(dtypes.difference(CONVERTIBLE_TYPES).issubset(types) for types in data_types)

    def _side_by_side(self) -> Iterator[ExecutionMode]:
        """Yield schedules that run the operators of units on several processors."""
        for choice in self.schedules:
            schedule, request = choice.schedule, choice.request
            places = [self.place[v] for v in request.operators]
            flows = zip(request.problem.flows, request.tensors, strict=True)
            read = [(flow.location, name) for flow, name in flows if flow.location is not None]
            in_a_row = places == [*range(places[0], places[0] + len(places))]
            if len(schedule.used) < 2 or not in_a_row or not schedule.used.issuperset(dict(read)):
                continue
            produced = [
                (schedule.processor[i], name)
                for i, v in enumerate(request.operators)
                for name in self.graph.operators[v].outputs
                if not set(self.graph.consumers.get(name, ())).issubset(request.operators)
            ]
            energy_j = dict.fromkeys(sorted(schedule.used), 0.0)
            for v, p in zip(request.operators, schedule.processor, strict=True):
                energy_j[p] += self.prices.expected.energy_j(v, p)
            pieces = tuple(
                Piece(
                    p,
                    schedule.makespan_s,
                    self._regions({name: () for q, name in read if q == p}),
                    self._regions({name: () for q, name in produced if q == p}),
                    energy_j[p],
                )
                for p in energy_j
            )
            yield ExecutionMode(places[0], places[-1] + 1, pieces, choice, joint=True)

    def _part_piece(
        self, run: tuple[int, ...], range_: Range, p: int, price: tuple[float, float]
    ) -> Piece:
        part, last = self.prices.part(run, range_), self.graph.operators[run[-1]]
        assert part is not None
        time_s, energy_j = price
        written = dict.fromkeys(last.outputs, (range_,))
        return Piece(
            p, time_s, self._regions(outside_reads(part)), self._regions(written), energy_j
        )

    def _regions(self, ranges_of: Mapping[str, Ranges]) -> tuple[tuple[int, Region], ...]:
        """Return regions of tensors by their numbers, whole where there are no ranges."""
        return tuple(
            (self.number[name], self._region(name, ranges))
            for name, ranges in ranges_of.items()
            if name in self.number
        )

    def _region(self, name: str, ranges: Ranges) -> Region:
        cut = {each.axis: (each.begin, each.end) for each in ranges}
        shape = self.graph.tensors[name].shape
        return tuple(cut.get(axis, (0, extent)) for axis, extent in enumerate(shape))

    def _tensor(self, name: str) -> SplitTensor:
        tensor = self.graph.tensors[name]
        nothing = Tensor(name, (0,), tensor.dtype)
        working = self.prices.costs.working
        delay_s, full_s = (move_times_s(each, self.platform, working) for each in (nothing, tensor))
        return SplitTensor(
            tensor.shape,
            delay_s,
            tuple(
                tuple(full - delay for full, delay in zip(*rows, strict=True))
                for rows in zip(full_s, delay_s, strict=True)
            ),
            tuple(
                2 * tensor.size_bytes / each.memory.bandwidth_bytes_per_s
                for each in self.platform.processors
            ),
        )

    @cached_property
    def _processors(self) -> range:
        return range(len(self.prices.costs.processors))


def _ranges_by(axis: int, extent: int, step: int, counts: Sequence[int]) -> tuple[Range, ...]:
    """Return ranges of an axis in proportion to counts; none if one of them would be empty."""
    total = sum(counts)
    inner = [round(count / total * extent / step) * step for count in accumulate(counts)]
    bounds = [0, *inner[:-1], extent]
    if any(end <= begin for begin, end in pairwise(bounds)):
        return ()
    return tuple(Range(axis, begin, end) for begin, end in pairwise(bounds))
