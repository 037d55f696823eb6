"""How mapping problems are solved, and what is asked of a mapper.

The assignments of a small problem that are looked at for the one answer hold the other, too.
"""

from __future__ import annotations

import json
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from inspect import signature
from math import inf
from pathlib import Path
from typing import Any

from parapipe import solvers
from parapipe.errors import MappingError
from parapipe.processes.deadline import Deadline
from parapipe.solvers import registry
from parapipe.solvers.assignments.enumerate import LEAST_S
from parapipe.solvers.chain import only_schedule
from parapipe.solvers.energy.trade_offs import small_set, trade_offs
from parapipe.solvers.problem import MappingProblem
from parapipe.solvers.registry import MAPPERS
from parapipe.solvers.schedule import (
    Answer,
    Energies,
    Names,
    Schedule,
    rename_columns,
    rename_processors,
    rename_schedule,
)
from parapipe.solvers.verify import verify_answer
from parapipe.version import __version__

SOLVERS = ("ortools", "pulp")  # distributions; CBC comes with the latter
ANY_LIMIT = "any"


@dataclass(frozen=True, slots=True)
class Method:
    """Everything besides the problem that decides what its schedule is.

    Plain values only: it crosses to other processes.

    Parameters
    ----------
    mapper
        Name in the registry, or MODULE:FUNCTION.
    time_limit_s
        For one problem.
    deterministic
        Asks the mapper to stop by counted work instead of the clock, if it has a choice.
    """

    mapper: str
    time_limit_s: float
    seed: int
    deterministic: bool = False


def solve_one(
    problem: MappingProblem, method: Method, *, shortest: Schedule | None = None
) -> Schedule:
    """Solve one problem in this process.

    Parameters
    ----------
    shortest
        A schedule that is known to be as short as any, for mappers that prove that of theirs.

    Raises
    ------
    MappingError
        There is no such mapper, it finds no schedule, or it is none of parapipe's and fails.
    """
    place = registry.mapper(method.mapper)
    chosen: dict[str, object] = {} if shortest is None else {"shortest": shortest}
    if method.deterministic and counts_work(method.mapper):
        chosen["deterministic"] = True  # a mapper that never looks at the clock has no such option
    with MAPPERS.failures_of(method.mapper):
        schedule = place(problem, time_limit_s=method.time_limit_s, seed=method.seed, **chosen)
    if not isinstance(schedule, Schedule):
        raise MappingError(
            f"the mapper {MAPPERS.label(method.mapper)} gave a {type(schedule).__name__}; it must "
            "give a parapipe.solvers.schedule.Schedule"
        )
    return schedule


@cache
def counts_work(mapper: str) -> bool:
    """Tell whether a mapper can be asked to stop by counted work instead of the clock."""
    return "deterministic" in signature(registry.mapper(mapper)).parameters


def stopped_by_clock(schedules: Iterable[Schedule], method: Method) -> int:
    """Count the schedules that may come out otherwise next time, for they took all their time."""
    if counts_work(method.mapper):
        return 0
    late_s = 0.95 * method.time_limit_s  # a solver's clock starts after the mapper's
    claims = (schedule.certificate for schedule in schedules)
    return sum(claim.wall_s >= late_s and not claim.proven for claim in claims)


def stays_with_more_time(schedule: Schedule, method: Method) -> bool:
    """Tell whether a method gives no better schedule if its time limit is longer."""
    by_work = counts_work(method.mapper)  # it may have stopped parts of its work by their limits
    return schedule.certificate.proven or not (by_work or stopped_by_clock([schedule], method))


def answer_keys(method: Method, *content: object, limits: Iterable[float | str]) -> tuple[str, ...]:
    """Return what an answer is found again by: SHA-256 digests of all that decides it.

    The same are problems with the same numbers in the same order, whatever model, subgraph or
    platform they come from: repeated blocks of a network are one problem. Operators and processors
    are numbers already; seconds count as doubles, to the last bit. Not recognised as the same are
    problems that differ in the order of operators, of processors or of flows, by a scale, or in a
    transfer that no schedule can use: mappers may break ties by any of these, and an answer from
    the cache shall be the one that solving again gives.

    Of the method, mapper, seed, time limit and determinism count; so do the versions of parapipe,
    the mapper's own package, Python and the solvers, the kind of machine, and the source code of
    `parapipe.solvers` and of that package, lest a mapper that was changed be answered for by its
    old self.

    Parameters
    ----------
    content
        What is asked.
    limits
        In place of the method's time limit; a digest for each.
    """
    what = _digest(
        [_list_versions(method.mapper), method.mapper, method.seed, method.deterministic, content]
    )
    return tuple(_digest([what, limit]) for limit in limits)


def is_optimum(schedule: Schedule) -> bool:
    """Tell whether a schedule's makespan is proven; another figure's optimum leaves it open."""
    return schedule.certificate.proven and schedule.certificate.proves == "makespan"


def _digest(content: object) -> str:
    """Digest of content as JSON; doubles stand there as their `repr`, which gives them back."""
    return sha256(json.dumps(content, default=_to_json, separators=(",", ":")).encode()).hexdigest()


def _to_json(value: object) -> list[Any]:
    """Write what JSON doesn't know: a dataclass as its name, fields' names and values."""
    if isinstance(value, frozenset):
        return ["frozenset", *sorted(value)]
    if not is_dataclass(value) or isinstance(value, type):
        raise TypeError(f"a {type(value).__name__} has no canonical form")
    content = {field.name: getattr(value, field.name) for field in fields(value) if field.compare}
    return [type(value).__name__, content]


@cache
def _list_versions(mapper: str) -> tuple[str, ...]:
    """Versions of all that takes part in solving."""
    python = ".".join(map(str, sys.version_info[:2]))
    versions = (*map(_version_of, SOLVERS), *filter(None, [MAPPERS.package(mapper)]))
    return (__version__, _digest_code(mapper), python, sysconfig.get_platform(), *versions)


def _digest_code(mapper: str) -> str:
    """Digest of the source code of all mappers in `parapipe.solvers`, and of the one asked for."""
    digest, places = sha256(), [Path(solvers.__path__[0])]
    if not registry.is_own(mapper) and not (own := MAPPERS.place(mapper)).is_relative_to(places[0]):
        places.append(own)
    for place in places:
        for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            content = path.read_bytes()
            digest.update(f"{path.relative_to(place)} {len(content)} ".encode() + content)
    return digest.hexdigest()


def _version_of(distribution: str) -> str:
    try:
        return f"{distribution} {version(distribution)}"
    except PackageNotFoundError:
        return f"no {distribution}"


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
            kind = "trade-offs" if self.fastest else "the shortest and trade-offs"
            content = (kind, self.resolution, self.problem, self.energy_j)
            return answer_keys(method, *content, limits=(limit_s,))
        limits = (limit_s,) if method.deterministic else (ANY_LIMIT, limit_s)
        return answer_keys(method, self.problem, limits=limits)

    def renamed(self, names: Names) -> Question:
        """Return the question with other numbers of the processors."""
        return Question(
            rename_processors(self.problem, names),
            self.energy_j and rename_columns(self.energy_j, names),
            self.resolution,
            self.fastest and rename_schedule(self.fastest, names),
        )

    def without_choice(self, method: Method) -> Schedule | None:
        """Return the answer if it is the only one, see `chain.without_choice`."""
        return only_schedule(self.problem, method.seed) if self.energy_j is None else None

    def verify(self, answer: Answer) -> None:
        """Raise a VerificationError if an answer breaks a rule."""
        verify_answer(self.problem, answer, self.energy_j)


def answer_of(question: Question, method: Method) -> Answer:
    """Answer a question in whatever process this is; who asked verifies the answer."""
    if question.energy_j is None:
        return Answer((solve_one(question.problem, method),), inf, timed_out=False)
    if question.fastest is None:
        return _shortest_and_trade_offs(question, question.energy_j, method)
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
    shortest = () if question.fastest else answer.schedules[:1]
    stays = all(stays_with_more_time(each, method) for each in shortest)
    return answer if stays and not answer.timed_out else None


def _shortest_and_trade_offs(question: Question, energy_j: Energies, method: Method) -> Answer:
    problem, answer = question.problem, None
    if method.time_limit_s >= LEAST_S:
        answer = small_set(
            problem,
            energy_j,
            lambda shortest: solve_one(problem, method, shortest=shortest),
            resolution=question.resolution,
            seed=method.seed,
        )
    return answer or Answer((solve_one(problem, method),), inf, timed_out=False)


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
