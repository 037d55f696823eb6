"""Searches over stages that improve the best configurations so far, the incumbents.

The first of them comes before all else where there is a budget: pipelines of single processors, of
list schedules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import inf

from parapipe.cost.cost_table import CostTable
from parapipe.digits import plain
from parapipe.errors import MappingError
from parapipe.files.progress import Phase, Progress, Tell
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.graph.partition import Partition
from parapipe.mappings.power_budget import may_exceed
from parapipe.problems.identical_processors import Replicable, names_in_order, replicable
from parapipe.problems.method import Question
from parapipe.problems.problems import Request
from parapipe.problems.solve import Reporter, Solver, solve_here
from parapipe.problems.time_energy import EXACT, Tolerance
from parapipe.processes.deadline import Deadline, OverError
from parapipe.search.options import MapOptions
from parapipe.search.stages.candidates import StageCandidate
from parapipe.search.stages.finest_cuts import all_requests
from parapipe.search.stages.loop_cuts import cuts_for_loops
from parapipe.search.stages.options import Options
from parapipe.search.stages.problem_order import on_one_processor, requests_of_pipelines
from parapipe.search.stages.relaxed import Relaxed
from parapipe.search.stages.search import FEW_CUTS, MOST_CUTS, search
from parapipe.search.stages.stage_table import StageTable
from parapipe.search.stages.trade_energy import Sets, TradedStages, coarse_table, trade_energy
from parapipe.search.stages.unit_schedules import (
    Choice,
    cheapest_first,
    options_lookup,
    unit_options,
)
from parapipe.solvers.all_processors import use_all_processors
from parapipe.solvers.problem import NANO, MappingProblem
from parapipe.solvers.registry import proves_shortest
from parapipe.solvers.schedule import (
    Answer,
    Schedule,
    inverse_names,
    rename_processors,
    rename_schedule,
)


def schedules_on_all(
    fastest: Sequence[Choice], identical: Sequence[Sequence[int]], deadline: Deadline
) -> Iterator[Choice]:
    """Yield schedules that use all processors they may, where the shortest ones do not."""
    schedules: dict[MappingProblem, Schedule | None] = {}
    for choice in fastest:
        if deadline.over:
            return
        problem, names = choice.request.problem, None
        if identical:
            names = names_in_order(problem, identical)
            problem = rename_processors(problem, names)
        if problem not in schedules:
            shortest = rename_schedule(choice.schedule, names) if names else choice.schedule
            schedules[problem] = use_all_processors(problem, shortest)
        if schedule := schedules[problem]:
            schedule = rename_schedule(schedule, inverse_names(names)) if names else schedule
            yield Choice(choice.request, schedule)


ENERGY_UNITS = 100  # of a network in which energy is searched exactly, all schedules included
LARGE_CUTS = 60  # boundaries of the search with energy if there are more, up to MOST_CUTS units


@dataclass(slots=True)
class StageSearches:
    """Searches over stages. What they find is kept, so what is known only ever gets better.

    Parameters
    ----------
    model
        Its name, for errors.
    identical
        Of each cost table, groups of identical processors.
    deadline
        When to end with what has been found. A search that it ends has found a part of what it
        would have found with more time.
    loops
        Operators that read a state, and those that write it.
    limited
        Of each cost table, whether a power budget may set the period: then energy counts, too.
    """

    model: str
    partition: Partition
    tables: tuple[CostTable, ...]
    options: MapOptions
    identical: tuple[Sequence[Sequence[int]], ...]
    deadline: Deadline
    progress: Tell | None
    loops: Sequence[tuple[int, int]] = ()
    by_figures: dict[object, StageCandidate] = field(default_factory=dict)
    best: tuple[float, float] = (inf, inf)
    limited: tuple[bool, ...] = field(init=False)
    _started: int = 0
    _report: Reporter | None = None

    def __post_init__(self) -> None:
        self.limited = tuple(map(may_exceed, self.tables))

    @property
    def incumbents(self) -> list[StageCandidate]:
        """All that has been found so far, in the order in which it was."""
        return [*self.by_figures.values()]

    @property
    def counts_energy(self) -> bool:
        """Whether energy is an objective, or may set the period by some cost table."""
        return self.options.energy or any(self.limited)

    @property
    def large(self) -> bool:
        """Whether the network has too many units for an exact search."""
        units = self.partition.cuts.last
        return units > (ENERGY_UNITS if self.counts_energy else MOST_CUTS)

    def replicable(self, table: int) -> Replicable:
        """Return the groups of identical processors of a cost table that may take turns."""
        return replicable(self.identical[table], self.tables[table])

    def left_out(self, resolution: float) -> Iterator[str]:
        """Yield what is left out of the front of a large network, a sentence each.

        Parameters
        ----------
        resolution
            Of the configurations that are shown.
        """
        units, energy = self.partition.cuts.last, ""
        if units > MOST_CUTS:
            yield f"stages begin and end at {MOST_CUTS - 1} of {units - 1} possible places"
        if self.counts_energy:
            few = units <= MOST_CUTS
            places = f"by stages at {LARGE_CUTS - 1} places" if few else "nowhere"
            energy = f"energy is traded {places}, and "
        yield (
            f"{energy}of configurations that match to within a share of {plain(resolution, 3)} one "
            "is shown"
        )

    def first(self, choices: Sequence[Choice], *, pipes: bool) -> bool:
        """Find a first front by few cuts; of `pipes`, of one processor for each stage alone.

        Tells whether there is one.
        """
        times = StageTable(options_lookup(unit_options(choices, self.tables[0])), energy=False)
        return bool(self._search_stages(0, times, (), look=True, most_cuts=FEW_CUTS, pipes=pipes))

    def look(self, table: int, choices: Sequence[Choice]) -> None:
        """Search with the schedules that are known so far for what is better than all found."""
        self._search_table(table, choices, self.incumbents, look=True)

    def search(self, table: int, choices: Sequence[Choice]) -> list[StageCandidate]:
        """Search all stages with the schedules of one cost table."""
        return self._search_table(table, choices, (), look=False)

    def trade(self, sets: Sets, incumbents: Sequence[StageCandidate]) -> TradedStages:
        """Search with schedules that trade time for energy."""
        self.deadline.check()
        traded = trade_energy(
            sets,
            self.partition,
            self.tables[0],
            resolution=self.options.energy_resolution,
            identical=self.identical[0],
            replicable=self.replicable(0),
            incumbents=incumbents,
            most_stages=self.options.max_stages,
            deadline=self.deadline,
            better=self.add,
        )
        self.add(traded.candidates)
        return replace(traded, resolution=inf, timed_out=True) if self.deadline.over else traded

    def add(self, candidates: Sequence[StageCandidate]) -> None:
        """Keep what was found; from now on there is something to end with."""
        for each in candidates:
            self.by_figures.setdefault((each.table, each.nano_objectives, each.processors), each)
            self.best = min(self.best[0], each.latency_ns), min(self.best[1], each.period_ns)
        self.deadline.interruptible = self.deadline.interruptible or bool(candidates)

    def reporter(self, phase: Phase) -> Reporter:
        """Return what tells how far a phase has come that begins now, and the best so far."""

        def report_progress(progress: Progress) -> None:
            if self.best[1] < inf:
                latency_s, period_s = (best_ns / NANO for best_ns in self.best)
                progress = replace(progress, best_latency_s=latency_s, best_period_s=period_s)
            if self.progress:
                self.progress(progress)

        return Reporter(phase, report_progress)

    def _search_table(
        self,
        table: int,
        choices: Sequence[Choice],
        incumbents: Sequence[StageCandidate],
        *,
        look: bool,
    ) -> list[StageCandidate]:
        """Return what is found with the schedules of one cost table.

        The first search is for times alone: it is fast, and finds the best of each kind. What it
        finds is known to the one with energy, for which options that take more in every respect
        than others on fewer processors are left out.
        """
        costs, units = self.tables[table], self.partition.cuts.last
        more: list[Choice] = []
        if proves_shortest(self.options.mapper) and not look:
            more += schedules_on_all(choices, self.identical[table], self.deadline)
        options = unit_options([*choices, *more], costs)
        times = StageTable(options_lookup(options), energy=False)
        candidates = self._search_stages(table, times, incumbents, look=look)
        for cuts in () if look else cuts_for_loops(self.partition, self.loops):
            candidates += self._search_at_cuts(table, options_lookup(options), cuts)
        if not (self.options.energy or self.limited[table]) or units > MOST_CUTS:
            return candidates
        incumbents, low_energy = [*incumbents, *candidates], cheapest_first(options)
        if units <= ENERGY_UNITS:
            stages = StageTable(options_lookup(low_energy), deadline=self.deadline)
            return [*candidates, *self._search_stages(table, stages, incumbents, look=look)]
        share = self.options.energy_resolution
        few, within = coarse_table(low_energy, units, len(costs.processors), share, self.deadline)
        coarser = self._search_stages(
            table, few, incumbents, look=look, tolerance=within, most_cuts=LARGE_CUTS
        )
        return [*candidates, *coarser]

    def _search_at_cuts(
        self, table: int, choices: Options, cuts: Sequence[int]
    ) -> list[StageCandidate]:
        """Search stages that begin and end at some boundaries alone."""
        few, energy = len(cuts) <= LARGE_CUTS, self.options.energy or self.limited[table]
        candidates = search(
            len(cuts) - 1,
            StageTable(choices, energy=energy and few).at_cuts(cuts),
            self.tables[table].static_power_w,
            cost_table=table,
            identical=self.identical[table],
            replicable=self.replicable(table),
            most_stages=self.options.max_stages,
            arrival_s=self.tables[table].least_frame_s,
            power_budget_w=self.tables[table].power_budget_w,
            deadline=self.deadline,
        )
        self.add(candidates)
        return candidates

    def _search_stages(
        self,
        table: int,
        stages: StageTable,
        incumbents: Sequence[StageCandidate],
        *,
        look: bool,
        tolerance: Tolerance = EXACT,
        most_cuts: int = MOST_CUTS,
        pipes: bool = False,
    ) -> list[StageCandidate]:
        """Search stages with the options of one cost table, if there is time left."""
        if self.by_figures:
            self.deadline.check()
        candidates = search(
            self.partition.cuts.last,
            stages,
            self.tables[table].static_power_w,
            tolerance=tolerance,
            cost_table=table,
            identical=self.identical[table],
            replicable=self.replicable(table),
            incumbents=incumbents,
            most_cuts=most_cuts,
            line=self.partition.cuts.line,
            pipes=pipes,
            most_stages=self.options.max_stages,
            arrival_s=self.tables[table].least_frame_s,
            power_budget_w=self.tables[table].power_budget_w,
            deadline=self.deadline,
            tell=None if look else self._reporter_of_search(),
            better=self.add,
        )
        if not (candidates or incumbents or pipes):
            raise MappingError(
                f"no mapping of '{self.model}' exists on this platform: some operators "
                "have no common processor with their neighbours; see the operator support of its "
                "processors"
            )
        self.add(candidates)
        return candidates

    def _reporter_of_search(self) -> Callable[[int, int], None]:
        """Return what a search tells; each table has one for times, and one with energy."""
        report = self._report = self._report or self.reporter("searching")
        before, energy = self._started, self.options.energy
        count = sum(1 + (energy or limited) for limited in self.limited)
        self._started += 1
        return lambda done, total: report(before * total + done, count * total)


LIST_MAPPER = "heft_cpop"


@dataclass(frozen=True, slots=True)
class ListSchedules:
    """Answers by list schedules.

    Parameters
    ----------
    solver
        That of the mapper which they stand in for.
    answers
        Those so far.
    """

    solver: Solver
    answers: dict[Question, Answer] = field(default_factory=dict)

    def add(self, questions: Iterable[Question], deadline: Deadline | None) -> None:
        """Answer questions, to the deadline if there is one."""
        method = replace(self.solver.method, mapper=LIST_MAPPER)
        left = [question for question in questions if question not in self.answers]
        self.answers.update(solve_here(left, method, self.solver.identical, deadline))

    def shortest(
        self, requests: Sequence[Request], solved: Mapping[Question, Answer]
    ) -> list[Choice]:
        """Return the shortest schedule of each request, one by a list where it is not solved."""
        answers = {**self.answers, **solved}
        every = ((each, answers.get(Question(each.problem))) for each in requests)
        return [Choice(each, answer.schedules[0]) for each, answer in every if answer]


def first_front(
    graph: OperatorGraph, relaxed: Relaxed, searches: StageSearches, lists: ListSchedules
) -> tuple[tuple[Request, ...], bool]:
    """Search some pipelines, then build all requests and search the pipelines of these.

    To build all requests may take longer than the budget, so a few come first. If there are no
    pipelines of these, the budget does not count until there is a front.

    Returns
    -------
    All requests, or some if time runs out, and whether they are all.
    """
    requests, complete = requests_of_pipelines(relaxed), False
    _find_pipelines(requests, searches, lists)
    with searches.deadline.ending(), suppress(OverError):
        until = searches.deadline if searches.by_figures else Deadline()
        requests = all_requests(graph, searches.partition, searches.tables[0], until)
        complete = True
        _find_pipelines(on_one_processor(until.each(requests)), searches, lists)
    return requests, complete


def _find_pipelines(
    requests: Iterable[Request], searches: StageSearches, lists: ListSchedules
) -> None:
    """Search pipelines of what needs no solving; of list schedules if there are none.

    OverError at the deadline, once there is a front.
    """
    until = searches.deadline if searches.by_figures else Deadline()
    alone, method = list(until.each(requests)), lists.solver.method
    choices = [
        Choice(each, schedule)
        for each in until.each(alone)
        if (schedule := Question(each.problem).without_choice(method))
    ]
    with searches.deadline.look():
        if searches.first(choices, pipes=True):
            return
    until.check()
    lists.add((Question(each.problem) for each in alone), until)
    choices = lists.shortest(alone, {})
    with searches.deadline.look():
        searches.first(choices, pipes=True)
