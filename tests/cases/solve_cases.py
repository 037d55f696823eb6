"""Mapping problems for tests of how problems are solved, found again and kept."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from math import inf

from parapipe.problems.cache import answer_text, read_answer
from parapipe.problems.method import Question
from parapipe.problems.solve import Reporter, Solver, solve
from parapipe.solvers.problem import Flow, MappingProblem
from parapipe.solvers.schedule import Answer, Certificate, Schedule


@dataclass(frozen=True)
class Schedules:
    """Schedules by problem, and which problems came from the cache."""

    schedules: dict[MappingProblem, Schedule]
    cached: frozenset[MappingProblem]


def schedules_of(problems, method, *, jobs=1, cache=None, executor=None, progress=None):
    """The shortest schedules of problems."""
    solver = Solver(method, jobs, cache, executor)
    found = solve([Question(each) for each in problems], solver, Reporter("mapping", progress))
    return Schedules(
        {each.problem: answer.schedules[0] for each, answer in found.answers.items()},
        frozenset(question.problem for question in found.cached),
    )


def own_key(problem, method):
    """What an answer that is not proven is kept under."""
    return Question(problem).keys(method)[-1]


def branchy(seed: int, *, branches: int = 4, processors: int = 3) -> MappingProblem:
    """A source, parallel branches of two operators, and a sink; times are whole microseconds."""
    rng = random.Random(seed)
    count = 2 * branches + 2

    def us(limit: int) -> float:
        return rng.randint(1, limit) / 1e6

    def transfer_s():
        return tuple(
            tuple(0.0 if p == q else us(500) for q in range(processors)) for p in range(processors)
        )

    inner = [(2 * b + 1, 2 * b + 2) for b in range(branches)]
    times = tuple(tuple(us(5000) for _ in range(processors)) for _ in range(count))
    flows = (
        Flow(None, (0,), transfer_s(), location=rng.randrange(processors)),
        Flow(0, tuple(first for first, _ in inner), transfer_s()),
        *(Flow(first, (second,), transfer_s()) for first, second in inner),
        *(Flow(second, (count - 1,), transfer_s()) for _, second in inner),
    )
    return MappingProblem(times, flows, (0, tuple(inner), count - 1))


def hard() -> MappingProblem:
    """Keeps CBC busy for longer than any test takes."""
    return branchy(0, branches=60, processors=8)


def chain(seed: int) -> MappingProblem:
    """Three operators one after the other: the coarse mapper proves the makespan."""
    rng = random.Random(seed)
    apart = ((0.0, 0.001), (0.002, 0.0))
    times = tuple((rng.random(), rng.random()) for _ in range(3))
    return MappingProblem(times, (Flow(0, (1,), apart), Flow(1, (2,), apart)), (0, 1, 2))


def alone(time_s: float) -> MappingProblem:
    """One operator, faster on the first of two processors."""
    return MappingProblem(((time_s, 2 * time_s),), (), (0,))


def pinned(*times_s: float) -> MappingProblem:
    """Operators one after the other that only the second of two processors runs."""
    count = len(times_s)
    at_once = ((0.0, 0.0), (0.0, 0.0))
    flows = tuple(Flow(v, (v + 1,), at_once) for v in range(count - 1))
    return MappingProblem(tuple((inf, t) for t in times_s), flows, tuple(range(count)))


def alone_schedule(time_s: float, *, proven: bool = True) -> Schedule:
    """The schedule of `alone`."""
    bound_s = time_s if proven else 0.0
    certificate = Certificate("makespan", time_s, bound_s, proven, 0.25, 7, "by hand 1.0")
    return Schedule((0,), (0.0,), (time_s,), certificate)


def timeless(schedule: Schedule) -> Schedule:
    """The schedule without how long it took to find."""
    return replace(schedule, certificate=replace(schedule.certificate, wall_s=0.0))


def text_of_schedule(schedule: Schedule) -> str:
    """What the cache keeps of a schedule."""
    return answer_text(Answer((schedule,), inf, timed_out=False))


def schedule_of_text(text: str) -> Schedule:
    """The schedule that the cache keeps as a text."""
    (schedule,) = read_answer(text).schedules
    return schedule
