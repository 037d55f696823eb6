"""Problems in the order of promise, pipelines within a period, and requests by cost table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from math import inf, sqrt
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from parapipe.cost.cost_table import CostTable
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.graph.partition import Partition
from parapipe.problems.method import Question
from parapipe.problems.problems import Request
from parapipe.processes.deadline import Deadline, OverError
from parapipe.search.stages.finest_cuts import MOST_REQUESTS, all_requests, many_requests
from parapipe.search.stages.labels import first_of_each
from parapipe.search.stages.relaxed import Cell, Numbers, Relaxed, Stretch
from parapipe.search.stages.relaxed_step import MOST_CELLS
from parapipe.solvers.paths import simple_bound_s, supporting
from parapipe.solvers.problem import MappingProblem
from parapipe.solvers.schedule import Answer, Certificate

NEAR = 0.6  # of what a bound is off by: so far it is raised by the next round
CLOSE = 0.8  # of the resolution
AT_ONCE = 60  # problems of a round, for each stage
FINE = 1.01  # of the bound of the period: so far above it is a pipeline looked for
EXACT = 1e-9  # a share that is more than sums of doubles lose

Solve = Callable[[Sequence[Question]], Mapping[Question, Answer]]


class Pipeline(NamedTuple):
    """Stages, with what each asks for, and the time of the longest one in seconds."""

    stages: list[tuple[Stretch, list[Cell]]]
    longest_s: float


class Periods:
    """Pipelines of stages that share no processor; identical processors are used in turn.

    Parameters
    ----------
    replicas
        Sets of processors that may take turns on a stage of one, by the bit mask of their first.
    """

    def __init__(
        self, relaxed: Relaxed, replicas: Mapping[int, Sequence[int]] = MappingProxyType({})
    ) -> None:
        self.relaxed = relaxed
        every = [0, *relaxed.sets]
        firsts = [(first, mask) for first, sets in replicas.items() for mask in sets]
        pairs = [
            (i, own, j, turns)
            for i, before in enumerate(every)
            for j, used in enumerate(every)
            if before < used and before & used == before
            for added in [used & ~before]
            for own, turns in [
                (added, 1),
                *((first, mask.bit_count()) for first, mask in firsts if mask == added),
            ]
        ]
        # of each processors before a stage, its own, and all up to it; the first are ascending
        self._before, self._masks, self._after, self._turns = np.array(pairs).T
        self._first = first_of_each(self._before)
        self._used = np.array(every)

    def within(self, limit_s: float, deadline: Deadline) -> Pipeline | None:
        """Return a pipeline of which no stage takes longer than that; None if there is none.

        A stage that r processors take turns on may take r times as long.

        A stage begins where the one before it has left the tensors. OverError at the deadline.
        """
        units = self.relaxed.units
        # From the end: what is left to do of a stage, by [place, pair] at each boundary. That is
        # nothing where a stage may end, since further ones can do the rest.
        left = [np.zeros((1, len(self._masks)))]
        ends = [np.ones((1, len(self._masks)), bool)]
        early = self._may_run(limit_s)
        for unit in reversed(range(units)):
            deadline.check()
            here = np.full((len(self.relaxed.places[unit]), len(self._masks)), inf)
            for number, step in enumerate(self.relaxed.steps[unit]):
                behind = left[units - step.run.end]
                some = np.flatnonzero(np.isfinite(behind).any(axis=0) & early[unit])
                modes_s = self.relaxed.bounds_within(unit, number)[:, :, self._masks[some]]
                least_s = (modes_s + behind[step.out[:, :, None], some]).min(axis=1)
                here[:, some] = np.minimum(here[:, some], least_s)
            here[here > limit_s * self._turns] = inf
            fits = np.zeros((len(here), len(self._used)), bool)
            may_begin = np.logical_or.reduceat(np.isfinite(here), self._first, axis=1)
            fits[:, self._before[self._first]] = may_begin
            ends.append(fits[:, self._after])
            left.append(np.where(ends[-1], 0.0, here))
        return self._trace(left[::-1], ends[::-1]) if fits[0, 0] else None

    def _may_run(self, limit_s: float) -> NDArray[np.bool_]:
        """Tell where a stage may run a unit: [unit, pair].

        Processors before it are a stage each at most, and so is what it has run itself.
        """
        relaxed = self.relaxed
        until_s = np.full((relaxed.units + 1, 1 << relaxed.count), inf)  # [boundary, set]
        until_s[0] = 0.0
        for unit, some in enumerate(relaxed.steps):
            for number, step in enumerate(some):
                taken_s = until_s[unit] + relaxed.bounds_within(unit, number).min(axis=(0, 1))
                until_s[step.run.end] = np.minimum(until_s[step.run.end], taken_s)
        most_s = limit_s * (self._turns + np.bitwise_count(self._used[self._before]))
        early: NDArray[np.bool_] = until_s[:, self._used[self._after]] <= most_s
        return early

    def _trace(self, left: Sequence[Numbers], ends: Sequence[NDArray[np.bool_]]) -> Pipeline:
        """Return the stages: of all that may come next, one that takes the least time."""
        units, stages, longest_s = self.relaxed.units, [], 0.0
        unit = place = used = 0
        while unit < units:
            begin, at, cells = unit, place, []
            time_s, pair, step, column = self._next_mode(left, unit, place, self._before == used)
            longest_s = max(longest_s, time_s)
            mask, alone = int(self._masks[pair]), np.arange(len(self._masks)) == pair
            while True:
                cells.append(self.relaxed.cell_of_most(unit, step, place, column, mask))
                run = self.relaxed.steps[unit][step]
                unit, place = run.run.end, int(run.out[place, column])
                if ends[unit][place, pair]:
                    break
                _, _, step, column = self._next_mode(left, unit, place, alone)
            stages.append((Stretch(begin, at, unit, mask), cells))
            used = int(self._after[pair])
        return Pipeline(stages, longest_s)

    def _next_mode(
        self, left: Sequence[Numbers], unit: int, place: int, allowed: NDArray[np.bool_]
    ) -> tuple[float, int, int, int]:
        """Return the least time for the rest of a stage: that, pair, number of step, and column.

        Of what r processors take turns on, an r-th of the time.
        """
        pairs, best = np.flatnonzero(allowed), (inf, 0, 0, 0)
        for number, step in enumerate(self.relaxed.steps[unit]):
            modes_s = self.relaxed.bounds_within(unit, number)[place][:, self._masks[pairs]]
            modes_s = (modes_s + left[step.run.end][step.out[place]][:, pairs]) / self._turns[pairs]
            column, i = (int(n) for n in np.unravel_index(modes_s.argmin(), modes_s.shape))
            best = min(best, (float(modes_s[column, i]), int(pairs[i]), number, column))
        return best


@dataclass(slots=True)
class PromisingRequests:
    """Rounds of solving what shortest paths ask for, until they ask for nothing new.

    Parameters
    ----------
    relaxed
        Bounds of all requests; what is proven of solved ones replaces them.
    periods
        Likewise of the longest stage.
    resolution
        What latency may be off by, as a share, so that its bound is good enough.
    answers
        What has been solved.
    most_latency_s, most_period_s
        What known schedules reach.
    """

    relaxed: Relaxed
    periods: Periods
    resolution: float = 0.0
    answers: dict[Question, Answer] = field(default_factory=dict)
    most_latency_s: float = inf
    most_period_s: float = inf
    _latency_s: float = 0.0
    _period_s: float = 0.0
    _cells: dict[Cell, None] = field(default_factory=dict)

    @property
    def latency_s(self) -> float:
        """No configuration has less."""
        return min(self._latency_s, self.relaxed.least_latency_s)

    @property
    def period_s(self) -> float:
        """No configuration has less."""
        # of all stages together the longest takes its share at least
        return min(self._period_s, self.relaxed.least_latency_s / self.relaxed.count * (1 - EXACT))

    @property
    def reasons(self) -> Iterator[str]:
        """Say what is left out if these are all problems that are solved."""
        yield (
            "there are too many subgraphs, processors and locations of tensors: only those were "
            "looked at that the shortest latencies, periods and energies ask for"
        )
        if self.relaxed.left_out:
            yield (
                "where very many tensors are live between subgraphs, only places were looked at in "
                "which tensors made one after the other seldom change processors"
            )
        if self.relaxed.left_out and self.relaxed.most_cells < MOST_CELLS:
            yield "of these places there are fewer, for the limit of memory"

    def solve(
        self, solve: Solve, deadline: Deadline, first: Callable[[], bool] | None = None
    ) -> None:
        """Solve what is asked for, to the deadline: what bounds latency and period alternately.

        Parameters
        ----------
        first
            Called as soon as there are configurations of what has been solved, and again when
            there are better ones; tells whether there are any. Then stages of one processor each
            are solved before all else.
        """
        relaxed, has_configuration = self.relaxed, True
        if first:
            self._solve_round(relaxed.cells_of_pipelines(), solve)
            has_configuration = first()
        self._list_for_latency()
        if has_configuration and deadline.over:
            return
        later = [*relaxed.least_energy(), *relaxed.least_latency(relaxed.sets)[1]]
        # a search finds something there
        alone = [mask for mask in relaxed.sets if mask.bit_count() == 1]
        _, cells = relaxed.least_latency([*alone, relaxed.sets[-1]])
        self._solve_round(cells, solve)
        if first:
            first()
        with suppress(OverError):
            while cells := [
                *self._list_for_latency(),
                *self._list_for_period(deadline),
                *(later := self._list_unsolved(later))[:AT_ONCE],
            ]:
                self._solve_round(cells, solve)

    def _list_for_latency(self) -> list[Cell]:
        """Raise the bound of the latency; return what is to be solved next for it."""
        if self._is_close(self._latency_s, self.most_latency_s):
            return []
        network = Stretch(0, 0, self.relaxed.units, self.relaxed.sets[-1])
        self._latency_s, self.most_latency_s, near = self.relaxed.least_between(network)
        # of all stages together the longest takes its share at least
        self._period_s = max(self._period_s, self._latency_s / self.relaxed.count * (1 - EXACT))
        if self._is_close(self._latency_s, self.most_latency_s):
            return []
        limit_s = self._latency_s + NEAR * (self.most_latency_s - self._latency_s)
        cells = [cell for length_s, cell in near if length_s <= limit_s]
        return cells[:AT_ONCE] or self._list_unsolved(self.relaxed.shortest())

    def _list_for_period(self, deadline: Deadline) -> list[Cell]:
        """Likewise of the period: what a pipeline asks for that is hardly above the bound.

        OverError at the deadline.
        """
        deadline.check()
        best, wider = None, FINE
        while True:
            most_s = self.most_period_s = min(self.most_latency_s, self.most_period_s)
            if self._is_close(self._period_s, most_s):
                return []
            if best and best.longest_s <= self._period_s * FINE:
                return self._list_around(best)
            most_s *= 1 - EXACT
            limit_s = sqrt(self._period_s * best.longest_s) if best else self._period_s * wider
            pipeline = self.periods.within(min(limit_s, most_s), deadline)
            if not pipeline:
                self._period_s, wider = min(limit_s, most_s) * (1 - EXACT), wider**2
            elif self._list_unsolved([cell for _, some in pipeline.stages for cell in some]):
                best = pipeline
            else:
                self.most_period_s, best = pipeline.longest_s, None

    def _list_around(self, pipeline: Pipeline) -> list[Cell]:
        """Return what is not known of a pipeline, and of ways for its stages in the same time."""
        cells = self._list_unsolved([cell for _, some in pipeline.stages for cell in some])
        for stretch, some in pipeline.stages if cells else ():
            if self._list_unsolved(some):
                _, _, near = self.relaxed.least_between(stretch)
                near = [each for each in near if each[0] <= pipeline.longest_s]
                cells += [cell for _, cell in near[:AT_ONCE]]
        return cells

    def _is_close(self, least_s: float, most_s: float) -> bool:
        return most_s * (1 - 3 * EXACT) <= least_s * (1 + self.resolution * CLOSE)

    def _list_unsolved(self, cells: Sequence[Cell]) -> list[Cell]:
        return [cell for cell in cells if not self.relaxed.is_solved(cell)]

    def _solve_round(self, cells: Sequence[Cell], solve: Solve) -> None:
        requests = {cell: self.relaxed.request(cell) for cell in dict.fromkeys(cells)}
        questions = {cell: Question(request.problem) for cell, request in requests.items()}
        self.answers |= solve([*questions.values()])
        for cell, question in questions.items():
            answer = self.answers.get(question)
            for each, names in self.relaxed.swap_identical(cell).items():
                self._cells[each] = None
                if answer:
                    schedule = answer.schedules[0]
                    bound_s = _proven_bound_s(question.problem, schedule.certificate)
                    used = sum(1 << names[p] for p in schedule.used)
                    self.relaxed.set_bound(each, bound_s, used)

    @property
    def requests(self) -> tuple[Request, ...]:
        """What was asked for, likewise for identical processors in other orders."""
        return _sort_requests(self.relaxed, self._cells)


def with_identical(relaxed: Relaxed, cells: Iterable[Cell]) -> tuple[Request, ...]:
    """Return what is asked for, likewise for identical processors in other orders."""
    every = (relaxed.swap_identical(cell) for cell in dict.fromkeys(cells))
    return _sort_requests(relaxed, dict.fromkeys(chain.from_iterable(every)))


def _sort_requests(relaxed: Relaxed, cells: Iterable[Cell]) -> tuple[Request, ...]:
    return tuple(sorted(map(relaxed.request, cells), key=lambda request: request.end))


def _proven_bound_s(problem: MappingProblem, claim: Certificate) -> float:
    """Return what no schedule is shorter than."""
    bound_s = simple_bound_s(problem)
    return max(bound_s, claim.bound_s) if claim.proves == "makespan" else bound_s


LEFT_OUT = (
    "with other operating points or divisions, there are too many subgraphs, processors and "
    "locations of tensors: only those were looked at that the shortest latencies and least "
    "energies ask for before any is solved"
)
NOT_BUILT = "not all subgraphs, processors and locations of tensors were looked at in time"


@dataclass(frozen=True)
class OtherTables:
    """What the cost tables behind the first one are asked for.

    Parameters
    ----------
    identical
        Of each table, groups of identical processors.
    most
        Requests of a table that are all built.
    most_cells
        As of `Relaxed`.
    """

    graph: OperatorGraph
    partition: Partition
    tables: Sequence[CostTable]
    identical: Sequence[Sequence[Sequence[int]]]
    most: int = MOST_REQUESTS
    most_cells: int = MOST_CELLS

    @cached_property
    def left_out(self) -> tuple[str, ...]:
        """Say that requests are left out; nothing if none are."""
        return (LEFT_OUT,) if any(map(self._has_many, self.tables)) else ()

    def requests(self, deadline: Deadline) -> Iterator[tuple[Request, ...]]:
        """Yield the requests of each table; none of those that are not built by the deadline.

        Where all would be too many, those of stages of one processor each and of shortest paths.
        """
        for costs, groups in zip(self.tables, self.identical, strict=True):
            wanted: tuple[Request, ...] = ()
            with suppress(OverError):
                deadline.check()
                if self._has_many(costs):
                    own = self.graph, self.partition, costs, groups
                    relaxed = Relaxed(*own, limited=True, most_cells=self.most_cells)
                    paths = [*relaxed.least_energy(), *relaxed.least_latency(relaxed.sets)[1]]
                    wanted = with_identical(relaxed, [*relaxed.cells_of_pipelines(), *paths])
                else:
                    wanted = all_requests(self.graph, self.partition, costs, deadline)
            yield wanted

    def _has_many(self, costs: CostTable) -> bool:
        return many_requests(self.graph, self.partition, costs, self.most)


def requests_of_pipelines(relaxed: Relaxed) -> tuple[Request, ...]:
    """Return what some pipelines of single processors ask for, few of all that do."""
    return with_identical(relaxed, relaxed.cells_of_pipelines())


def on_one_processor(requests: Iterable[Request]) -> list[Request]:
    """Return the requests in which one processor runs all operators."""
    return [each for each in requests if len(set(chain(*supporting(each.problem)))) == 1]
