"""The search over stages: solve the mapping problems of units, and search what is made of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from math import inf
from typing import TYPE_CHECKING

from parapipe.graph.operator_graph import OperatorGraph
from parapipe.problems.method import Question, shortest_of
from parapipe.problems.problems import Request
from parapipe.problems.solve import SolvedQuestions, Solver, solve
from parapipe.processes.deadline import Deadline, OverError
from parapipe.processes.workers import current_processes
from parapipe.search.contract import Moment, SearchProblem
from parapipe.search.stages.candidates import StageCandidate
from parapipe.search.stages.problem_order import NOT_BUILT, OtherTables, PromisingRequests
from parapipe.search.stages.stage_incumbents import ListSchedules, StageSearches, first_front
from parapipe.search.stages.trade_energy import Sets, TradedStages, find_sets, joint_questions
from parapipe.search.stages.unit_schedules import Choice
from parapipe.solvers.registry import proves_shortest
from parapipe.solvers.schedule import Answer

if TYPE_CHECKING:
    from parapipe.search.stages.candidates import Candidate

HELPED_S = 0.15  # of work so far, from which on a process helps with what follows


class StageSearch:
    """The search over stages of whole operators."""

    name = "stages"
    moment = Moment.FIRST

    def run(
        self, problem: SearchProblem, incumbents: Sequence[Candidate], deadline: Deadline
    ) -> Iterator[StageCandidate]:
        """Yield what the last searches find; where time runs out, what all found, and OverError."""
        stages = problem.stages
        assert stages is not None, "a search over stages needs their problems"
        try:
            yield from stages.search()
        except (OverError, KeyboardInterrupt):
            yield from stages.searches.incumbents
            raise


@dataclass(slots=True)
class StageProblems:
    """The mapping problems of stages, and what is known so far of these and of stages.

    Parameters
    ----------
    requests
        By number of the cost table.
    searches
        Searches over stages, with all that they have found.
    lists
        Answers to questions that the mapper had not answered when needed.
    promising
        Where not all problems are built before there is a front.
    undone
        What was left undone, a sentence each.
    solved
        Answers of the mapper.
    answers
        Of those, the shortest schedules.
    sets, fastest
        Schedules that trade time for energy, and the shortest ones by the first cost table.
    """

    graph: OperatorGraph
    requests: tuple[tuple[Request, ...], ...]
    others: OtherTables
    solver: Solver
    deadline: Deadline
    searches: StageSearches
    lists: ListSchedules
    promising: PromisingRequests | None = None
    undone: list[str] = field(default_factory=list)
    solved: SolvedQuestions = field(default_factory=lambda: SolvedQuestions({}, frozenset()))
    answers: Mapping[Question, Answer] = field(default_factory=dict)
    sets: Sets | None = None
    fastest: Sequence[Choice] = ()
    traded: TradedStages = field(default_factory=lambda: TradedStages((), inf, timed_out=True))

    @property
    def trades(self) -> bool:
        """Whether units may run longer than their shortest schedules to save energy."""
        options = self.searches.options
        return options.energy and proves_shortest(options.mapper) and not self.searches.large

    def search(self) -> list[StageCandidate]:
        """Solve, search and trade energy; OverError where time runs out.

        Returns
        -------
        What the last searches find, by ascending number of the cost table; of equals, the first is
        shown. With a budget, what was found before is added where it may be better.
        """
        if self.promising:
            if not self.promising.relaxed.limited:
                self.find_first_front(self.promising)
            self.solve_promising(self.promising)
        self.requests = (self.requests[0], *self.others.requests(self.deadline))
        self.undone += self.others.left_out
        self.solve()
        first, *others = map(self.shortest, range(len(self.requests)))
        if self.trades:
            if self.deadline.seconds < inf:  # what comes may take long
                self.look(self.answers)
            self.sets = self.trade(first)
            first = list(self.sets.fastest)
        self.fastest = first
        if self.is_helping_worth and (processes := current_processes()):
            processes.start_ahead()
        by_table = [self.searches.search(i, some) for i, some in enumerate([first, *others])]
        if self.sets:
            self.traded = self.searches.trade(self.sets, by_table[0])
        self.deadline.check()
        # so that one is with its shortest schedules, if it is also among those that trade energy
        candidates = [*by_table[0], *self.traded.candidates, *chain.from_iterable(by_table[1:])]
        options = self.searches.options
        matched = self.trades or (not options.energy and proves_shortest(options.mapper))
        if self.deadline.seconds < inf and not matched:
            candidates += self.searches.incumbents
        return candidates

    def shortest(self, table: int = 0) -> list[Choice]:
        """Return the shortest schedules by a cost table."""
        return self.lists.shortest(self.requests[table], self.answers)

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
        share = self.searches.options.energy_resolution
        both = joint_questions(small, self.searches.tables[0], share)
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
            resolution=self.searches.options.energy_resolution,
            report=self.searches.reporter("trading"),
            before=self.solved,
            deadline=self.deadline,
            meanwhile=look,
        )

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
