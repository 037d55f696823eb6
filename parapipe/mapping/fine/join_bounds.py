"""Better heads and tails: small exact problems before every join and behind every fork."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from parapipe.mapping.fine.bounds import Bounds
from parapipe.mapping.fine.integer_problem import IntegerProblem
from parapipe.mapping.fine.placement import Answer

WINDOW = 28

# Given a problem, a bound of it that is enough, and a limit.
Solve = Callable[[IntegerProblem, int, int], Answer]


def raise_bounds(bounds: Bounds, known_us: int, limit_us: int, solve: Solve) -> None:
    """Raise heads, then tails; paths alone overlook that operators before a join share processors.

    Parameters
    ----------
    known_us
        A bound on the makespan: a head is of interest if it can lead beyond.
    limit_us
        Only makespans up to that are of interest.
    solve
        Bounds small problems.
    """
    _Heads(bounds, known_us, limit_us, solve).raise_all()
    bounds.propagate_tails()
    last = bounds.problem.operators - 1
    backwards = Bounds(
        bounds.problem.reversed(),
        [list(row) for row in reversed(bounds.tail_us)],
        [list(row) for row in reversed(bounds.head_us)],
    )
    _Heads(backwards, known_us, limit_us, solve).raise_all()
    for v in range(last + 1):
        bounds.tail_us[v][:] = backwards.head_us[last - v]
    bounds.propagate_heads()


@dataclass(frozen=True, slots=True)
class _Heads:
    """Heads to be raised, and what for."""

    bounds: Bounds
    known_us: int
    limit_us: int
    solve: Solve

    def raise_all(self) -> None:
        before = _ancestors_of(self.bounds.problem)
        for v, inputs in enumerate(self.bounds.problem.edges):
            self.bounds.raise_head(v)
            if len(inputs) > 1:
                window = self._window(before[v])
                for p in self.bounds.problem.choices[v]:
                    self._raise((*window, v), p)

    def _window(self, mask: int) -> tuple[int, ...]:
        """Return the ancestors nearest to a join: with two of them all that lies between."""
        choices, head_us = self.bounds.problem.choices, self.bounds.head_us
        ancestors = [u for u in range(mask.bit_length()) if mask >> u & 1]
        ancestors.sort(key=lambda u: (min(head_us[u][p] for p in choices[u]), u))
        return tuple(sorted(ancestors[-WINDOW:]))

    def _raise(self, operators: tuple[int, ...], p: int) -> None:
        """Raise the head of the last of the operators by what the others need before it.

        Operators before the window are not ignored: heads found so far are releases.
        """
        problem, join = self.bounds.problem, operators[-1]
        head_us, tail_us = self.bounds.head_us[join], self.bounds.tail_us[join][p]
        time_us = problem.time_us[join][p]
        if head_us[p] + time_us + tail_us > self.limit_us:
            return
        part = problem.part(operators, [tuple(self.bounds.head_us[u]) for u in operators])
        part = part.pinned({len(operators) - 1: p})
        found = self.solve(part, self.known_us - tail_us, self.limit_us - tail_us)
        head_us[p] = max(head_us[p], found.bound_us - time_us)


def _ancestors_of(problem: IntegerProblem) -> tuple[int, ...]:
    """For each operator a bit mask of those that must end before it starts."""
    masks: list[int] = []
    for inputs in problem.edges:
        mask = 0
        for u, _ in inputs:
            mask |= masks[u] | 1 << u
        masks.append(mask)
    return tuple(masks)
