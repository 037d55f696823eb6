"""Time against energy: what a schedule takes of both, and what is proven about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import fsum, isfinite, ulp

from parapipe.errors import VerificationError
from parapipe.mapping.problem import MappingProblem
from parapipe.mapping.schedule import Schedule
from parapipe.mapping.verify import verify

# `energy_j[v][p]`: dynamic joules of operator v on processor p, wherever p supports v.
Energies = tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True)
class EnergyCertificate:
    """What a solver proved about the energy of its answer.

    Parameters
    ----------
    objective_j, bound_j
        Joules of the answer, and the proven lower bound on those of every schedule that ends by
        the deadline.
    deadline_s
        None if there is none.
    proven
        Whether no schedule takes less, in whole nanojoules.
    wall_s, seed, solver
        How the answer was found; `solver` holds name and version. Not part of any plan.
    """

    objective_j: float
    bound_j: float
    deadline_s: float | None
    proven: bool
    wall_s: float
    seed: int
    solver: str

    @property
    def proves(self) -> str:
        """The figure that objective and bound speak of."""
        return "energy"

    @property
    def gap(self) -> float:
        """Relative optimality gap: 0 if proven."""
        if self.proven or self.objective_j <= 0:
            return 0.0
        return (self.objective_j - self.bound_j) / self.objective_j


@dataclass(frozen=True, slots=True)
class TradeOff:
    """A schedule with the energy it takes.

    Its own certificate speaks of the makespan, `claim` of the energy.
    """

    schedule: Schedule
    claim: EnergyCertificate

    @property
    def energy_j(self) -> float:
        """Dynamic joules of all operators."""
        return self.claim.objective_j


@dataclass(frozen=True, slots=True)
class TradeOffs:
    """Schedules of one problem, none of them better than another in both time and energy.

    Parameters
    ----------
    points
        By ascending makespan and descending energy.
    resolution
        Whatever schedule there is, one of the points takes at most this share more time, and at
        most this share more energy. Infinite if nothing of the kind is known.
    timed_out
        Whether the time limit ended the search. Else rounding alone keeps the resolution from what
        was asked for, or transfers that occupy something.
    """

    points: tuple[TradeOff, ...]
    resolution: float
    timed_out: bool


def verify_trade_off(problem: MappingProblem, energy_j: Energies, found: TradeOff) -> None:
    """Check a schedule, and that it takes the energy that is claimed.

    Raises
    ------
    VerificationError
        If a rule is broken; lists every violation.
    """
    verify(problem, found.schedule)
    claim = found.claim
    taken_j = energy_of(energy_j, found.schedule.processor)
    tolerance_j = (problem.operators + 2) * ulp(max(abs(taken_j), abs(claim.objective_j)))
    wrong = []
    if not (isfinite(claim.objective_j) and isfinite(claim.bound_j) and isfinite(claim.wall_s)):
        wrong.append("the certificate of its energy holds numbers that are not finite")
    elif abs(taken_j - claim.objective_j) > tolerance_j:
        wrong.append(f"it takes {taken_j:.9g} J, and {claim.objective_j:.9g} J are claimed")
    elif claim.bound_j > claim.objective_j + tolerance_j:
        wrong.append(
            f"its bound {claim.bound_j:.9g} J lies above its energy {claim.objective_j:.9g} J"
        )
    if wrong:
        raise VerificationError(f"the schedule is wrong: {'; '.join(wrong)}", wrong)


def verify_trade_offs(problem: MappingProblem, energy_j: Energies, found: TradeOffs) -> None:
    """Check every point, and that none is better than another in both time and energy.

    Raises
    ------
    VerificationError
        If a rule is broken.
    """
    for point in found.points:
        verify_trade_off(problem, energy_j, point)
    pairs = [(point.schedule.makespan_s, point.energy_j) for point in found.points]
    wrong = []
    if not pairs:
        wrong.append("it holds no schedule")
    if any(t >= u or e <= f for (t, e), (u, f) in pairwise(pairs)):
        wrong.append("its times do not ascend while its energies descend")
    if not found.resolution >= 0:
        wrong.append(f"its resolution is {found.resolution}")
    if wrong:
        raise VerificationError(f"the set of schedules is wrong: {'; '.join(wrong)}", wrong)


def energy_of(energy_j: Energies, processor: Sequence[int]) -> float:
    """Dynamic joules of all operators, each on its processor."""
    return fsum(row[p] for row, p in zip(energy_j, processor, strict=True))
