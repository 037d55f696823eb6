"""Solve mapping problems, each distinct one once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter

from parapipe.mapping.problem import MappingProblem
from parapipe.mapping.schedule import Mapper, Schedule


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the solving of mapping problems has come."""

    done: int
    total: int
    largest_gap: float
    elapsed_s: float


def solve(
    problems: Sequence[MappingProblem],
    mapper: Mapper,
    *,
    time_limit_s: float,
    seed: int,
    progress: Callable[[Progress], None] | None = None,
) -> dict[MappingProblem, Schedule]:
    """Solve distinct problems one by one."""
    begin = perf_counter()
    solved: dict[MappingProblem, Schedule] = {}
    largest_gap = 0.0
    for problem in problems:
        schedule = mapper(problem, time_limit_s=time_limit_s, seed=seed)
        largest_gap = max(largest_gap, schedule.certificate.gap)
        solved[problem] = schedule
        if progress:
            elapsed_s = perf_counter() - begin
            progress(Progress(len(solved), len(problems), largest_gap, elapsed_s))
    return solved
