"""Problems in the order of promise, and what each cost table is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from math import comb, inf, sqrt

from parapipe.cost.cost_table import CostTable
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.graph.partition import CutGraph, Partition, Run
from parapipe.processes.deadline import Deadline, OverError
from parapipe.search.problems.method import Question
from parapipe.search.problems.problems import MOST_LOCATIONS, Request, requests
from parapipe.search.stages.periods import Periods, Pipeline
from parapipe.search.stages.relaxed import Ask, Relaxed, Stretch
from parapipe.solvers.paths import simple_bound_s, supporting
from parapipe.solvers.problem import MappingProblem
from parapipe.solvers.schedule import Answer, Certificate

MOST_REQUESTS = 100_000  # that are all built and solved
NEAR = 0.6  # of what a bound is off by: so far it is raised by the next round
CLOSE = 0.8  # of the resolution
AT_ONCE = 60  # problems of a round, for each stage
FINE = 1.01  # of the bound of the period: so far above it is a pipeline looked for
EXACT = 1e-9  # a share that is more than sums of doubles lose

Answered = Callable[[Sequence[Question]], Mapping[Question, Answer]]


@dataclass(slots=True)
class Promising:
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
    _asked: dict[Ask, None] = field(default_factory=dict)

    @property
    def latency_s(self) -> float:
        """No configuration has less."""
        return min(self._latency_s, self.relaxed.anyhow_s)

    @property
    def period_s(self) -> float:
        """No configuration has less."""
        # of all stages together the longest takes its share at least
        return min(self._period_s, self.relaxed.anyhow_s / self.relaxed.count * (1 - EXACT))

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

    def solve(
        self, answered: Answered, deadline: Deadline, first: Callable[[], bool] | None = None
    ) -> None:
        """Solve what is asked for, to the deadline: what bounds latency and period alternately.

        Parameters
        ----------
        first
            Called as soon as there are configurations of what has been solved, and again when
            there are better ones; tells whether there are any. Then stages of one processor each
            are solved before all else.
        """
        relaxed, known = self.relaxed, True
        if first:
            self._round(relaxed.one_by_one(), answered)
            known = first()
        self._for_latency()
        if known and deadline.over:
            return
        later = [*relaxed.least_energy(), *relaxed.least_latency(relaxed.sets)[1]]
        # a search finds something there
        alone = [mask for mask in relaxed.sets if mask.bit_count() == 1]
        _, asked = relaxed.least_latency([*alone, relaxed.sets[-1]])
        self._round(asked, answered)
        if first:
            first()
        with suppress(OverError):
            while asked := [
                *self._for_latency(),
                *self._for_period(deadline),
                *(later := self._open(later))[:AT_ONCE],
            ]:
                self._round(asked, answered)

    def _for_latency(self) -> list[Ask]:
        """Raise the bound of the latency; return what is to be solved next for it."""
        if self._is_close(self._latency_s, self.most_latency_s):
            return []
        whole = Stretch(0, 0, self.relaxed.units, self.relaxed.sets[-1])
        self._latency_s, self.most_latency_s, near = self.relaxed.between(whole)
        # of all stages together the longest takes its share at least
        self._period_s = max(self._period_s, self._latency_s / self.relaxed.count * (1 - EXACT))
        if self._is_close(self._latency_s, self.most_latency_s):
            return []
        limit_s = self._latency_s + NEAR * (self.most_latency_s - self._latency_s)
        asked = [ask for length_s, ask in near if length_s <= limit_s]
        return asked[:AT_ONCE] or self._open(self.relaxed.shortest())

    def _for_period(self, deadline: Deadline) -> list[Ask]:
        """Likewise of the period: what a pipeline asks for that is hardly above the bound.

        OverError at the deadline.
        """
        deadline.check()
        found, wider = None, FINE
        while True:
            most_s = self.most_period_s = min(self.most_latency_s, self.most_period_s)
            if self._is_close(self._period_s, most_s):
                return []
            if found and found.longest_s <= self._period_s * FINE:
                return self._along(found)
            most_s *= 1 - EXACT
            limit_s = sqrt(self._period_s * found.longest_s) if found else self._period_s * wider
            pipeline = self.periods.within(min(limit_s, most_s), deadline)
            if not pipeline:
                self._period_s, wider = min(limit_s, most_s) * (1 - EXACT), wider**2
            elif self._open([ask for _, some in pipeline.stages for ask in some]):
                found = pipeline
            else:
                self.most_period_s, found = pipeline.longest_s, None

    def _along(self, pipeline: Pipeline) -> list[Ask]:
        """Return what is not known of a pipeline, and of ways for its stages in the same time."""
        asked = self._open([ask for _, some in pipeline.stages for ask in some])
        for stretch, some in pipeline.stages if asked else ():
            if self._open(some):
                _, _, near = self.relaxed.between(stretch)
                near = [each for each in near if each[0] <= pipeline.longest_s]
                asked += [ask for _, ask in near[:AT_ONCE]]
        return asked

    def _is_close(self, least_s: float, most_s: float) -> bool:
        return most_s * (1 - 3 * EXACT) <= least_s * (1 + self.resolution * CLOSE)

    def _open(self, asked: Sequence[Ask]) -> list[Ask]:
        return [ask for ask in asked if not self.relaxed.is_known(ask)]

    def _round(self, asked: Sequence[Ask], answered: Answered) -> None:
        requests = {ask: self.relaxed.request(ask) for ask in dict.fromkeys(asked)}
        questions = {ask: Question(request.problem) for ask, request in requests.items()}
        self.answers |= answered([*questions.values()])
        for ask, question in questions.items():
            found = self.answers.get(question)
            for each, names in self.relaxed.swapped(ask).items():
                self._asked[each] = None
                if found:
                    schedule = found.schedules[0]
                    bound_s = _proven_s(question.problem, schedule.certificate)
                    used = sum(1 << names[p] for p in schedule.used)
                    self.relaxed.put(each, bound_s, used)

    @property
    def requests(self) -> tuple[Request, ...]:
        """What was asked for, likewise for identical processors in other orders."""
        return _in_order(self.relaxed, self._asked)


def with_identical(relaxed: Relaxed, asked: Iterable[Ask]) -> tuple[Request, ...]:
    """Return what is asked for, likewise for identical processors in other orders."""
    every = (relaxed.swapped(ask) for ask in dict.fromkeys(asked))
    return _in_order(relaxed, dict.fromkeys(chain.from_iterable(every)))


def _in_order(relaxed: Relaxed, asked: Iterable[Ask]) -> tuple[Request, ...]:
    return tuple(sorted(map(relaxed.request, asked), key=lambda request: request.end))


def _proven_s(problem: MappingProblem, claim: Certificate) -> float:
    """Return what no schedule is shorter than."""
    bound_s = simple_bound_s(problem)
    return max(bound_s, claim.bound_s) if claim.proves == "makespan" else bound_s


def many_requests(
    graph: OperatorGraph, partition: Partition, costs: CostTable, most: int = MOST_REQUESTS
) -> bool:
    """Tell whether there are too many requests to build them all; an estimate from above."""
    processors, cuts = len(costs.processors), partition.cuts
    found = 0
    for begin, runs in enumerate(cuts.runs):
        live = len(cuts.boundaries[begin])
        places = max(processors**live, MOST_LOCATIONS if live > 1 else 1)
        found += places * sum(ways(graph, cuts, run, processors) for run in runs if run.alone)
    return found > most


def ways(graph: OperatorGraph, cuts: CutGraph, run: Run, processors: int) -> int:
    """Count sets of processors, with every choice for where the exits of a run are."""
    makers = {graph.producer[name] for name in cuts.boundaries[run.end]}
    exits = max(1, len(makers.intersection(run.unit.operators)))
    most = min(processors, len(run.unit.operators))
    return sum(comb(processors, k) * k**exits for k in range(1 if run.alone else 2, most + 1))


LEFT_OUT = (
    "with other operating points or divisions, there are too many subgraphs, processors and "
    "locations of tensors: only those were looked at that the shortest latencies and least "
    "energies ask for before any is solved"
)
NOT_BUILT = "not all subgraphs, processors and locations of tensors were looked at in time"


def all_requests(
    graph: OperatorGraph, partition: Partition, costs: CostTable, deadline: Deadline | None = None
) -> tuple[Request, ...]:
    """Return every request; none if they are too many; OverError if the deadline comes first."""
    if many_requests(graph, partition, costs):
        return ()
    return tuple(requests(graph, partition, costs, deadline))


@dataclass(frozen=True)
class OtherTables:
    """What the cost tables behind the first one are asked for.

    Parameters
    ----------
    identical
        Of each table, groups of identical processors.
    most
        Requests of a table that are all built.
    """

    graph: OperatorGraph
    partition: Partition
    tables: Sequence[CostTable]
    identical: Sequence[Sequence[Sequence[int]]]
    most: int = MOST_REQUESTS

    @cached_property
    def left_out(self) -> tuple[str, ...]:
        """Say that requests are left out; nothing if none are."""
        return (LEFT_OUT,) if any(map(self._many, self.tables)) else ()

    def requests(self, deadline: Deadline) -> Iterator[tuple[Request, ...]]:
        """Yield the requests of each table; none of those that are not built by the deadline.

        Where all would be too many, those of stages of one processor each and of shortest paths.
        """
        for costs, groups in zip(self.tables, self.identical, strict=True):
            asked: tuple[Request, ...] = ()
            with suppress(OverError):
                deadline.check()
                if self._many(costs):
                    asked = _of_paths(
                        Relaxed(self.graph, self.partition, costs, groups, limited=True)
                    )
                else:
                    asked = all_requests(self.graph, self.partition, costs, deadline)
            yield asked

    def _many(self, costs: CostTable) -> bool:
        return many_requests(self.graph, self.partition, costs, self.most)


def _of_paths(relaxed: Relaxed) -> tuple[Request, ...]:
    """Return what is asked for before anything is solved."""
    paths = [*relaxed.least_energy(), *relaxed.least_latency(relaxed.sets)[1]]
    return with_identical(relaxed, [*relaxed.one_by_one(), *paths])


def of_pipelines(relaxed: Relaxed) -> tuple[Request, ...]:
    """Return what some pipelines of single processors ask for, few of all that do."""
    return with_identical(relaxed, relaxed.one_by_one())


def on_one_processor(asked: Iterable[Request]) -> list[Request]:
    """Return the requests in which one processor runs all operators."""
    return [each for each in asked if len(set(chain(*supporting(each.problem)))) == 1]
