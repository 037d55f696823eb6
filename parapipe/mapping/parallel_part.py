"""Parallel branches that the ILP has assigned, and what is proven of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import fsum, inf

from parapipe.mapping.branch_ilp import Assignment, assign
from parapipe.mapping.problem import Parallel
from parapipe.mapping.units import MICRO, whole


@dataclass(frozen=True, slots=True)
class Claim:
    """What is proven of one part of the outermost series."""

    objective_s: float
    bound_s: float
    proven: bool
    solver: str


@dataclass(slots=True)
class Part:
    """Parallel branches, each whole on one processor.

    Parameters
    ----------
    load_s
        t_bp + c_b,p,sink of each branch on each processor; infinite where it cannot run.
    base_s
        What each processor carries beside them.
    split_bound_s
        If branches beside them are split between processors: a bound on L however that is done.
    processor
        Of each branch.
    """

    branches: Parallel
    load_s: tuple[tuple[float, ...], ...]
    base_s: tuple[float, ...]
    assignment: Assignment
    split_bound_s: float | None = None
    processor: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.processor = list(self.assignment.processor)

    def heaviest_s(self) -> float:
        """L of equation (2)."""
        rows = list(zip(self.load_s, self.processor, strict=True))
        return max(
            fsum([base, *(row[p] for row, q in rows if q == p)])
            for p, base in enumerate(self.base_s)
        )

    def claim(self) -> Claim:
        """Say what the answer of the ILP is worth."""
        answer = self.assignment
        bound_s, proven = answer.bound_us / MICRO, answer.proven
        if self.split_bound_s is not None:
            bound_s, proven = self.split_bound_s, False
        objective_s = self.heaviest_s()
        return Claim(objective_s, min(bound_s, objective_s), proven, answer.solver)


def assigned(
    branches: Parallel,
    load_s: tuple[tuple[float, ...], ...],
    base_s: tuple[float, ...],
    *,
    time_limit_s: float,
    seed: int,
    deterministic: bool = False,
) -> Part:
    """Assign branches by equations (1) and (2), in whole microseconds rounded down."""
    assignment = assign(
        tuple(tuple(None if s == inf else whole(s) for s in row) for row in load_s),
        tuple(whole(s) for s in base_s),
        time_limit_s=time_limit_s,
        seed=seed,
        deterministic=deterministic,
    )
    return Part(branches, load_s, base_s, assignment)
