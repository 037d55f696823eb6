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
from parapipe.processes.workers import processes_at_hand
from parapipe.search.candidate_selection import choose, listed, within_limit
from parapipe.search.contract import Moment, SearchProblem
from parapipe.search.exploration_result import Exploration, UnfinishedRow, by_processors
from parapipe.search.explored_bounds import ExploredBounds
from parapipe.search.infeasible import absent
from parapipe.search.options import MapOptions
from parapipe.search.problems.method import Question, shortest_of
from parapipe.search.problems.problems import Request
from parapipe.search.problems.solve import Solved, Solver, solve
from parapipe.search.stages.candidates import Candidate, StageCandidate
from parapipe.search.stages.problem_order import NOT_BUILT, OtherTables, Promising
from parapipe.search.stages.stage_incumbents import ListSchedules, Searches, first_front
from parapipe.search.stages.trade_energy import Sets, Traded, both_of, sets_of
from parapipe.search.stages.unit_schedules import Choice
from parapipe.solvers.registry import proves_shortest
from parapipe.solvers.schedule import Answer

if TYPE_CHECKING:
    from parapipe.search.contract import Search, SplitSources

LATER_SHARE = 0.25  # of a budget, for searches behind that over stages, if there are any
HELPED_S = 0.15  # of work so far, from which on a process helps with what follows


@dataclass(slots=True)
class Explorer:
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
    found
        What the last searches have found with the shortest schedules of each cost table.
    more
        What searches beside that over stages have found, but for those of memory.
    whole
        Whether all has been searched.
    """

    graph: OperatorGraph
    asked: tuple[tuple[Request, ...], ...]
    others: OtherTables
    solver: Solver
    deadline: Deadline
    searches: Searches
    lists: ListSchedules
    promising: Promising | None = None
    further: Sequence[Search] = ()
    sources: SplitSources | None = None
    solved: Solved = field(default_factory=lambda: Solved({}, frozenset()))
    answers: Mapping[Question, Answer] = field(default_factory=dict)
    sets: Sets | None = None
    found: list[list[StageCandidate]] = field(default_factory=list)
    traded: Traded = field(default_factory=lambda: Traded((), inf, timed_out=True))
    more: list[Configuration] = field(default_factory=list)
    undone: list[str] = field(default_factory=list)
    lacking: dict[str, str] = field(default_factory=dict)
    whole: bool = False

    @property
    def options(self) -> MapOptions:
        """Those of the searches."""
        return self.searches.options

    @property
    def trades(self) -> bool:
        """Whether units may run longer than their shortest schedules to save energy."""
        proves = proves_shortest(self.options.mapper)
        return self.options.energy and proves and not self.searches.large

    def work(self) -> None:
        """Search over stages, and with the searches beside that.

        Raises
        ------
        OverError
            Where time runs out.
        """
        if not any(each.moment is Moment.LATER for each in self.further):
            self.work_on_stages()
            return
        with self.deadline.earlier(LATER_SHARE):
            self.work_on_stages()
        if found := self.candidates():
            self.run(Moment.LATER, found, self.shortest, self.more)

    def work_on_stages(self) -> None:
        """Solve, search, trade energy and split; OverError where time runs out."""
        if self.promising:
            if not self.promising.relaxed.limited:
                self.begin(self.promising)
            self.look_ahead(self.promising)
        self.asked = (self.asked[0], *self.others.requests(self.deadline))
        self.undone += self.others.left_out
        self.solve()
        fastest = [self.fastest(each, self.answers) for each in self.asked]
        if self.trades:
            if self.deadline.seconds < inf:  # what comes may take long
                self.look(self.answers)
            self.sets = self.trade(fastest[0])
            fastest[0] = list(self.sets.fastest)
        if self.worth_helping and (processes := processes_at_hand()):
            processes.start_ahead()
        self.found = [self.searches.search(i, some) for i, some in enumerate(fastest)]
        if self.sets:
            self.traded = self.searches.trade(self.sets, self.found[0])
        self.deadline.check()
        found = [*self.found[0], *self.traded.candidates, *chain.from_iterable(self.found[1:])]
        self.run(Moment.STAGES, found, lambda: fastest[0], self.more)
        self.whole = not self.deadline.over

    def begin(self, promising: Promising) -> None:
        """Find a first front, and build all requests; OverError where these take too long."""
        asked, whole = first_front(self.graph, promising.relaxed, self.searches, self.lists)
        self.asked = (asked, *self.asked[1:])
        if not self.searches.kept:
            self.look({})
        if not whole:
            self.undone.append(NOT_BUILT)
            self.look_ahead(promising)  # for its bounds
            raise OverError

    def look_ahead(self, promising: Promising) -> None:
        """Solve what the best configurations ask for; nothing else if there is too much of it."""
        report = self.searches.reporter("mapping")

        def answered(questions: Sequence[Question]) -> Mapping[Question, Answer]:
            known = dict(promising.answers)
            return solve(
                questions,
                self.solver,
                report,
                deadline=self.deadline,
                meanwhile=lambda answers: self.look({**known, **answers}),
                known=known,
            ).answers

        def first() -> bool:
            self.look(promising.answers)
            return bool(self.searches.kept)

        many = not self.asked[0]
        with self.deadline.ending():
            promising.solve(answered, self.deadline, first if many else None)
        if many:
            self.asked = (promising.requests, *self.asked[1:])
            self.undone += promising.reasons

    def solve(self) -> None:
        """Answer all questions with the mapper; list schedules answer those that are left."""
        at_once = self.trades and not self.promising and self.deadline.seconds == inf
        small = self.asked[0] if at_once else ()
        both = both_of(small, self.searches.tables[0], self.options.energy_resolution)
        every = (request.problem for each in self.asked for request in each)
        questions = [*dict.fromkeys(both.get(each, Question(each)) for each in every)]
        self.solved = solve(
            questions,
            self.solver,
            self.searches.reporter("mapping"),
            deadline=self.deadline,
            meanwhile=lambda answers: self.look(shortest_of(answers)),
            known=self.promising.answers if self.promising else None,
        )
        self.answers = shortest_of(self.solved.answers)
        if left := [question for question in questions if question not in self.solved.answers]:
            if not self.searches.kept:
                self.look(self.answers)
            self.take_lists(Question(question.problem) for question in left)
            self.undone.append(
                f"{len(left)} of {len(questions)} subgraphs were not solved in time: list "
                "schedules stand in for them"
            )
            raise OverError

    def look(self, solved: Mapping[Question, Answer]) -> None:
        """Search with what has been solved; list schedules stand in for the rest.

        Other operating points are looked at once all is solved.
        """
        many = self.promising if not self.asked[0] else None
        asked = many.requests if many else self.asked[0]
        questions = (Question(request.problem) for request in asked)
        self.take_lists(question for question in questions if question not in solved)
        choices = self.fastest(asked, solved)
        with self.deadline.look():
            if not self.searches.kept:
                self.searches.first(choices, pipes=bool(many))
                return
            self.searches.look(0, choices)
            if solved is self.answers:
                for table, others in enumerate(self.asked[1:], start=1):
                    self.searches.look(table, self.fastest(others, solved))

    def trade(self, fastest: Sequence[Choice]) -> Sets:
        """Find schedules that trade time for energy."""
        looked = self.deadline.seconds < inf

        def look(sets: Sets) -> None:
            nonlocal looked
            if looked:
                with self.deadline.look():
                    self.searches.trade(sets, self.searches.known)
            else:
                self.look(self.answers)
                looked = True

        return sets_of(
            fastest,
            self.searches.tables[0],
            self.solver,
            resolution=self.options.energy_resolution,
            report=self.searches.reporter("trading"),
            known=self.solved,
            deadline=self.deadline,
            meanwhile=look,
        )

    def run(
        self,
        moment: Moment,
        incumbents: Sequence[Candidate],
        schedules: Callable[[], Sequence[Choice]],
        into: list[Configuration],
    ) -> None:
        """Add what the searches of a moment find, each of which knows what those before found."""
        for search in self.further:
            if search.moment is moment:
                known = [*incumbents, *into]
                into += search.run(self.problem(schedules), known, self.deadline)

    def searches_with(self, name: str) -> bool:
        """Whether a search of that name is among those beside that over stages."""
        return any(each.name == name for each in self.further)

    def shortest(self) -> list[Choice]:
        """Return the shortest schedules by the first cost table."""
        return self.fastest(self.asked[0], self.answers)

    def problem(self, schedules: Callable[[], Sequence[Choice]]) -> SearchProblem:
        """Return what a search beside that over stages is given."""
        searches = self.searches
        return SearchProblem(
            self.graph, searches.partition, searches.tables, searches.identical, self.options,
            schedules, searches.reporter, self.undone.append, self.lacking, self.worth_helping,
            self.sources,
        )  # fmt: skip

    @property
    def worth_helping(self) -> bool:
        """Whether a process that helps is worth its start.

        Where the search with stages was over at once, all else is, too. With a budget, none is
        started: how much is found would depend on it.
        """
        solver, deadline = self.solver, self.deadline
        others = solver.jobs > 1 and solver.executor is None and deadline.seconds == inf
        return others and deadline.explored_s > HELPED_S

    def take_lists(self, questions: Iterable[Question]) -> None:
        """Answer questions by list schedules; where others give bounds, to the deadline only."""
        self.lists.add(questions, self.deadline if self.promising and self.searches.kept else None)

    def fastest(self, asked: Sequence[Request], solved: Mapping[Question, Answer]) -> list[Choice]:
        """Return the shortest schedule of each request, one by a list where it is not solved."""
        return self.lists.shortest(asked, solved)

    def explored(self) -> Exploration:
        """Choose from what has been found: of the last searches, or of all if they were ended."""
        searches, options = self.searches, self.options
        resolution = options.resolution
        if not self.whole:
            self.undone.append("the search over stages and schedules was ended early")
        if searches.large:
            resolution = max(resolution, options.energy_resolution * options.energy)
            self.undone += searches.left_out(resolution)
        found = self.candidates()
        every: Sequence[Candidate] = [*found, *self.more]
        if any(each.moment is Moment.MEMORY for each in self.further):
            every = self.with_memory(every)
        tables, answers = searches.tables, {**self.lists.answers, **self.answers}
        bounds = self.bounds()
        chosen = choose(
            every,
            tables[0].processors,
            energy=options.energy,
            resolution=resolution,
            large=searches.large,
            memory=options.memory,
        )
        return Exploration(
            tuple(map(bounds.with_bounds, listed(chosen, self.graph, tables, options))),
            {question.problem: answer.schedules[0] for question, answer in answers.items()},
            absent([*found, *chosen], self.graph, searches.partition, tables[0]) | self.lacking,
            frozenset(question.problem for question in self.solved.cached),
            by_processors(tables, self.asked),
            self.sets.solved if self.sets else Solved({}, frozenset()),
            resolution,
            self.traded.resolution if self.trades else None,
            self.trades and self.traded.timed_out,
            self.unfinished(bounds),
            self.deadline.interrupted,
        )

    def with_memory(self, found: Sequence[Candidate]) -> list[Configuration]:
        """Return what keeps the limit of memory, of what was found and of others that need less."""
        sized: list[Configuration] = []
        with self.deadline.ending():
            self.run(Moment.MEMORY, [*found, *self.searches.known], self.shortest, sized)
        kept = within_limit(sized, self.problem(self.shortest), self.deadline)
        if self.whole and self.deadline.interrupted:
            self.undone.append("the search for what needs less memory was ended early")
        return kept

    def candidates(self) -> list[StageCandidate]:
        """Return what there is to choose from."""
        if not self.whole:
            return self.searches.known
        # of those equal in all objectives the first is shown: better with its shortest schedules
        found = [*self.found[0], *self.traded.candidates, *chain.from_iterable(self.found[1:])]
        matched = self.trades or (not self.options.energy and proves_shortest(self.options.mapper))
        if self.deadline.seconds < inf and not matched:
            found += self.searches.known  # may be better than what the mapper's schedules make
        return found

    def bounds(self) -> ExploredBounds:
        """Return bounds of all that may be listed."""
        own = (each.least for each in self.more if not each.split)
        splits = {id(each.split): each.split for each in self.more if each.split}
        return ExploredBounds(
            self.graph,
            self.searches,
            self.promising if self.undone else None,
            lambda table: self.fastest(self.asked[table], self.answers),
            whole=self.whole and not self.others.left_out,
            interleaved=self.searches_with("interleaved") or bool(self.options.search),
            interleaved_s=min((each.period_s for each in own if each), default=inf),
            splits=[*splits.values()],
        )

    def unfinished(self, bounds: ExploredBounds) -> UnfinishedRow | None:
        """Say what was left undone; None if nothing."""
        undone = tuple(self.undone)
        if undone and self.searches_with("split"):
            undone += ("of operators split, the bounds hold for the ways to split that were found",)
        return bounds.unfinished(undone) if undone else None
