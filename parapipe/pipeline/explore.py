"""From costs to configurations: solve every mapping problem once, search, and name the winners."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from itertools import chain
from math import inf
from typing import TYPE_CHECKING

from parapipe.cost.cost_table import CostTable
from parapipe.errors import MappingError
from parapipe.files.progress import Phase, Progress, Tell
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.graph.partition import Partition
from parapipe.mapping.registry import proves_shortest
from parapipe.mapping.schedule import Answer
from parapipe.pipeline.cache import Cache
from parapipe.pipeline.candidate import Candidate
from parapipe.pipeline.choices import NANO, Choice, cheapest_first, lookup, options_of
from parapipe.pipeline.choose import choose
from parapipe.pipeline.configure import configure
from parapipe.pipeline.deadline import Deadline
from parapipe.pipeline.exploration import Exploration
from parapipe.pipeline.identical import identical_processors
from parapipe.pipeline.idle_processors import using_all
from parapipe.pipeline.infeasible import absent, check_times
from parapipe.pipeline.method import Method
from parapipe.pipeline.options import MapOptions
from parapipe.pipeline.periods import Periods
from parapipe.pipeline.problems import Request, requests
from parapipe.pipeline.promising import Promising, many_requests
from parapipe.pipeline.question import Question
from parapipe.pipeline.relaxed import Relaxed
from parapipe.pipeline.search import FEW_CUTS, MOST_CUTS, search
from parapipe.pipeline.solve import Reporter, Solved, Solver, solve, solve_here
from parapipe.pipeline.stage_table import Option, StageTable
from parapipe.pipeline.time_energy import Locations
from parapipe.pipeline.tolerance import EXACT, Tolerance
from parapipe.pipeline.trade_energy import Sets, Traded, coarse, sets_of, trade_energy
from parapipe.pipeline.unfinished import Unfinished, left_out, unfinished
from parapipe.pipeline.workers import KeptProcesses

if TYPE_CHECKING:
    from parapipe.pipeline.split_search import SplitCandidate, Splits

LIST_MAPPER = "heft_cpop"
SOLVING_SHARE = 0.5  # of a budget, for the shortest schedules
TRADING_SHARE = 0.4  # of what is left then, for schedules that trade time for energy
ENERGY_UNITS = 100  # of a network in which energy is searched exactly, all schedules included
LARGE_CUTS = 60  # boundaries of the search with energy if there are more, up to MOST_CUTS units

_Found = Sequence[Candidate]


def explore(
    graph: OperatorGraph,
    partition: Partition,
    costs: CostTable,
    options: MapOptions,
    *,
    cache: Cache | None = None,
    executor: Executor | None = None,
    progress: Tell | None = None,
    others: Sequence[CostTable] = (),
    splits: Splits | None = None,
) -> Exploration:
    """Map every subgraph on every set of processors, then search all stages built from them.

    After a few seconds, a search over few cuts with list schedules gives a first front. From then
    on, an interruption ends the work with the best so far, as the end of the budget does.

    Parameters
    ----------
    others
        Cost tables of other operating points, that differ from `costs` in their numbers only. A
        configuration rests on one table; the front is that of all together, of the others with
        their shortest schedules only.
    options
        Those of model, platform and costs are not looked at. With energy as an objective and a
        mapper that proves schedules shortest, what concerns latency and throughput stays exact.
    cache, executor
        As for `solve`.
    splits
        Searches with operators split; none are if it is not given. See `split_candidates`.

    Raises
    ------
    MappingError
        No configuration exists.
    """
    check_times(graph, costs)
    tables = (costs, *others)
    many = not others and many_requests(graph, partition, costs)
    asked = tuple(() if many else tuple(requests(graph, partition, table)) for table in tables)
    method = Method(options.mapper, options.time_limit_s, options.seed, options.deterministic)
    identical = tuple(identical_processors(graph, table) for table in tables)
    promising = None
    if many or options.budget_s is not None:
        relaxed = Relaxed(graph, partition, costs, identical[0])
        promising = Promising(relaxed, Periods(relaxed), options.resolution)
    with KeptProcesses() as processes:
        run = _Run(
            graph,
            partition,
            tables,
            asked,
            options,
            identical,
            Solver(method, options.workers, cache, executor, identical[0], processes),
            Deadline(inf if options.budget_s is None else options.budget_s),
            progress,
            promising,
            splits,
        )
        return run.explored()


@dataclass(slots=True)
class _Run:
    """An exploration on its way.

    Parameters
    ----------
    quick
        Answers by list schedules, of questions that the mapper had not answered in time.
    first
        What was found with them.
    """

    graph: OperatorGraph
    partition: Partition
    tables: tuple[CostTable, ...]
    asked: tuple[tuple[Request, ...], ...]
    options: MapOptions
    identical: tuple[Sequence[Sequence[int]], ...]
    solver: Solver
    deadline: Deadline
    progress: Tell | None
    promising: Promising | None = None
    splits: Splits | None = None
    quick: dict[Question, Answer] = field(default_factory=dict)
    first: _Found = ()
    best: tuple[float, float] = (inf, inf)
    undone: list[str] = field(default_factory=list)
    searches: int = 0
    report: Reporter | None = None

    def explored(self) -> Exploration:
        """Solve, search, trade energy and choose."""
        if self.promising:
            self.look_ahead(self.promising)
        every = tuple(dict.fromkeys(request for each in self.asked for request in each))
        solved = self.solved([Question(request.problem) for request in every])
        answers = {**self.quick, **solved.answers}
        fastest = [self.fastest(each, answers) for each in self.asked]
        more: list[list[Choice]] = [[] for _ in self.asked]
        if self.undone:  # what a list schedule is good for stays, whatever has been solved
            more = [
                self.fastest([r for r in each if Question(r.problem) in self.quick], self.quick)
                for each in self.asked
            ]
        if self.deadline.seconds < inf:  # what is shown at least, whatever time is left then
            self.first = self.least_times(0, options_of([*fastest[0], *more[0]], self.tables[0]))
        sets, units = None, len(self.partition.units)
        large = units > (ENERGY_UNITS if self.options.energy else MOST_CUTS)
        trades = self.options.energy and proves_shortest(self.options.mapper) and not large
        if trades:
            sets = self.sets(fastest[0])
            fastest[0] = list(sets.fastest)
        found = [self.searched(i, some, more[i]) for i, some in enumerate(fastest)]
        traded = self.traded(sets, found[0]) if sets else Traded((), 0.0, timed_out=False)
        split: list[SplitCandidate] = []
        if self.splits:
            with self.deadline.ending():
                split += self.splits(
                    self.graph,
                    self.partition,
                    self.tables[0],
                    schedules=fastest[0],
                    known=[*found[0], *traded.candidates],
                    identical=self.identical[0],
                    deadline=self.deadline,
                    tell=self.reporter("splitting"),
                    left_out=self.undone.append,
                )
        if self.deadline.over:
            self.undone.append("the search over stages and schedules was ended early")
            found.append(self.first)
        energy, resolution = self.options.energy, self.options.resolution
        if large:
            energy_cuts = 0 if units > MOST_CUTS else LARGE_CUTS
            resolution = max(resolution, self.options.energy_resolution * energy)
            self.undone += left_out(units, MOST_CUTS, energy_cuts if energy else None, resolution)
        # of those equal in all objectives the first is shown: better with its shortest schedules
        every_one: list[Candidate | SplitCandidate] = [*found[0], *traded.candidates]
        every_one += [*chain.from_iterable(found[1:]), *split]
        names = self.tables[0].processors
        chosen = choose(every_one, names, energy=energy, resolution=resolution, large=large)
        return Exploration(
            tuple(configure(each, self.graph, self.tables) for each in chosen),
            {question.problem: answer.schedules[0] for question, answer in answers.items()},
            absent(list(chain.from_iterable(found)), self.graph, self.partition, self.tables[0]),
            frozenset(question.problem for question in solved.cached),
            every,
            sets.solved if sets else Solved({}, frozenset()),
            resolution,
            traded.resolution if trades else None,
            traded.timed_out,
            self.unfinished(fastest[0]) if self.undone else None,
        )

    def look_ahead(self, promising: Promising) -> None:
        """Solve what the best configurations ask for; nothing else if there is too much of it."""
        report = self.reporter("mapping")

        def answered(questions: Sequence[Question]) -> Mapping[Question, Answer]:
            known, deadline = promising.answers, self.deadline
            return solve(questions, self.solver, report, deadline=deadline, known=known).answers

        def first() -> None:
            if some := promising.requests:
                self.first_front(answered([Question(request.problem) for request in some]), some)

        many = not self.asked[0]
        with self.deadline.sooner(SOLVING_SHARE), self.deadline.ending():
            promising.solve(answered, self.deadline, first if many else None)
        if many:
            self.asked = (promising.requests, *self.asked[1:])
            self.undone.append(
                "there are too many subgraphs, processors and locations of tensors: only those "
                "were looked at that the shortest latencies, periods and energies ask for"
            )

    def unfinished(self, fastest: Sequence[Choice]) -> Unfinished:
        """Return what was left undone."""
        if self.promising:
            return Unfinished(tuple(self.undone), self.promising.latency_s, self.promising.period_s)
        return unfinished(self.undone, len(self.partition.units), fastest, self.tables[0])

    def solved(self, questions: Sequence[Question]) -> Solved:
        """Answer questions with the mapper; list schedules answer those that are left."""
        with self.deadline.sooner(SOLVING_SHARE):
            solved = solve(
                questions,
                self.solver,
                self.reporter("mapping"),
                deadline=self.deadline,
                meanwhile=self.first_front,
                known=self.promising.answers if self.promising else None,
            )
        every = dict.fromkeys(questions)
        if left := [question for question in every if question not in solved.answers]:
            if not self.first:
                self.first_front(solved.answers)
            self.take_lists(left)
            self.undone.append(
                f"{len(left)} of {len(every)} subgraphs were not solved in time: list schedules "
                "stand in for them"
            )
        return solved

    def sets(self, fastest: Sequence[Choice]) -> Sets:
        """Find schedules that trade time for energy."""
        with self.deadline.sooner(TRADING_SHARE):
            return sets_of(
                fastest,
                self.tables[0],
                self.solver,
                resolution=self.options.energy_resolution,
                report=self.reporter("trading"),
                deadline=self.deadline,
                meanwhile=None if self.first else lambda: self.few_cuts(fastest),
            )

    def traded(self, sets: Sets, known: Sequence[Candidate]) -> Traded:
        """Search with schedules that trade time for energy."""
        traded = trade_energy(
            sets,
            self.partition,
            self.tables[0],
            resolution=self.options.energy_resolution,
            identical=self.identical[0],
            known=known,
            deadline=self.deadline,
        )
        return replace(traded, resolution=inf, timed_out=True) if self.deadline.over else traded

    def first_front(self, known: Mapping[Question, Answer], some: Sequence[Request] = ()) -> None:
        """Search few cuts, with list schedules for questions without an answer."""
        asked = some or self.asked[0]
        questions = dict.fromkeys(Question(request.problem) for request in asked)
        self.take_lists([question for question in questions if question not in known])
        self.few_cuts(self.fastest(asked, {**self.quick, **known}), pipes=bool(some))

    def few_cuts(self, choices: Sequence[Choice], *, pipes: bool = False) -> None:
        """Find a first front by few cuts; of `pipes`, of one processor for each stage alone."""
        table = StageTable(lookup(options_of(choices, self.tables[0])), energy=False)
        self.first = self.stages(0, table, most_cuts=FEW_CUTS, pipes=pipes)

    def take_lists(self, questions: Iterable[Question]) -> None:
        """Answer questions by list schedules."""
        method = replace(self.solver.method, mapper=LIST_MAPPER)
        left = [question for question in questions if question not in self.quick]
        self.quick |= solve_here(left, method, self.solver.identical)

    def fastest(self, asked: Sequence[Request], answers: Mapping[Question, Answer]) -> list[Choice]:
        """Return the shortest schedule of each request."""
        return [Choice(each, answers[Question(each.problem)].schedules[0]) for each in asked]

    def searched(self, table: int, choices: Sequence[Choice], more: Sequence[Choice]) -> _Found:
        """Search all stages with the schedules of one cost table, and some more.

        The first search is for times alone: it is fast, and finds the best of each kind. What it
        finds is known to the one with energy, for which options that take more in every respect
        than others on fewer processors are left out.
        """
        costs = self.tables[table]
        if proves_shortest(self.options.mapper):
            more = [*more, *using_all(choices, self.identical[table], self.deadline)]
        options = options_of([*choices, *more], costs)
        found = self.least_times(table, options)
        units = len(self.partition.units)
        if not self.options.energy or units > MOST_CUTS:
            return found
        frugal = cheapest_first(options)
        if units <= ENERGY_UNITS:
            exact = StageTable(lookup(frugal), deadline=self.deadline)
            return [*found, *self.stages(table, exact, known=found)]
        share = self.options.energy_resolution
        few, within = coarse(frugal, units, len(costs.processors), share, self.deadline)
        coarser = self.stages(table, few, known=found, tolerance=within, most_cuts=LARGE_CUTS)
        return [*found, *coarser]

    def least_times(
        self, table: int, options: Mapping[tuple[int, Locations], Sequence[Option]]
    ) -> _Found:
        """Search for times alone."""
        known = self.first if self.deadline.over else ()
        return self.stages(table, StageTable(lookup(options), energy=False), known=known)

    def stages(
        self,
        table: int,
        stages: StageTable,
        *,
        known: _Found = (),
        tolerance: Tolerance = EXACT,
        most_cuts: int = MOST_CUTS,
        pipes: bool = False,
    ) -> _Found:
        """Search stages with the options of one cost table."""
        costs = self.tables[table]
        found = search(
            len(self.partition.units),
            stages,
            costs.static_power_w,
            tolerance=tolerance,
            cost_table=table,
            identical=self.identical[table],
            known=known,
            most_cuts=most_cuts,
            pipes=pipes,
            deadline=self.deadline,
            tell=None if most_cuts == FEW_CUTS else self.telling(),
            better=self.better,
        )
        if not (found or known or pipes):
            raise MappingError(
                f"no mapping of '{self.graph.source.name}' exists on this platform: some operators "
                "have no common processor with their neighbours; see the operator support of its "
                "processors"
            )
        return found

    def better(self, found: _Found) -> None:
        """Note the best figures so far; from now on there is something to end with."""
        for each in found:
            self.best = min(self.best[0], each.latency_ns), min(self.best[1], each.period_ns)
        self.deadline.interruptible = self.deadline.interruptible or bool(found)

    def telling(self) -> Callable[[int, int], None]:
        """Return what a search tells; each table has one for times, and one with energy."""
        report = self.report = self.report or self.reporter("searching")
        before, count = self.searches, len(self.tables) * (1 + self.options.energy)
        self.searches += 1
        return lambda done, total: report(before * total + done, count * total)

    def reporter(self, phase: Phase) -> Reporter:
        """Return what tells how far a phase has come that begins now, and the best so far."""

        def tell(progress: Progress) -> None:
            if self.best[1] < inf:
                latency_s, period_s = (best_ns / NANO for best_ns in self.best)
                progress = replace(progress, best_latency_s=latency_s, best_period_s=period_s)
            if self.progress:
                self.progress(progress)

        return Reporter(phase, tell)
