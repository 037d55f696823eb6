"""Find the schedules that trade time for energy: each distinct set once, or not at all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from math import inf

from parapipe.errors import VerificationError
from parapipe.mapping.energy.trade_offs import trade_offs
from parapipe.mapping.problem import MappingProblem
from parapipe.mapping.schedule import Answer, Energies, Schedule
from parapipe.mapping.verify import verify_answer
from parapipe.pipeline.cache import Cache
from parapipe.pipeline.distribute import distribute
from parapipe.pipeline.method import Method, trade_off_key

TIME_PARTS = 20  # a set gets at most one part of so many of a problem's time limit
TIMES_ALL = 8  # all sets together get at most so many times that


@dataclass(frozen=True, slots=True)
class Question:
    """A problem, what its operators take, and the shortest schedule known.

    Parameters
    ----------
    energy_j
        `energy_j[v][p]`: dynamic joules of operator v on processor p; infinite where v cannot run.
    """

    problem: MappingProblem
    energy_j: Energies
    fastest: Schedule = field(compare=False)


def solve_trade_offs(
    questions: Sequence[Question],
    method: Method,
    *,
    resolution: float,
    jobs: int,
    cache: Cache | None = None,
    executor: Executor | None = None,
    tell: Callable[[int, int], None] = lambda done, total: None,
) -> Answered:
    """Answer questions, equal ones once; each set has passed the verifier.

    Parameters
    ----------
    method
        How the shortest schedules were found. A set gets a twentieth of its time limit, or its
        share of eight times that if this is less.
    resolution
        As for `trade_offs`.
    jobs, cache, executor
        As for `solve`.
    tell
        Called with the numbers of sets found so far and looked for.
    """
    distinct = list(dict.fromkeys(questions))
    share = min(1 / TIME_PARTS, TIMES_ALL / max(1, len(distinct)))
    method = replace(method, time_limit_s=method.time_limit_s * share)
    keys: dict[Question, str] = {}
    found: dict[Question, Answer] = {}
    if cache is not None:
        keys = {q: trade_off_key(q.problem, q.energy_j, resolution, method) for q in distinct}
        known = cache.get_trade_offs(keys.values())
        sound = {q: known[k] for q, k in keys.items() if k in known and _is_sound(q, known[k])}
        cache.drop(key for q, key in keys.items() if key in known and q not in sound)
        found.update(sound)
    cached = set(found)

    def record(question: Question, made: Answer) -> None:
        verify_answer(question.problem, made, question.energy_j)
        found[question] = made
        if cache is not None:
            cache.put(keys[question], made)
        tell(len(found), len(distinct))

    if distinct:
        tell(len(found), len(distinct))
    distribute(
        answer,
        [question for question in distinct if question not in found],
        record,
        given=(method, resolution),
        size=lambda question: question.problem.operators,
        jobs=jobs,
        executor=executor,
    )
    return Answered(found, frozenset(cached))


@dataclass(frozen=True, slots=True)
class Answered:
    """The set of each distinct question.

    Parameters
    ----------
    cached
        The questions whose sets come from the cache.
    """

    sets: Mapping[Question, Answer]
    cached: frozenset[Question]


def has_choice(problem: MappingProblem) -> bool:
    """Tell whether an operator has a choice of processors, so that there can be a trade."""
    return any(sum(t < inf for t in row) > 1 for row in problem.time_s)


def answer(question: Question, method: Method, resolution: float) -> Answer:
    """Answer one question in this process."""
    return trade_offs(
        question.problem,
        question.energy_j,
        question.fastest,
        resolution=resolution,
        time_limit_s=method.time_limit_s,
        seed=method.seed,
        deterministic=method.deterministic,
    )


def _is_sound(question: Question, made: Answer) -> bool:
    try:
        verify_answer(question.problem, made, question.energy_j)
    except (VerificationError, TypeError):
        return False
    return True
