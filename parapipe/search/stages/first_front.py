"""A first front before all else, by a budget, of list schedules: pipelines of single processors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from parapipe.graph.operator_graph import OperatorGraph
from parapipe.processes.deadline import Deadline, OverError
from parapipe.search.problems.method import Question
from parapipe.search.problems.problems import Request
from parapipe.search.problems.solve import Solver, solve_here
from parapipe.search.stages.problem_order import all_requests, of_pipelines, on_one_processor
from parapipe.search.stages.relaxed import Relaxed
from parapipe.search.stages.stage_searches import Searches
from parapipe.search.stages.unit_schedules import Choice
from parapipe.solvers.schedule import Answer

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

    def shortest(self, asked: Sequence[Request], solved: Mapping[Question, Answer]) -> list[Choice]:
        """Return the shortest schedule of each request, one by a list where it is not solved."""
        answers = {**self.answers, **solved}
        every = ((each, answers.get(Question(each.problem))) for each in asked)
        return [Choice(each, answer.schedules[0]) for each, answer in every if answer]


def first_front(
    graph: OperatorGraph, relaxed: Relaxed, searches: Searches, lists: ListSchedules
) -> tuple[tuple[Request, ...], bool]:
    """Search some pipelines, then build all requests and search the pipelines of these.

    To build all requests may take longer than the budget, so a few come first. If there are no
    pipelines of these, the budget does not count until there is a front.

    Returns
    -------
    All requests, or some if time runs out, and whether they are all.
    """
    asked, whole = of_pipelines(relaxed), False
    _find_pipelines(asked, searches, lists)
    with searches.deadline.ending(), suppress(OverError):
        until = searches.deadline if searches.kept else Deadline()
        asked = all_requests(graph, searches.partition, searches.tables[0], until)
        whole = True
        _find_pipelines(on_one_processor(until.each(asked)), searches, lists)
    return asked, whole


def _find_pipelines(asked: Iterable[Request], searches: Searches, lists: ListSchedules) -> None:
    """Search pipelines of what needs no solving; of list schedules if there are none.

    OverError at the deadline, once there is a front.
    """
    until = searches.deadline if searches.kept else Deadline()
    alone, method = list(until.each(asked)), lists.solver.method
    found = ((each, Question(each.problem).without_choice(method)) for each in until.each(alone))
    choices = [Choice(each, schedule) for each, schedule in found if schedule]
    with searches.deadline.look():
        if searches.first(choices, pipes=True):
            return
    until.check()
    lists.add((Question(each.problem) for each in alone), until)
    choices = lists.shortest(alone, {})
    with searches.deadline.look():
        searches.first(choices, pipes=True)
