"""What must lie before and behind every operator: heads and tails, in microseconds."""

from __future__ import annotations

from dataclasses import dataclass

from parapipe.mapping.fine.integer_problem import IntegerProblem
from parapipe.mapping.units import NEVER


@dataclass(frozen=True, slots=True)
class Bounds:
    """Heads and tails; better ones are found by raising entries and propagating.

    Parameters
    ----------
    head_us
        `head_us[v][p]`: operator v on p cannot start before that.
    tail_us
        `tail_us[v][p]`: from its end to the end of everything at least that passes.
    """

    problem: IntegerProblem
    head_us: list[list[int]]
    tail_us: list[list[int]]

    def through_us(self, v: int, p: int) -> int:
        """Bound on the makespan if operator v runs on p."""
        return self.head_us[v][p] + self.problem.time_us[v][p] + self.tail_us[v][p]

    def makespan_us(self) -> int:
        """Bound on the makespan: some operator's best processor cannot do better."""
        return max(
            min(self.through_us(v, p) for p in choices)
            for v, choices in enumerate(self.problem.choices)
        )

    def learn(self, other: Bounds) -> None:
        """Take over what is known of the same operators with fewer choices.

        What was left out there leads beyond the limit there, so `other` holds for any placement
        within that.
        """
        for mine, better in ((self.head_us, other.head_us), (self.tail_us, other.tail_us)):
            for row, better_row in zip(mine, better, strict=True):
                row[:] = better_row

    def propagate_heads(self) -> None:
        """Raise every head by what the operator reads."""
        for v in range(self.problem.operators):
            self.raise_head(v)

    def raise_head(self, v: int) -> None:
        """Raise the head of one operator by what it reads."""
        problem, head_us = self.problem, self.head_us[v]
        for u, delay in problem.edges[v]:
            ends = [
                (self.head_us[u][p] + problem.time_us[u][p], delay[p]) for p in problem.choices[u]
            ]
            for q in problem.choices[v]:
                head_us[q] = max(head_us[q], min(end_us + row[q] for end_us, row in ends))

    def propagate_tails(self) -> None:
        """Raise every tail by what reads the operator."""
        problem = self.problem
        for u in reversed(range(problem.operators)):
            tail_us = self.tail_us[u]
            for v, delay in problem.readers[u]:
                left = [(self.tail_us[v][q] + problem.time_us[v][q], q) for q in problem.choices[v]]
                for p in problem.choices[u]:
                    row = delay[p]
                    tail_us[p] = max(tail_us[p], min(left_us + row[q] for left_us, q in left))


def path_bounds(problem: IntegerProblem) -> Bounds:
    """Heads and tails by longest paths, each step on the processors that shorten it most.

    H_vq = max over inputs u of min over p of (H_up + w_up + c_uv,pq), at least the release; tails
    likewise.
    """
    bounds = Bounds(
        problem,
        [list(row) for row in problem.release_us],
        [[0] * problem.processors for _ in problem.time_us],
    )
    bounds.propagate_heads()
    bounds.propagate_tails()
    return bounds


def narrowed(bounds: Bounds, limit_us: int) -> Bounds | None:
    """Leave out choices that cannot lead to a makespan of at most `limit_us`, and what follows.

    None if an operator has no choice left: there is no such schedule.
    """
    while True:
        problem = bounds.problem
        rows = []
        for v, row in enumerate(problem.time_us):
            kept = tuple(
                t if t < NEVER and bounds.through_us(v, p) <= limit_us else NEVER
                for p, t in enumerate(row)
            )
            if min(kept) == NEVER:
                return None
            rows.append(kept)
        if tuple(rows) == problem.time_us:
            return bounds
        bounds = Bounds(
            IntegerProblem(tuple(rows), problem.release_us, problem.edges),
            [list(row) for row in bounds.head_us],
            [list(row) for row in bounds.tail_us],
        )
        bounds.propagate_heads()
        bounds.propagate_tails()
