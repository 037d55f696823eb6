"""Solve mapping problems: each distinct one once, or not at all.

Answers of earlier runs come from the cache; the rest is distributed. Neither the way nor the order
in which answers come shows in them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from time import perf_counter

from parapipe.errors import VerificationError
from parapipe.files.progress import Progress
from parapipe.mapping.problem import MappingProblem
from parapipe.mapping.registry import is_own
from parapipe.mapping.schedule import Schedule
from parapipe.mapping.verify import verify
from parapipe.pipeline.cache import Cache
from parapipe.pipeline.distribute import distribute
from parapipe.pipeline.method import Keys, Method, is_optimum, keys, solve_one


@dataclass(frozen=True, slots=True)
class Solved:
    """The schedule of each problem, in the order in which the problems were given.

    Parameters
    ----------
    cached
        The problems whose schedules come from the cache.
    """

    schedules: Mapping[MappingProblem, Schedule]
    cached: frozenset[MappingProblem]


def solve(
    problems: Sequence[MappingProblem],
    mapper: str,
    *,
    time_limit_s: float,
    seed: int,
    jobs: int,
    deterministic: bool = False,
    cache: Cache | None = None,
    executor: Executor | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Solved:
    """Solve problems, equal ones once; each schedule has passed the verifier.

    Parameters
    ----------
    mapper
        Name in the registry, or MODULE:FUNCTION: a name crosses to any process.
    time_limit_s
        For one problem.
    jobs
        Problems solved at the same time.
    deterministic
        Asks the mapper to stop by counted work instead of the clock, if it has a choice.
    cache
        Where schedules of earlier runs are looked up, and each new one is kept at once; of no use
        to a user's own mapper.
    executor
        Solves all that the cache doesn't know, in place of this process and its workers. It is
        given `method.solve_one`, problems and plain values, and stays open.
    progress
        Called in this thread, first when the cache has been looked through.

    Raises
    ------
    MappingError
        A mapper finds no schedule, or a worker process ends before it has answered.
    """
    if jobs < 1:
        raise ValueError(f"{jobs} problems cannot be solved at the same time")
    method = Method(mapper, time_limit_s, seed, deterministic)
    kept = None if is_own(mapper) else cache  # whose code may change at any time
    work = _Work(tuple(dict.fromkeys(problems)), method, kept, progress)
    work.look_up()
    distribute(
        solve_one,
        work.left(),
        work.record,
        given=(method,),
        size=lambda problem: problem.operators,
        jobs=jobs,
        executor=executor,
    )
    return Solved({p: work.found[p] for p in work.problems}, frozenset(work.cached))


@dataclass(slots=True)
class _Work:
    """Problems on their way to schedules."""

    problems: tuple[MappingProblem, ...]
    method: Method
    cache: Cache | None
    progress: Callable[[Progress], None] | None
    found: dict[MappingProblem, Schedule] = field(default_factory=dict)
    cached: set[MappingProblem] = field(default_factory=set)
    keys: dict[MappingProblem, Keys] = field(default_factory=dict)
    largest_gap: float = 0.0
    began_s: float = field(default_factory=perf_counter)

    def left(self) -> list[MappingProblem]:
        """Problems that have no schedule yet."""
        return [problem for problem in self.problems if problem not in self.found]

    def look_up(self) -> None:
        """Take what the cache knows; make it forget what the verifier turns down."""
        if self.cache is not None:
            self.keys = {problem: keys(problem, self.method) for problem in self.problems}
            asked = [
                (problem, key)
                for problem, known_by in self.keys.items()
                for key in (known_by.optimum, known_by.own)  # the best answer first
                if key is not None
            ]
            known = self.cache.get(key for _, key in asked)
            wrong = []
            for problem, key in asked:
                if key not in known or problem in self.found:
                    continue
                if _is_sound(problem, known[key]):
                    self.cached.add(problem)
                    self._take(problem, known[key])
                else:
                    wrong.append(key)
            self.cache.drop(wrong)
        self._tell()

    def record(self, problem: MappingProblem, schedule: Schedule) -> None:
        """Verify a schedule and keep it."""
        verify(problem, schedule)
        if self.cache is not None:
            known_by = self.keys[problem]
            key = known_by.optimum if is_optimum(schedule) else None
            self.cache.put(key or known_by.own, schedule)
        self._take(problem, schedule)
        self._tell()

    def _take(self, problem: MappingProblem, schedule: Schedule) -> None:
        self.found[problem] = schedule
        self.largest_gap = max(self.largest_gap, schedule.certificate.gap)

    def _tell(self) -> None:
        if self.progress is not None:
            elapsed_s = perf_counter() - self.began_s
            done, total = len(self.found), len(self.problems)
            self.progress(Progress(done, total, self.largest_gap, elapsed_s, len(self.cached)))


def _is_sound(problem: MappingProblem, schedule: Schedule) -> bool:
    try:
        verify(problem, schedule)
    except (VerificationError, TypeError):
        return False
    return True
