"""What must lie before and behind every operator: heads and tails, in units."""

from __future__ import annotations

from dataclasses import dataclass

from parapipe.mapping.fine.integer_problem import IntegerProblem
from parapipe.mapping.units import NEVER


@dataclass(frozen=True, slots=True)
class Bounds:
    """Heads and tails; better ones are found by raising entries and propagating.

    Parameters
    ----------
    head_units
        `head_units[v][p]`: operator v on p cannot start before that.
    tail_units
        `tail_units[v][p]`: from its end to the end of everything at least that passes.
    """

    problem: IntegerProblem
    head_units: list[list[int]]
    tail_units: list[list[int]]

    def through_units(self, v: int, p: int) -> int:
        """Bound on the makespan if operator v runs on p."""
        return self.head_units[v][p] + self.problem.time_units[v][p] + self.tail_units[v][p]

    def makespan_units(self) -> int:
        """Bound on the makespan: some operator's best processor cannot do better."""
        return max(
            min(self.through_units(v, p) for p in choices)
            for v, choices in enumerate(self.problem.choices)
        )

    def learn(self, other: Bounds) -> None:
        """Take over what is known of the same operators with fewer choices.

        What was left out there leads beyond the limit there, so `other` holds for any placement
        within that.
        """
        for mine, better in (
            (self.head_units, other.head_units),
            (self.tail_units, other.tail_units),
        ):
            for row, better_row in zip(mine, better, strict=True):
                row[:] = better_row

    def propagate_heads(self) -> None:
        """Raise every head by what the operator reads."""
        for v in range(self.problem.operators):
            self.raise_head(v)

    def raise_head(self, v: int) -> None:
        """Raise the head of one operator by what it reads."""
        problem, head_units = self.problem, self.head_units[v]
        for u, delay in problem.edges[v]:
            ends = [
                (self.head_units[u][p] + problem.time_units[u][p], delay[p])
                for p in problem.choices[u]
            ]
            for q in problem.choices[v]:
                head_units[q] = max(
                    head_units[q], min(end_units + row[q] for end_units, row in ends)
                )

    def propagate_tails(self) -> None:
        """Raise every tail by what reads the operator."""
        problem = self.problem
        for u in reversed(range(problem.operators)):
            tail_units = self.tail_units[u]
            for v, delay in problem.readers[u]:
                left = [
                    (self.tail_units[v][q] + problem.time_units[v][q], q)
                    for q in problem.choices[v]
                ]
                for p in problem.choices[u]:
                    row = delay[p]
                    tail_units[p] = max(
                        tail_units[p], min(left_units + row[q] for left_units, q in left)
                    )


def path_bounds(problem: IntegerProblem) -> Bounds:
    """Heads and tails by longest paths, each step on the processors that shorten it most.

    H_vq = max over inputs u of min over p of (H_up + w_up + c_uv,pq), at least the release; tails
    likewise.
    """
    bounds = Bounds(
        problem,
        [list(row) for row in problem.release_units],
        [[0] * problem.processors for _ in problem.time_units],
    )
    bounds.propagate_heads()
    bounds.propagate_tails()
    return bounds


def narrowed(bounds: Bounds, limit_units: int) -> Bounds | None:
    """Leave out choices that cannot lead to a makespan of at most `limit_units`, and what follows.

    None if an operator has no choice left: there is no such schedule.
    """
    while True:
        problem = bounds.problem
        rows = []
        for v, row in enumerate(problem.time_units):
            kept = tuple(
                t if t < NEVER and bounds.through_units(v, p) <= limit_units else NEVER
                for p, t in enumerate(row)
            )
            if min(kept) == NEVER:
                return None
            rows.append(kept)
        if tuple(rows) == problem.time_units:
            return bounds
        bounds = Bounds(
            IntegerProblem(tuple(rows), problem.release_units, problem.edges),
            [list(row) for row in bounds.head_units],
            [list(row) for row in bounds.tail_units],
        )
        bounds.propagate_heads()
        bounds.propagate_tails()
