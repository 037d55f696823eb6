"""Answer questions about mapping problems: each distinct one once, or not at all.

A chain on one processor has one answer. Answers of earlier runs come from the cache; the rest is
distributed. Neither the way nor the order
in which answers come shows in them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import partial
from math import inf
from time import perf_counter

from parapipe.errors import VerificationError
from parapipe.files.progress import ALONE, Phase, Progress, Tell
from parapipe.problems.cache import Cache, answer_text, read_answer
from parapipe.problems.identical_processors import names_in_order
from parapipe.problems.method import (
    Method,
    Question,
    answer_in_time,
    answer_of,
    gap_of,
    is_optimum,
)
from parapipe.processes.deadline import Deadline
from parapipe.processes.shared_work import distribute
from parapipe.solvers.registry import is_own
from parapipe.solvers.schedule import Answer, Names, inverse_names, rename_answer


@dataclass(frozen=True, slots=True)
class Reporter:
    """Tells how far one phase has come that begins now."""

    phase: Phase
    progress: Tell | None = None
    began_s: float = field(default_factory=perf_counter)

    def __call__(self, done: int, total: int, gap: float = 0.0, cached: int = 0) -> None:
        """Pass it on."""
        if self.progress is not None:
            elapsed_s = perf_counter() - self.began_s
            self.progress(Progress(done, total, gap, elapsed_s, cached, self.phase))


@dataclass(frozen=True, slots=True)
class Solver:
    """How questions are answered.

    Parameters
    ----------
    method
        What decides the answers.
    jobs
        Questions answered at the same time.
    cache
        Where answers of earlier runs are looked up, and each new one is kept at once; of no use
        to a user's own mapper.
    executor
        Answers all that has to be solved, in place of this process and its workers. It is given
        `question.answer_of`, questions and plain values, and stays open.
    identical
        Groups of identical processors. Questions that differ in nothing but which of a group does
        what are one question.
    """

    method: Method
    jobs: int = ALONE
    cache: Cache | None = None
    executor: Executor | None = None
    identical: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self) -> None:
        if self.jobs < 1:
            raise ValueError(f"{self.jobs} problems cannot be solved at the same time")


@dataclass(frozen=True, slots=True)
class SolvedQuestions:
    """The answer to each distinct question that has one, in the order in which they were asked.

    Parameters
    ----------
    cached
        The questions whose answers come from the cache.
    """

    answers: Mapping[Question, Answer]
    cached: frozenset[Question]


def solve(
    questions: Sequence[Question],
    solver: Solver,
    report: Reporter | None = None,
    *,
    deadline: Deadline | None = None,
    meanwhile: Callable[[Mapping[Question, Answer]], None] | None = None,
    earlier: Mapping[Question, Answer] | None = None,
) -> SolvedQuestions:
    """Answer questions, equal ones once; each answer has passed its verifier.

    Parameters
    ----------
    report
        Called in this thread, first when the cache has been looked through.
    deadline
        When to leave questions without an answer.
    meanwhile
        Called with the answers so far whenever the deadline says that a look is due.
    earlier
        Answers that this solver has given before.

    Raises
    ------
    MappingError
        A mapper finds no schedule, or a worker process ends before it has answered.
    """
    # a user's own mapper may change at any time
    cache = None if is_own(solver.method.mapper) else solver.cache
    until = deadline or Deadline()
    proxies = {
        question: _Proxy.of(question, solver.identical)
        for question in until.of(dict.fromkeys(questions))
    }
    distinct = dict.fromkeys(proxy.question for proxy in proxies.values())
    work = _Questions(tuple(distinct), solver.method, cache, report, until)
    for question, answer in (earlier or {}).items():
        if proxy := proxies.get(question):
            work.answers[proxy.question] = proxy.to_proxy(answer)

    def answers() -> dict[Question, Answer]:
        return {
            question: proxy.to_original(work.answers[proxy.question])
            for question, proxy in proxies.items()
            if proxy.question in work.answers
        }

    work.answer_at_once()
    work.look_up()
    with until.ending():
        distribute(
            answer_of,
            work.open,
            work.record,
            given=(solver.method,),
            here=partial(answer_in_time, deadline=until),
            size=lambda question: question.problem.operators,
            jobs=solver.jobs,
            executor=solver.executor,
            deadline=until,
            meanwhile=meanwhile and (lambda: meanwhile(answers())),
        )
    cached = (question for question, proxy in proxies.items() if proxy.question in work.cached)
    return SolvedQuestions(answers(), frozenset(cached))


def solve_here(
    questions: Iterable[Question],
    method: Method,
    identical: Sequence[Sequence[int]],
    deadline: Deadline | None = None,
) -> dict[Question, Answer]:
    """Answer questions in this process, one after the other, by a method that is quick.

    Parameters
    ----------
    deadline
        When to leave what has not been answered.
    """
    solved: dict[Question, Answer] = {}
    answers = {}
    for question in deadline.of(questions) if deadline else questions:
        proxy = _Proxy.of(question, identical)
        if proxy.question not in solved:
            solved[proxy.question] = answer_of(proxy.question, method)
            proxy.question.verify(solved[proxy.question])
        answers[question] = proxy.to_original(solved[proxy.question])
    return answers


@dataclass(frozen=True, slots=True)
class _Proxy:
    """The question that stands for one, which differs in the numbers of processors.

    Parameters
    ----------
    names
        The numbers there; None if they are the same.
    """

    question: Question
    names: Names | None

    @classmethod
    def of(cls, question: Question, identical: Sequence[Sequence[int]]) -> _Proxy:
        """Find it for identical processors."""
        if identical:
            names = names_in_order(question.problem, identical)
            if names != (*range(len(names)),):
                return cls(question.renamed(names), names)
        return cls(question, None)

    def to_proxy(self, answer: Answer) -> Answer:
        """Return the answer to the question that stands for what was asked."""
        return answer if self.names is None else rename_answer(answer, self.names)

    def to_original(self, answer: Answer) -> Answer:
        """Return the answer to what was asked."""
        return answer if self.names is None else rename_answer(answer, inverse_names(self.names))


@dataclass(slots=True)
class _Questions:
    """Questions on their way to answers."""

    questions: tuple[Question, ...]
    method: Method
    cache: Cache | None
    report: Reporter | None
    deadline: Deadline
    answers: dict[Question, Answer] = field(default_factory=dict)
    cached: set[Question] = field(default_factory=set)
    largest_gap: float = 0.0
    keys: dict[Question, tuple[str, ...]] = field(default_factory=dict)

    def answer_at_once(self) -> None:
        """Take what leaves no choice; a user's own mapper is asked that, too."""
        if not is_own(self.method.mapper):
            for question in self.deadline.of(self.open):
                if schedule := question.without_choice(self.method):
                    self.answers[question] = Answer((schedule,), inf, timed_out=False)

    @property
    def open(self) -> list[Question]:
        """Questions without an answer."""
        return [question for question in self.questions if question not in self.answers]

    def look_up(self) -> None:
        """Take what the cache knows; make it forget what the verifier turns down."""
        if self.cache is not None and self.open:
            questions = self.deadline.of(self.open)
            self.keys = {question: question.keys(self.method) for question in questions}
            texts = self.cache.get(key for some in self.keys.values() for key in some)
            wrong = []
            for question, some in self.keys.items():
                for key in some:
                    if key not in texts or question in self.answers:
                        continue
                    if (answer := _read_verified(question, texts[key])) is not None:
                        self.cached.add(question)
                        self._add(question, answer)
                    else:
                        wrong.append(key)
            self.cache.drop(wrong)
        self._report_progress()

    def record(self, question: Question, answer: Answer) -> None:
        """Verify an answer and keep it."""
        question.verify(answer)
        if self.cache is not None:
            key = self.keys[question][0 if is_optimum(answer.schedules[0]) else -1]
            self.cache.put(key, answer_text(answer))
        self._add(question, answer)
        self._report_progress()

    def _add(self, question: Question, answer: Answer) -> None:
        self.answers[question] = answer
        self.largest_gap = max(self.largest_gap, gap_of(answer))

    def _report_progress(self) -> None:
        if self.report is not None and self.questions:
            done, total = len(self.answers), len(self.questions)
            self.report(done, total, self.largest_gap, len(self.cached))


def _read_verified(question: Question, text: str) -> Answer | None:
    """Return the answer that a text holds, if it passes the verifier."""
    try:
        answer = read_answer(text)
        question.verify(answer)
    except (VerificationError, TypeError, ValueError):
        return None
    return answer
