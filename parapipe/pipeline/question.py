"""What is asked of the mappers: the shortest schedule, those that trade time for energy, or both.

The assignments of a small problem that are looked at for the one answer hold the other, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import inf

from parapipe.mapping.assignments.enumerate import LEAST_S
from parapipe.mapping.chain import without_choice
from parapipe.mapping.energy.trade_offs import small_set, trade_offs
from parapipe.mapping.problem import MappingProblem
from parapipe.mapping.renamed import Names, renamed, renamed_columns, renamed_schedule
from parapipe.mapping.schedule import Answer, Energies, Schedule
from parapipe.mapping.verify import verify_answer
from parapipe.pipeline.deadline import Deadline
from parapipe.pipeline.method import ANY_LIMIT, Method, keys, solve_one, stays_with_more_time


@dataclass(frozen=True, slots=True)
class Question:
    """Asks for the shortest schedule of a problem, or for those that trade time for energy.

    Plain values only: it crosses to other processes.

    Parameters
    ----------
    energy_j
        `energy_j[v][p]`: dynamic joules of operator v on processor p; infinite where v cannot run.
        None asks for the shortest schedule alone.
    resolution
        As for `trade_offs`.
    fastest
        The shortest schedule known, where energies are given. None asks for it, too: it is the
        first of the answer, which holds no other one if looking at all assignments takes long.
    """

    problem: MappingProblem
    energy_j: Energies | None = None
    resolution: float = 0.0
    fastest: Schedule | None = field(default=None, compare=False)

    def keys(self, method: Method) -> tuple[str, ...]:
        """Return what an answer may be kept under, the best answer first.

        First stands the key of a schedule that no other time limit can better. There is none for a
        deterministic method: there, an answer must not depend on what was solved before.
        """
        limit_s = method.time_limit_s
        if self.energy_j is not None:
            asked = "trade-offs" if self.fastest else "the shortest and trade-offs"
            content = (asked, self.resolution, self.problem, self.energy_j)
            return keys(method, *content, limits=(limit_s,))
        limits = (limit_s,) if method.deterministic else (ANY_LIMIT, limit_s)
        return keys(method, self.problem, limits=limits)

    def renamed(self, names: Names) -> Question:
        """Return the question with other numbers of the processors."""
        return Question(
            renamed(self.problem, names),
            self.energy_j and renamed_columns(self.energy_j, names),
            self.resolution,
            self.fastest and renamed_schedule(self.fastest, names),
        )

    def without_choice(self, method: Method) -> Schedule | None:
        """Return the answer if it is the only one, see `chain.without_choice`."""
        return without_choice(self.problem, method.seed) if self.energy_j is None else None

    def verify(self, answer: Answer) -> None:
        """Raise a VerificationError if an answer breaks a rule."""
        verify_answer(self.problem, answer, self.energy_j)


def answer_of(question: Question, method: Method) -> Answer:
    """Answer a question in whatever process this is; who asked verifies the answer."""
    if question.energy_j is None:
        return Answer((solve_one(question.problem, method),), inf, timed_out=False)
    if question.fastest is None:
        return _both(question, question.energy_j, method)
    return trade_offs(
        question.problem,
        question.energy_j,
        question.fastest,
        resolution=question.resolution,
        time_limit_s=method.time_limit_s,
        seed=method.seed,
        deterministic=method.deterministic,
    )


def answer_in_time(question: Question, method: Method, deadline: Deadline) -> Answer | None:
    """Answer a question in this process by the deadline; None if more time may give another answer.

    So answers, and what a cache keeps of them, hang on the method's own limit alone.
    """
    if deadline.left_s >= method.time_limit_s:
        return answer_of(question, method)
    if deadline.over:
        return None
    method = replace(method, time_limit_s=deadline.left_s)
    answer = answer_of(question, method)
    asked = () if question.fastest else answer.schedules[:1]
    stays = all(stays_with_more_time(each, method) for each in asked)
    return answer if stays and not answer.timed_out else None


def _both(question: Question, energy_j: Energies, method: Method) -> Answer:
    problem, found = question.problem, None
    if method.time_limit_s >= LEAST_S:
        found = small_set(
            problem,
            energy_j,
            lambda shortest: solve_one(problem, method, shortest=shortest),
            resolution=question.resolution,
            seed=method.seed,
        )
    return found or Answer((solve_one(problem, method),), inf, timed_out=False)


def shortest_of(answers: Mapping[Question, Answer]) -> dict[Question, Answer]:
    """Return the shortest schedules alone, as answers to questions for nothing else."""
    alone = {}
    for question, answer in answers.items():
        first = answer.schedules[0]
        certificate = replace(first.certificate, energy=None)
        only = Answer((replace(first, certificate=certificate),), inf, timed_out=False)
        alone[Question(question.problem)] = answer if question.energy_j is None else only
    return alone


def gap_of(answer: Answer) -> float:
    """Return how far the schedules of an answer may be from the best."""
    claims = [each.certificate.energy or each.certificate for each in answer.schedules]
    return max(claim.gap for claim in claims)
