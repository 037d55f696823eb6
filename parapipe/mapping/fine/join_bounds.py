"""Better heads and tails: small exact problems before every join and behind every fork."""

from __future__ import annotations

from collections.abc import Callable

from parapipe.mapping.fine.bounds import Bounds
from parapipe.mapping.fine.implied import ancestors_of
from parapipe.mapping.fine.integer_problem import IntegerProblem
from parapipe.mapping.fine.placement import Answer

WINDOW = 28

Solve = Callable[[IntegerProblem, int], Answer]


def raise_bounds(bounds: Bounds, limit_us: int, solve: Solve) -> None:
    """Raise heads, then tails; paths alone overlook that operators before a join share processors.

    Parameters
    ----------
    limit_us
        Only makespans up to that are of interest.
    solve
        Finds bounds of small problems, given a limit.
    """
    _raise_heads(bounds, limit_us, solve)
    bounds.propagate_tails()
    last = bounds.problem.operators - 1
    backwards = Bounds(
        bounds.problem.reversed(),
        [list(row) for row in reversed(bounds.tail_us)],
        [list(row) for row in reversed(bounds.head_us)],
    )
    _raise_heads(backwards, limit_us, solve)
    for v in range(last + 1):
        bounds.tail_us[v][:] = backwards.head_us[last - v]
    bounds.propagate_heads()


def _raise_heads(bounds: Bounds, limit_us: int, solve: Solve) -> None:
    before = ancestors_of(bounds.problem)
    for v, inputs in enumerate(bounds.problem.edges):
        bounds.raise_head(v)
        if len(inputs) > 1:
            window = _window(bounds, before[v])
            for p in bounds.problem.choices[v]:
                _raise_head(bounds, (*window, v), p, limit_us, solve)


def _window(bounds: Bounds, mask: int) -> tuple[int, ...]:
    """Return the ancestors nearest to a join: with two of them all that lies between."""
    ancestors = [u for u in range(mask.bit_length()) if mask >> u & 1]

    def nearness(u: int) -> tuple[int, int]:
        return min(bounds.head_us[u][p] for p in bounds.problem.choices[u]), u

    return tuple(sorted(sorted(ancestors, key=nearness)[-WINDOW:]))


def _raise_head(
    bounds: Bounds, operators: tuple[int, ...], p: int, limit_us: int, solve: Solve
) -> None:
    """Raise the head of the last of the operators by what the others need before it.

    Operators before the window are not ignored: heads found so far are releases.
    """
    problem, join = bounds.problem, operators[-1]
    part = problem.part(operators, [tuple(bounds.head_us[u]) for u in operators])
    part = part.pinned({len(operators) - 1: p})
    latest_us = limit_us - bounds.tail_us[join][p]
    if bounds.head_us[join][p] + problem.time_us[join][p] <= latest_us:
        end_us = solve(part, latest_us).bound_us
        bounds.head_us[join][p] = max(bounds.head_us[join][p], end_us - problem.time_us[join][p])
