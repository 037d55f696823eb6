"""From costs to configurations: solve every mapping problem once, search, and name the winners."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import inf
from typing import TYPE_CHECKING

from parapipe.cost.cost_table import CostTable
from parapipe.files.progress import Tell
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.graph.partition import Partition
from parapipe.mappings.configuration import CLOSE, Configuration
from parapipe.mappings.feedback import state_ends
from parapipe.mappings.restriction import Restriction
from parapipe.problems.cache import Cache
from parapipe.problems.identical_processors import (
    identical_processors,
    replica_sets,
    replicable,
)
from parapipe.problems.method import Method
from parapipe.problems.solve import SolvedQuestions, Solver
from parapipe.processes.deadline import Deadline, OverError
from parapipe.processes.memory_limit import SHORT_OF_MEMORY
from parapipe.processes.workers import shared_processes
from parapipe.search.candidate_selection import (
    as_configurations,
    exact_near_rate,
    select_candidates,
    within_limit,
    within_segments,
)
from parapipe.search.contract import Moment, SearchProblem
from parapipe.search.exploration_result import Exploration, UnfinishedRow, by_processors
from parapipe.search.explored_bounds import ExploredBounds
from parapipe.search.infeasible import absent_kinds, check_times
from parapipe.search.loaded_costs import ExpectedLoad, additive, is_additive
from parapipe.search.options import MapOptions
from parapipe.search.stages.candidates import Candidate, configure, evaluate_candidate
from parapipe.search.stages.finest_cuts import MOST_REQUESTS, all_requests, many_requests
from parapipe.search.stages.problem_order import OtherTables, Periods, PromisingRequests
from parapipe.search.stages.relaxed import Relaxed
from parapipe.search.stages.relaxed_step import most_cells
from parapipe.search.stages.stage_incumbents import ListSchedules, StageSearches
from parapipe.search.stages.stage_search import StageProblems, StageSearch

if TYPE_CHECKING:
    from parapipe.search.co_run_search import CoRunSearch
    from parapipe.search.contract import Search, SplitSources

LOADED = ("stages", "split", "interleaved")  # searches with times under expected loads
LATER_SHARE = 0.25  # of a budget, for searches behind that over stages, if there are any


@dataclass(slots=True)
class SearchSequence:
    """An exploration on its way.

    Parameters
    ----------
    results
        What searches have yielded, but for those of memory.
    refused
        Likewise, what the options do not allow; stages are looked at in the end.
    complete
        Whether all has been searched.
    co_runs
        Evaluates candidates where times depend on the mapping: with processors that slow each other
        down, or with launches of captured graphs. None where they do not.
    """

    stages: StageProblems
    searches: Sequence[Search]
    sources: SplitSources | None = None
    results: list[Candidate] = field(default_factory=list)
    refused: list[Candidate] = field(default_factory=list)
    lacking: dict[str, str] = field(default_factory=dict)
    complete: bool = False
    co_runs: CoRunSearch | None = None

    @property
    def restriction(self) -> Restriction:
        """What the options allow."""
        options = self.stages.searches.options
        return Restriction(options.max_stages, options.rate_fps)

    @property
    def configurations(self) -> list[Configuration]:
        """What searches beside that over stages have yielded, but for those of memory."""
        return [each for each in self.results if isinstance(each, Configuration)]

    def run_all(self) -> None:
        """Run all searches but those of memory; OverError where time runs out."""
        later = any(each.moment is Moment.LATER for each in self.searches)
        with self.stages.deadline.earlier(LATER_SHARE if later else 0.0):
            self.run_searches(Moment.FIRST, self.results)
            self.run_searches(Moment.STAGES, self.results)
            self.complete = not self.stages.deadline.over
        if self.results:
            self.run_searches(Moment.LATER, self.results)

    def run_searches(
        self, moment: Moment, into: list[Candidate], incumbents: Sequence[Candidate] = ()
    ) -> None:
        """Add what the searches of a moment find, each of which knows what those before found."""
        for search in self.searches:
            if search.moment is moment:
                best = [*incumbents, *into]
                more = search.run(self.problem(moment), best, self.stages.deadline)
                first = moment is Moment.FIRST
                into += more if first else self.restriction.allowed(more, self.refused)

    def has_search(self, name: str) -> bool:
        """Whether a search of that name is among them."""
        return any(each.name == name for each in self.searches)

    def problem(self, moment: Moment) -> SearchProblem:
        """Return what a search of a moment is given."""
        stages, searches = self.stages, self.stages.searches
        schedules = (lambda: stages.fastest) if moment is Moment.STAGES else stages.shortest
        return SearchProblem(
            stages.graph, searches.partition, searches.tables, searches.identical, searches.options,
            schedules, searches.reporter, stages.undone.append, self.lacking,
            stages.is_helping_worth, self.sources, stages,
        )  # fmt: skip

    def result(self) -> Exploration:
        """Choose from what has been found: of the last searches, or of all if they were ended."""
        stages, searches = self.stages, self.stages.searches
        options, tables = searches.options, searches.tables
        resolution = options.resolution
        if not self.complete:
            stages.undone.append("the search over stages and schedules was ended early")
        if stages.deadline.short_of_memory:
            stages.undone.append(SHORT_OF_MEMORY)
        if searches.large:
            share = options.energy_resolution * stages.searches.counts_energy
            resolution = max(resolution, share)
            stages.undone += searches.left_out(resolution)
        candidates, bounds = self.candidates(), self.bounds()
        budget = any(table.power_budget_w is not None for table in tables)
        if stages.graph.states or budget:  # stages know nothing of loops, or of the power
            sized = any(each.moment is Moment.MEMORY for each in self.searches)
            form = configure if sized or self.co_runs else evaluate_candidate
            candidates = [form(each, stages.graph, tables) for each in candidates]
        if self.co_runs:
            with stages.deadline.ending():
                candidates = [*self.co_runs.run(candidates)]
            bounds = replace(bounds, splits=[*self.co_runs.split_models])
        every: Sequence[Candidate] = [
            *exact_near_rate(candidates, self.restriction, stages.graph, tables)
        ]
        self.check_allowed(every, bounds)
        refused: list[Candidate] = []
        every = [*self.restriction.allowed(every, refused)]
        if self.has_search("few-segments"):
            every = self.fit_segments(every)
        if any(each.moment is Moment.MEMORY for each in self.searches):
            every = fitting = self.fit_memory(every)
            if self.has_search("few-segments"):
                every = within_segments(fitting, self.problem(Moment.MEMORY))
        answers = {**stages.lists.answers, **stages.answers}
        chosen = select_candidates(
            every,
            tables[0].processors,
            energy=options.energy,
            resolution=resolution,
            large=searches.large or bool(self.co_runs and self.co_runs.has_many),
            memory=options.memory,
        )
        configurations = as_configurations(chosen, stages.graph, tables, options)
        known, cuts, most = [*candidates, *chosen], searches.partition, options.max_stages
        absent = absent_kinds(
            known, stages.graph, cuts, tables[0], most_stages=most, complete=self.complete
        )
        self.lacking |= self.restriction.lacking([*refused, *self.refused], chosen)
        found, free = tuple(map(bounds.with_bounds, configurations)), None
        if self.co_runs:
            alone = bounds.unfinished(())
            found = tuple(self.co_runs.with_free_bounds(configurations, alone))
            free = alone if self.co_runs.tables[0].co_run else None
        return Exploration(
            found,
            {question.problem: answer.schedules[0] for question, answer in answers.items()},
            absent | self.lacking,
            frozenset(question.problem for question in stages.solved.cached),
            by_processors(tables, stages.requests),
            stages.sets.solved if stages.sets else SolvedQuestions({}, frozenset()),
            resolution,
            self._energy_resolution(configurations),
            stages.trades and stages.traded.timed_out,
            self.unfinished(bounds),
            stages.deadline.interrupted,
            free,
        )

    def _energy_resolution(self, configurations: Sequence[Configuration]) -> float | None:
        """Return what `Exploration` says of it.

        The search over stages counts the least that the memory needs, wherever operators run. Where
        it may need more, and that may decide, no share is known. Nor is it where a state's loop
        decides: the search over stages does not count it.
        """
        stages = self.stages
        if not stages.trades:
            return None
        if any(each.evaluated.sequences not in {None, 1} for each in configurations):
            return inf
        least_s, most_s = stages.searches.tables[0].memory_range_s()
        decides = most_s > min((each.period_s for each in configurations), default=0.0)
        return inf if decides and most_s > least_s * (1 + CLOSE) else stages.traded.resolution

    def check_allowed(self, some: Sequence[Candidate], bounds: ExploredBounds) -> None:
        """Raise a MappingError if the options allow nothing of what was found."""
        if self.stages.deadline.interrupted and not any(self.restriction.allowed(some)):
            raise KeyboardInterrupt
        model = self.stages.searches.model
        every = [*some, *self.refused]
        self.restriction.check(model, every, lambda: bounds.unfinished(()).period_s)

    def fit_segments(self, candidates: Sequence[Candidate]) -> Sequence[Candidate]:
        """Return what keeps the limit of segments, of what was found and of others with fewer."""
        stages, some = self.stages, list[Candidate]()
        with stages.deadline.ending():
            self.run_searches(Moment.SEGMENTS, some, candidates)
        every = self.configured(some)
        self.check_allowed(every, self.bounds())
        if self.complete and stages.deadline.interrupted:
            stages.undone.append("the search for fewer segments was ended early")
        fitting = within_segments(every, self.problem(Moment.SEGMENTS))
        return candidates if len(fitting) == len(every) == len(candidates) else fitting

    def fit_memory(self, candidates: Sequence[Candidate]) -> list[Configuration]:
        """Return what keeps the limit of memory, of what was found and of others that need less."""
        stages, sized = self.stages, list[Candidate]()
        with stages.deadline.ending():
            incumbents = [*candidates, *stages.searches.incumbents]
            self.run_searches(Moment.MEMORY, sized, incumbents)
        self.check_allowed(sized, self.bounds())
        fitting = within_limit(self.configured(sized), self.problem(Moment.MEMORY), stages.deadline)
        if self.complete and stages.deadline.interrupted:
            stages.undone.append("the search for what needs less memory was ended early")
        return fitting

    def configured(self, some: Sequence[Candidate]) -> list[Configuration]:
        """Return candidates with what they take, also while processors slow each other down."""
        stages = self.stages
        every = [configure(each, stages.graph, stages.searches.tables) for each in some]
        return self.co_runs.evaluated(every) if self.co_runs else every

    def candidates(self) -> list[Candidate]:
        """Return what there is to choose from: of stages ended early, all that was found."""
        if self.complete:
            return self.results
        return [*self.stages.searches.incumbents, *self.configurations]

    def bounds(self) -> ExploredBounds:
        """Return bounds of all that may be listed."""
        stages, configurations = self.stages, self.configurations
        own = (each.least for each in configurations if not each.split)
        splits = {id(each.split): each.split for each in configurations if each.split}
        return ExploredBounds(
            stages,
            complete=self.complete and not stages.others.left_out,
            interleaved=self.has_search("interleaved") or bool(stages.searches.options.search),
            interleaved_s=min((each.period_s for each in own if each), default=inf),
            splits=[*splits.values()],
            changed=self.co_runs is not None,
        )

    def unfinished(self, bounds: ExploredBounds) -> UnfinishedRow | None:
        """Say what was left undone; None if nothing."""
        undone = tuple(self.stages.undone)
        if undone and self.has_search("split"):
            undone += ("of operators split, the bounds hold for the ways to split that were found",)
        return bounds.unfinished(undone) if undone else None


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
    searches: Sequence[Search] = (StageSearch(),),
    sources: SplitSources | None = None,
    deadline: Deadline | None = None,
    most_requests: int = MOST_REQUESTS,
) -> Exploration:
    """Map every subgraph on every set of processors, then search all stages built from them.

    After a few seconds, and now and then from then on, a search with what has been solved gives a
    front, list schedules standing in for the rest; with a budget there is one before all else. Then
    an interruption ends the work with the best so far, as the end of the budget does. A budget
    changes nothing but when the work ends, so no greater one gives a worse front: for each
    configuration found with less time, one at least as good in all objectives is found with more.
    What work to its end finds matches those that were found on its way to within the resolutions
    that `Exploration` states.

    Parameters
    ----------
    others
        Cost tables of other operating points or divisions: on the same processors, and perhaps on
        more behind them. A configuration rests on one table; the front is that of all together, of
        the others with their shortest schedules only.
    options
        Those of model, platform and costs are not looked at. With energy as an objective and a
        mapper that proves schedules shortest, what concerns latency and throughput stays exact.
    cache, executor
        As for `solve`.
    searches
        What is searched, see `requested_searches`; options that ask for others have no effect.
    sources
        For searches that split operators.
    deadline
        The end of the budget, if it began to count before.
    most_requests
        Of a cost table that are all built and solved; of more, those that look promising.

    Raises
    ------
    MappingError
        No configuration exists.
    """
    check_times(graph, costs)
    deadline = deadline or Deadline(inf if options.budget_s is None else options.budget_s)
    deadline.start_exploring()
    with_laws = (costs, *others)
    if sources:
        sources = replace(sources, platform=sources.platform.without_co_runs())
    tables = tuple(map(additive, with_laws))
    costs = tables[0]
    many = many_requests(graph, partition, costs, most_requests)
    requests = () if many or options.budget_s is not None else all_requests(graph, partition, costs)
    method = Method(**options.where(lambda option: option.solves))
    identical = tuple(identical_processors(graph, table) for table in tables)
    promising, cells = None, most_cells(deadline.memory)
    if not requests:
        relaxed = Relaxed(graph, partition, costs, identical[0], limited=many, most_cells=cells)
        replicas = replica_sets(replicable(identical[0], costs).alone)
        promising = PromisingRequests(relaxed, Periods(relaxed, replicas), options.resolution)
    solver = Solver(method, options.workers, cache, executor, identical[0])
    with shared_processes():
        stages = StageProblems(
            graph,
            (requests, *((),) * len(others)),
            OtherTables(graph, partition, tables[1:], identical[1:], most_requests, cells),
            solver,
            deadline,
            StageSearches(
                graph.source.name,
                partition,
                tables,
                options,
                identical,
                deadline,
                progress,
                [(each.consumer, each.producer) for each in state_ends(graph)],
            ),
            ListSchedules(solver),
            promising,
        )
        sequence = SearchSequence(stages, searches, sources)
        if not is_additive(with_laws[0]):
            from parapipe.search.co_run_search import CoRunSearch

            def explore_loaded(load: ExpectedLoad) -> tuple[Configuration, ...]:
                left = Deadline(deadline.left_s, memory=deadline.memory)
                few = [each for each in searches if each.name in LOADED]
                quick = replace(options, objectives="latency-throughput")
                return explore(
                    graph, partition, load.table(), quick,
                    cache=cache, executor=executor, searches=few, deadline=left,
                    sources=sources and replace(sources, load=load),
                ).found  # fmt: skip

            turns = sequence.has_search("interleaved")
            sequence.co_runs = CoRunSearch(
                graph, with_laws, options, explore_loaded, deadline, turns
            )
        with deadline.ending(), suppress(OverError):
            sequence.run_all()
        return sequence.result()
