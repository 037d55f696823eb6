"""Better heads and tails: small exact problems before every join and behind every fork."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from parapipe.mapping.fine.bounds import Bounds
from parapipe.mapping.fine.integer_problem import IntegerProblem
from parapipe.mapping.fine.placement import Answer

WINDOW = 14  # operators before a join

# Given a problem, a bound of it that is enough, and a limit.
Solve = Callable[[IntegerProblem, int, int], Answer]


def raise_bounds(bounds: Bounds, known_units: int, limit_units: int, solve: Solve) -> None:
    """Raise heads, then tails; paths alone overlook that operators before a join share processors.

    Parameters
    ----------
    known_units
        A bound on the makespan: a head is of interest if it can lead beyond.
    limit_units
        Only makespans up to that are of interest.
    solve
        Bounds small problems.
    """
    _Heads(bounds, known_units, limit_units, solve).raise_all()
    bounds.propagate_tails()
    last = bounds.problem.operators - 1
    backwards = Bounds(
        bounds.problem.reversed(),
        [list(row) for row in reversed(bounds.tail_units)],
        [list(row) for row in reversed(bounds.head_units)],
    )
    _Heads(backwards, known_units, limit_units, solve).raise_all()
    for v in range(last + 1):
        bounds.tail_units[v][:] = backwards.head_units[last - v]
    bounds.propagate_heads()


@dataclass(frozen=True, slots=True)
class _Heads:
    """Heads to be raised, and what for."""

    bounds: Bounds
    known_units: int
    limit_units: int
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
        choices, head_units = self.bounds.problem.choices, self.bounds.head_units
        ancestors = [u for u in range(mask.bit_length()) if mask >> u & 1]
        ancestors.sort(key=lambda u: (min(head_units[u][p] for p in choices[u]), u))
        return tuple(sorted(ancestors[-WINDOW:]))

    def _raise(self, operators: tuple[int, ...], p: int) -> None:
        """Raise the head of the last of the operators by what the others need before it.

        Operators before the window are not ignored: heads found so far are releases.
        """
        problem, join = self.bounds.problem, operators[-1]
        head_units, tail_units = self.bounds.head_units[join], self.bounds.tail_units[join][p]
        time_units = problem.time_units[join][p]
        if head_units[p] + time_units + tail_units > self.limit_units:
            return
        part = problem.part(operators, [tuple(self.bounds.head_units[u]) for u in operators])
        part = part.pinned({len(operators) - 1: p})
        found = self.solve(part, self.known_units - tail_units, self.limit_units - tail_units)
        head_units[p] = max(head_units[p], found.bound_units - time_units)


def _ancestors_of(problem: IntegerProblem) -> tuple[int, ...]:
    """For each operator a bit mask of those that must end before it starts."""
    masks: list[int] = []
    for inputs in problem.edges:
        mask = 0
        for u, _ in inputs:
            mask |= masks[u] | 1 << u
        masks.append(mask)
    return tuple(masks)
