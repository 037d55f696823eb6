"""A schedule: where and when every operator of a mapping problem runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from parapipe.mapping.problem import MappingProblem


@dataclass(frozen=True, slots=True)
class Certificate:
    """What a solver proved about its answer.

    Parameters
    ----------
    proves
        The figure that objective and bound speak of ("makespan", "L of equation (2)").
    objective_s, bound_s
        Value of the answer and the proven lower bound on the best possible value.
    proven
        Whether the answer is proven optimal (bound equals objective in the solver's units).
    wall_s, seed, solver
        How the answer was found; `solver` holds name and version. Not part of any plan.
    """

    proves: str
    objective_s: float
    bound_s: float
    proven: bool
    wall_s: float
    seed: int
    solver: str

    @property
    def gap(self) -> float:
        """Relative optimality gap: 0 if proven."""
        if self.proven or self.objective_s <= 0:
            return 0.0
        return (self.objective_s - self.bound_s) / self.objective_s


@dataclass(frozen=True, slots=True)
class Transfer:
    """A tensor under way, where that keeps a resource busy.

    Parameters
    ----------
    flow
        Index into the problem's flows.
    target
        Processor that receives it; all consumers there share it.
    start_s, end_s
        Seconds from the subgraph's start.
    """

    flow: int
    target: int
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class Schedule:
    """Processor, start and end of every operator, in exact seconds from the subgraph's start.

    `makespan_s` is the latest end. `certificate` is what the mapper proved; the makespan may be
    another figure than the one proven. `transfers` holds those that keep a resource busy; pure
    delays need no time of their own.
    """

    processor: tuple[int, ...]
    start_s: tuple[float, ...]
    end_s: tuple[float, ...]
    certificate: Certificate
    transfers: tuple[Transfer, ...] = ()

    @property
    def makespan_s(self) -> float:
        """Seconds until the last operator has ended."""
        return max(self.end_s)

    @property
    def used(self) -> frozenset[int]:
        """Processors that run at least one operator."""
        return frozenset(self.processor)


class Mapper(Protocol):
    """The shape of every mapper."""

    def __call__(self, problem: MappingProblem, *, time_limit_s: float, seed: int) -> Schedule:
        """Place and order the problem's operators; raise MappingError if that is impossible."""
        ...
