"""List schedules that stand in for what the mapper has not solved when a search needs it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from parapipe.mapping.schedule import Answer
from parapipe.pipeline.choices import Choice
from parapipe.pipeline.deadline import Deadline
from parapipe.pipeline.problems import Request
from parapipe.pipeline.question import Question
from parapipe.pipeline.solve import Solver, solve_here

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
