"""Solve mapping problems, each distinct one once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
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
    jobs: int,
    progress: Callable[[Progress], None] | None = None,
) -> dict[MappingProblem, Schedule]:
    """Solve distinct problems, `jobs` at a time.

    Threads suffice: solvers run as processes of their own or leave Python while they work.
    """
    begin = perf_counter()
    largest_gap = 0.0
    with ThreadPoolExecutor(jobs) as executor:
        futures = {
            executor.submit(mapper, problem, time_limit_s=time_limit_s, seed=seed): problem
            for problem in problems
        }
        try:
            for done, future in enumerate(as_completed(futures), start=1):
                largest_gap = max(largest_gap, future.result().certificate.gap)
                if progress:
                    elapsed_s = perf_counter() - begin
                    progress(Progress(done, len(problems), largest_gap, elapsed_s))
        except BaseException:
            executor.shutdown(cancel_futures=True)
            raise
    return {problem: future.result() for future, problem in futures.items()}
