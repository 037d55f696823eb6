"""In which order placed branches run on their processors, and when."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from parapipe.mapping.load import deliveries
from parapipe.mapping.problem import MappingProblem, Series, operators_of
from parapipe.mapping.replay import list_order, replay


def timed(
    problem: MappingProblem, placed: Mapping[int, int]
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Start and end in seconds of operators that all have a processor.

    Branches of one processor run in the order of their transfers to where they are read, the
    longest first: Jackson's rule, optimal for jobs that are ready together and delivered after
    they have run. Yet no processor waits for a branch while it could run another.
    """
    processor = tuple(placed[v] for v in range(problem.operators))
    priority = [0] * problem.operators
    for rank, v in enumerate(_ranked(problem, problem.structure, placed)):
        priority[v] = rank
    return replay(problem, processor, list_order(problem, processor, priority))


def makespan_s(problem: MappingProblem, placed: Mapping[int, int]) -> float:
    """Seconds until the last of the placed operators has ended."""
    return max(timed(problem, placed)[1])


def _ranked(problem: MappingProblem, series: Series, placed: Mapping[int, int]) -> Iterator[int]:
    for step in series:
        if isinstance(step, int):
            yield step
            continue
        ranks = {i: _rank(problem, branch, placed) for i, branch in enumerate(step)}
        for i in sorted(ranks, key=ranks.__getitem__):
            yield from _ranked(problem, step[i], placed)


def _rank(
    problem: MappingProblem, branch: Series, placed: Mapping[int, int]
) -> tuple[float, float]:
    """Longest transfer first, then longest time."""
    inside = operators_of(branch)
    sent_s = [transfer_s[placed[v]][q] for v, transfer_s, q in deliveries(problem, inside, placed)]
    return -max(sent_s, default=0.0), -sum(problem.time_s[v][placed[v]] for v in inside)
