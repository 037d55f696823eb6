"""Edges that say nothing new: what is between their ends takes longer than the transfer."""

from __future__ import annotations

from dataclasses import replace

from parapipe.mapping.fine.integer_problem import Delay, IntegerProblem


def ancestors_of(problem: IntegerProblem) -> tuple[int, ...]:
    """For each operator a bit mask of those that must end before it starts."""
    masks: list[int] = []
    for inputs in problem.edges:
        mask = 0
        for u, _ in inputs:
            mask |= masks[u] | 1 << u
        masks.append(mask)
    return tuple(masks)


def without_implied_edges(problem: IntegerProblem) -> IntegerProblem:
    """Return an equivalent problem without implied edges.

    An edge is implied if, wherever its two ends run, a path over other operators keeps them at
    least as far apart as the transfer does. A residual connection around convolutions is: without
    it the operators it jumps over can split the problem.
    """
    masks = ancestors_of(problem)
    implied = {
        (u, w)
        for u, readers in enumerate(problem.readers)
        if len(readers) > 1
        for w in _implied_readers(problem, u, masks)
    }
    if not implied:
        return problem
    edges = tuple(
        tuple((u, delay) for u, delay in inputs if (u, w) not in implied)
        for w, inputs in enumerate(problem.edges)
    )
    return replace(problem, edges=edges)


def _implied_readers(problem: IntegerProblem, u: int, masks: tuple[int, ...]) -> list[int]:
    """Readers of u that a longer path leads to as well."""
    readers = dict(problem.readers[u])
    bypassed = [w for w in readers if any(masks[w] >> k & 1 for k in readers)]
    if not bypassed:
        return []
    # apart[w][p][q]: from the end of u on p to the start of w on q at least
    apart: dict[int, list[list[int]]] = {}
    found = []
    for w in range(u + 1, bypassed[-1] + 1):
        if not masks[w] >> u & 1:
            continue
        least = [[0] * problem.processors for _ in range(problem.processors)]
        for k, delay in problem.edges[w]:
            if k in apart:
                _raise_through(problem, apart[k], k, delay, least)
        if w in readers:
            direct = readers[w]
            pairs = [(p, q) for p in problem.choices[u] for q in problem.choices[w]]
            if w in bypassed and all(least[p][q] >= direct[p][q] for p, q in pairs):
                found.append(w)
            for p, q in pairs:
                least[p][q] = max(least[p][q], direct[p][q])
        apart[w] = least
    return found


def _raise_through(
    problem: IntegerProblem, apart: list[list[int]], k: int, delay: Delay, least: list[list[int]]
) -> None:
    """Raise what is between an operator and a reader of k by the way over k."""
    for row, best in zip(apart, least, strict=True):
        ends = [(row[r] + problem.time_us[k][r], delay[r]) for r in problem.choices[k]]
        for q in range(problem.processors):
            best[q] = max(best[q], min(end_us + d[q] for end_us, d in ends))
