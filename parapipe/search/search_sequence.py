"""Explores what a model can do on a platform: stages, operators split, frames interleaved."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from math import inf
from typing import TYPE_CHECKING

from parapipe.graph.operator_graph import OperatorGraph
from parapipe.mappings.configuration import Configuration
from parapipe.processes.deadline import Deadline, OverError
from parapipe.processes.workers import current_processes
from parapipe.search.candidate_selection import (
    as_configurations,
    select_candidates,
    within_limit,
    within_segments,
)
from parapipe.search.contract import Moment, SearchProblem
from parapipe.search.exploration_result import Exploration, UnfinishedRow, by_processors
from parapipe.search.explored_bounds import ExploredBounds
from parapipe.search.infeasible import absent_kinds
from parapipe.search.options import MapOptions
from parapipe.search.problems.method import Question, shortest_of
from parapipe.search.problems.problems import Request
from parapipe.search.problems.solve import SolvedQuestions, Solver, solve
from parapipe.search.stages.candidates import Candidate, StageCandidate
from parapipe.search.stages.problem_order import NOT_BUILT, OtherTables, PromisingRequests
from parapipe.search.stages.stage_incumbents import ListSchedules, StageSearches, first_front
from parapipe.search.stages.trade_energy import Sets, TradedStages, find_sets, joint_questions
from parapipe.search.stages.unit_schedules import Choice
from parapipe.solvers.registry import proves_shortest
from parapipe.solvers.schedule import Answer

if TYPE_CHECKING:
    from parapipe.search.contract import Search, SplitSources

LATER_SHARE = 0.25  # of a budget, for searches behind that over stages, if there are any
HELPED_S = 0.15  # of work so far, from which on a process helps with what follows


@dataclass(slots=True)
class SearchSequence:
    """An exploration on its way.

    Parameters
    ----------
    lists
        Answers to questions that the mapper had not answered when needed.
    solved
        Those of the mapper.
    answers
        Of those, the shortest schedules.
    further
        Searches beside that over stages.
    by_table
        What the last searches have found with the shortest schedules of each cost table.
    configurations
        What searches beside that over stages have found, but for those of memory.
    complete
        Whether all has been searched.
    """

    graph: OperatorGraph
    requests: tuple[tuple[Request, ...], ...]
    others: OtherTables
    solver: Solver
    deadline: Deadline
    searches: StageSearches
    lists: ListSchedules
    promising: PromisingRequests | None = None
    further: Sequence[Search] = ()
    sources: SplitSources | None = None
    solved: SolvedQuestions = field(default_factory=lambda: SolvedQuestions({}, frozenset()))
    answers: Mapping[Question, Answer] = field(default_factory=dict)
    sets: Sets | None = None
    by_table: list[list[StageCandidate]] = field(default_factory=list)
    traded: TradedStages = field(default_factory=lambda: TradedStages((), inf, timed_out=True))
    configurations: list[Configuration] = field(default_factory=list)
    undone: list[str] = field(default_factory=list)
    lacking: dict[str, str] = field(default_factory=dict)
    complete: bool = False

    @property
    def options(self) -> MapOptions:
        """Those of the searches."""
        return self.searches.options

    @property
    def trades(self) -> bool:
        """Whether units may run longer than their shortest schedules to save energy."""
        proves = proves_shortest(self.options.mapper)
        return self.options.energy and proves and not self.searches.large

    def run_all(self) -> None:
        """Search over stages, and with the searches beside that.

        Raises
        ------
        OverError
            Where time runs out.
        """
        if not any(each.moment is Moment.LATER for each in self.further):
            self.run_stage_searches()
            return
        with self.deadline.earlier(LATER_SHARE):
            self.run_stage_searches()
        if candidates := self.candidates():
            self.run_searches(Moment.LATER, candidates, self.first_shortest, self.configurations)

    def run_stage_searches(self) -> None:
        """Solve, search, trade energy and split; OverError where time runs out."""
        if self.promising:
            if not self.promising.relaxed.limited:
                self.find_first_front(self.promising)
            self.solve_promising(self.promising)
        self.requests = (self.requests[0], *self.others.requests(self.deadline))
        self.undone += self.others.left_out
        self.solve()
        fastest = [self.lists.shortest(each, self.answers) for each in self.requests]
        if self.trades:
            if self.deadline.seconds < inf:  # what comes may take long
                self.look(self.answers)
            self.sets = self.trade(fastest[0])
            fastest[0] = list(self.sets.fastest)
        if self.is_helping_worth and (processes := current_processes()):
            processes.start_ahead()
        self.by_table = [self.searches.search(i, some) for i, some in enumerate(fastest)]
        if self.sets:
            self.traded = self.searches.trade(self.sets, self.by_table[0])
        self.deadline.check()
        self.run_searches(
            Moment.STAGES, self.all_candidates(), lambda: fastest[0], self.configurations
        )
        self.complete = not self.deadline.over

    def all_candidates(self) -> list[StageCandidate]:
        """Return what the last searches over stages found; of equals, the first is shown."""
        # so that one is with its shortest schedules, if it is also among those that trade energy
        later = chain.from_iterable(self.by_table[1:])
        return [*self.by_table[0], *self.traded.candidates, *later]

    def find_first_front(self, promising: PromisingRequests) -> None:
        """Find a first front, and build all requests; OverError where these take too long."""
        requests, complete = first_front(self.graph, promising.relaxed, self.searches, self.lists)
        self.requests = (requests, *self.requests[1:])
        if not self.searches.by_figures:
            self.look({})
        if not complete:
            self.undone.append(NOT_BUILT)
            self.solve_promising(promising)  # for its bounds
            raise OverError

    def solve_promising(self, promising: PromisingRequests) -> None:
        """Solve what the best configurations ask for; nothing else if there is too much of it."""
        report = self.searches.reporter("mapping")

        def solve_questions(questions: Sequence[Question]) -> Mapping[Question, Answer]:
            earlier = dict(promising.answers)
            return solve(
                questions,
                self.solver,
                report,
                deadline=self.deadline,
                meanwhile=lambda answers: self.look({**earlier, **answers}),
                earlier=earlier,
            ).answers

        def show_first() -> bool:
            self.look(promising.answers)
            return bool(self.searches.by_figures)

        many = not self.requests[0]
        with self.deadline.ending():
            promising.solve(solve_questions, self.deadline, show_first if many else None)
        if many:
            self.requests = (promising.requests, *self.requests[1:])
            self.undone += promising.reasons

    def solve(self) -> None:
        """Answer all questions with the mapper; list schedules answer those that are left."""
        at_once = self.trades and not self.promising and self.deadline.seconds == inf
        small = self.requests[0] if at_once else ()
        both = joint_questions(small, self.searches.tables[0], self.options.energy_resolution)
        every = (request.problem for each in self.requests for request in each)
        questions = [*dict.fromkeys(both.get(each, Question(each)) for each in every)]
        self.solved = solve(
            questions,
            self.solver,
            self.searches.reporter("mapping"),
            deadline=self.deadline,
            meanwhile=lambda answers: self.look(shortest_of(answers)),
            earlier=self.promising.answers if self.promising else None,
        )
        self.answers = shortest_of(self.solved.answers)
        if left := [question for question in questions if question not in self.solved.answers]:
            if not self.searches.by_figures:
                self.look(self.answers)
            self.add_list_schedules(Question(question.problem) for question in left)
            self.undone.append(
                f"{len(left)} of {len(questions)} subgraphs were not solved in time: list "
                "schedules stand in for them"
            )
            raise OverError

    def look(self, solved: Mapping[Question, Answer]) -> None:
        """Search with what has been solved; list schedules stand in for the rest.

        Other operating points are looked at once all is solved.
        """
        many = self.promising if not self.requests[0] else None
        requests = many.requests if many else self.requests[0]
        questions = (Question(request.problem) for request in requests)
        self.add_list_schedules(question for question in questions if question not in solved)
        choices = self.lists.shortest(requests, solved)
        with self.deadline.look():
            if not self.searches.by_figures:
                self.searches.first(choices, pipes=bool(many))
                return
            self.searches.look(0, choices)
            if solved is self.answers:
                for table, others in enumerate(self.requests[1:], start=1):
                    self.searches.look(table, self.lists.shortest(others, solved))

    def trade(self, fastest: Sequence[Choice]) -> Sets:
        """Find schedules that trade time for energy."""
        looked = self.deadline.seconds < inf

        def look(sets: Sets) -> None:
            nonlocal looked
            if looked:
                with self.deadline.look():
                    self.searches.trade(sets, self.searches.incumbents)
            else:
                self.look(self.answers)
                looked = True

        return find_sets(
            fastest,
            self.searches.tables[0],
            self.solver,
            resolution=self.options.energy_resolution,
            report=self.searches.reporter("trading"),
            before=self.solved,
            deadline=self.deadline,
            meanwhile=look,
        )

    def run_searches(
        self,
        moment: Moment,
        incumbents: Sequence[Candidate],
        schedules: Callable[[], Sequence[Choice]],
        into: list[Configuration],
    ) -> None:
        """Add what the searches of a moment find, each of which knows what those before found."""
        for search in self.further:
            if search.moment is moment:
                best = [*incumbents, *into]
                into += search.run(self.search_problem(schedules), best, self.deadline)

    def has_search(self, name: str) -> bool:
        """Whether a search of that name is among those beside that over stages."""
        return any(each.name == name for each in self.further)

    def first_shortest(self) -> list[Choice]:
        """Return the shortest schedules by the first cost table."""
        return self.lists.shortest(self.requests[0], self.answers)

    def search_problem(self, schedules: Callable[[], Sequence[Choice]]) -> SearchProblem:
        """Return what a search beside that over stages is given."""
        searches = self.searches
        return SearchProblem(
            self.graph, searches.partition, searches.tables, searches.identical, self.options,
            schedules, searches.reporter, self.undone.append, self.lacking, self.is_helping_worth,
            self.sources,
        )  # fmt: skip

    @property
    def is_helping_worth(self) -> bool:
        """Whether a process that helps is worth its start.

        Where the search with stages was over at once, all else is, too. With a budget, none is
        started: how much is found would depend on it.
        """
        solver, deadline = self.solver, self.deadline
        others = solver.jobs > 1 and solver.executor is None and deadline.seconds == inf
        return others and deadline.explored_s > HELPED_S

    def add_list_schedules(self, questions: Iterable[Question]) -> None:
        """Answer questions by list schedules; where others give bounds, to the deadline only."""
        has_bounds = self.promising and self.searches.by_figures
        self.lists.add(questions, self.deadline if has_bounds else None)

    def result(self) -> Exploration:
        """Choose from what has been found: of the last searches, or of all if they were ended."""
        searches, options = self.searches, self.options
        resolution = options.resolution
        if not self.complete:
            self.undone.append("the search over stages and schedules was ended early")
        if searches.large:
            resolution = max(resolution, options.energy_resolution * options.energy)
            self.undone += searches.left_out(resolution)
        candidates = self.candidates()
        every: Sequence[Candidate] = [*candidates, *self.configurations]
        if self.has_search("few-segments"):
            every = self.fit_segments(every)
        if any(each.moment is Moment.MEMORY for each in self.further):
            every = self.fit_memory(every)
            if self.has_search("few-segments"):
                every = within_segments(every, self.search_problem(self.first_shortest))
        tables, answers = searches.tables, {**self.lists.answers, **self.answers}
        bounds = self.bounds()
        chosen = select_candidates(
            every,
            tables[0].processors,
            energy=options.energy,
            resolution=resolution,
            large=searches.large,
            memory=options.memory,
        )
        return Exploration(
            tuple(map(bounds.with_bounds, as_configurations(chosen, self.graph, tables, options))),
            {question.problem: answer.schedules[0] for question, answer in answers.items()},
            absent_kinds([*candidates, *chosen], self.graph, searches.partition, tables[0])
            | self.lacking,
            frozenset(question.problem for question in self.solved.cached),
            by_processors(tables, self.requests),
            self.sets.solved if self.sets else SolvedQuestions({}, frozenset()),
            resolution,
            self.traded.resolution if self.trades else None,
            self.trades and self.traded.timed_out,
            self.unfinished(bounds),
            self.deadline.interrupted,
        )

    def fit_segments(self, candidates: Sequence[Candidate]) -> Sequence[Candidate]:
        """Return what keeps the limit of segments, of what was found and of others with fewer."""
        every: list[Configuration] = []
        with self.deadline.ending():
            self.run_searches(Moment.SEGMENTS, candidates, self.first_shortest, every)
        if self.complete and self.deadline.interrupted:
            self.undone.append("the search for fewer segments was ended early")
        fitting = within_segments(every, self.search_problem(self.first_shortest))
        return candidates if len(fitting) == len(every) == len(candidates) else fitting

    def fit_memory(self, candidates: Sequence[Candidate]) -> list[Configuration]:
        """Return what keeps the limit of memory, of what was found and of others that need less."""
        sized: list[Configuration] = []
        with self.deadline.ending():
            self.run_searches(
                Moment.MEMORY, [*candidates, *self.searches.incumbents], self.first_shortest, sized
            )
        fitting = within_limit(sized, self.search_problem(self.first_shortest), self.deadline)
        if self.complete and self.deadline.interrupted:
            self.undone.append("the search for what needs less memory was ended early")
        return fitting

    def candidates(self) -> list[StageCandidate]:
        """Return what there is to choose from."""
        if not self.complete:
            return self.searches.incumbents
        candidates = self.all_candidates()
        matched = self.trades or (not self.options.energy and proves_shortest(self.options.mapper))
        if self.deadline.seconds < inf and not matched:
            candidates += self.searches.incumbents  # may be better than what the mapper's make
        return candidates

    def bounds(self) -> ExploredBounds:
        """Return bounds of all that may be listed."""
        own = (each.least for each in self.configurations if not each.split)
        splits = {id(each.split): each.split for each in self.configurations if each.split}
        return ExploredBounds(
            self.graph,
            self.searches,
            self.promising if self.undone else None,
            lambda table: self.lists.shortest(self.requests[table], self.answers),
            complete=self.complete and not self.others.left_out,
            interleaved=self.has_search("interleaved") or bool(self.options.search),
            interleaved_s=min((each.period_s for each in own if each), default=inf),
            splits=[*splits.values()],
        )

    def unfinished(self, bounds: ExploredBounds) -> UnfinishedRow | None:
        """Say what was left undone; None if nothing."""
        undone = tuple(self.undone)
        if undone and self.has_search("split"):
            undone += ("of operators split, the bounds hold for the ways to split that were found",)
        return bounds.unfinished(undone) if undone else None
