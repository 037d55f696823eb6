"""A schedule: where and when every operator of a problem runs, on renamed processors too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Protocol

from parapipe.solvers.problem import Flow, MappingProblem

# `energy_j[v][p]`: dynamic joules of operator v on processor p, wherever p supports v.
Energies = tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True)
class EnergyClaim:
    """What is proven about the energy of a schedule.

    Parameters
    ----------
    objective_j, bound_j
        Dynamic joules of all operators, and the proven lower bound on those of every schedule that
        ends by the deadline.
    deadline_s
        None if there is none.
    proven
        Whether no such schedule takes less, in whole nanojoules.
    """

    objective_j: float
    bound_j: float
    deadline_s: float | None
    proven: bool

    @property
    def gap(self) -> float:
        """Relative optimality gap: 0 if proven."""
        return _gap(self.objective_j, self.bound_j, self.proven)


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
    energy
        What is proven about the energy, if the schedule is one of a set that trades time for it.
    """

    proves: str
    objective_s: float
    bound_s: float
    proven: bool
    wall_s: float
    seed: int
    solver: str
    energy: EnergyClaim | None = None

    @property
    def gap(self) -> float:
        """Relative optimality gap: 0 if proven."""
        return _gap(self.objective_s, self.bound_s, self.proven)


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
    def energy_j(self) -> float:
        """Dynamic joules of all operators, which the certificate must speak of."""
        assert self.certificate.energy is not None
        return self.certificate.energy.objective_j

    @property
    def timing(self) -> tuple[object, ...]:
        """The schedule without its certificate."""
        return self.processor, self.start_s, self.end_s, self.transfers

    @property
    def used(self) -> frozenset[int]:
        """Processors that run at least one operator."""
        return frozenset(self.processor)


@dataclass(frozen=True, slots=True)
class Answer:
    """The schedules that answer a problem: the shortest, or a set that trades time for energy.

    Parameters
    ----------
    schedules
        By ascending makespan and descending energy: none is better than another in both.
    resolution
        Whatever schedule there is, one of these takes at most this share more time, and at most
        this share more energy. Infinite if nothing of the kind is known.
    timed_out
        Whether the time limit ended the search. Else only rounding, or transfers that occupy
        something, make the resolution coarser than requested.
    """

    schedules: tuple[Schedule, ...]
    resolution: float
    timed_out: bool


class Mapper(Protocol):
    """The shape of every mapper."""

    def __call__(self, problem: MappingProblem, *, time_limit_s: float, seed: int) -> Schedule:
        """Place and order the problem's operators; raise MappingError if that is impossible."""
        ...


def _gap(objective: float, bound: float, proven: bool) -> float:
    return 0.0 if proven or objective <= 0 else (objective - bound) / objective


# `names[p]`: the new number of processor p.
Names = tuple[int, ...]
Matrix = tuple[tuple[float, ...], ...]


def rename_processors(problem: MappingProblem, names: Names) -> MappingProblem:
    """Return the problem with other numbers of its processors; links keep theirs."""
    old, links = inverse_names(names), problem.transfer_resource
    return MappingProblem(
        rename_columns(problem.time_s, names),
        tuple(
            Flow(
                flow.producer,
                flow.consumers,
                _renamed_matrix(flow.transfer_s, old),
                None if flow.location is None else names[flow.location],
            )
            for flow in problem.flows
        ),
        problem.structure,
        links and tuple(tuple(_resource(links[p][q], names) for q in old) for p in old),
    )


def rename_columns(rows: Energies, names: Names) -> Energies:
    """Return times or energies of operators on processors with other numbers of these."""
    old = inverse_names(names)
    return tuple(tuple(row[p] for p in old) for row in rows)


def rename_schedule(schedule: Schedule, names: Names) -> Schedule:
    """Return the schedule of the problem with these numbers of its processors."""
    return replace(
        schedule,
        processor=tuple(names[p] for p in schedule.processor),
        transfers=tuple(replace(t, target=names[t.target]) for t in schedule.transfers),
    )


def rename_answer(answer: Answer, names: Names) -> Answer:
    """Return the answer to the problem with these numbers of its processors."""
    return replace(
        answer, schedules=tuple(rename_schedule(each, names) for each in answer.schedules)
    )


def inverse_names(names: Sequence[int]) -> Names:
    """Return the names that undo others."""
    return tuple(sorted(range(len(names)), key=names.__getitem__))


@lru_cache(maxsize=4096)  # problems of one unit share their tensors
def _renamed_matrix(transfer_s: Matrix, old: Names) -> Matrix:
    return tuple(tuple(transfer_s[p][q] for q in old) for p in old)


def _resource(resource: int | None, names: Names) -> int | None:
    return resource if resource is None or resource >= len(names) else names[resource]
