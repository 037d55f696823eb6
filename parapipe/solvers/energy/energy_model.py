"""Least energy under a deadline as a constraint programme, built once and solved many times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from parapipe.solvers.cp_sat import Budget, run_cp_sat
from parapipe.solvers.fine.constraint_model import Model
from parapipe.solvers.fine.integer_problem import IntegerProblem, path_bounds
from parapipe.solvers.fine.list_schedules import Placement, placement
from parapipe.solvers.problem import NANO, ROUNDING, floor_units
from parapipe.solvers.schedule import Energies

LONG_S = 0.5  # CP-SAT's own seconds


@dataclass(frozen=True, slots=True)
class DeadlineResult:
    """What is known of the least energy under a deadline.

    Parameters
    ----------
    bound_nj
        No schedule that ends by the deadline takes less; None if there is no such schedule.
    placement
        The best found; None if none was found.
    """

    bound_nj: int | None
    placement: Placement | None


class EnergyModel:
    """Placements of a problem that end by a deadline, and the energy they take.

    The constraints are those of `fine.cp_sat`; the makespan is bounded, and Σ e_vp x_vp minimised.

    Parameters
    ----------
    problem
        Times in whole microseconds.
    energy_j
        Joules of operator v on p; they count in whole nanojoules, rounded down.
    longest_us
        No deadline is later.
    gap
        A proof that the energy is within this share of the least will do.
    """

    def __init__(
        self, problem: IntegerProblem, energy_j: Energies, longest_us: int, gap: float = 0.0
    ) -> None:
        from ortools.sat.python import cp_model  # heavy

        bounds = path_bounds(problem)
        self.shortest_us = bounds.makespan_units()
        self.energy_nj = tuple(
            tuple(floor_units(row[p], NANO) if p in able else 0 for p in range(problem.processors))
            for row, able in zip(energy_j, problem.choices, strict=True)
        )
        self._problem = problem
        self._gap = gap
        self._least_nj = sum(
            min(row[p] for p in able)
            for row, able in zip(self.energy_nj, problem.choices, strict=True)
        )
        self._programme = Model(bounds, max(longest_us, self.shortest_us), cp_model.CpModel())
        self._programme.state()
        self._programme.model.minimize(
            cp_model.LinearExpr.weighted_sum(
                list(self._programme.runs.values()),
                [self.energy_nj[v][p] for v, p in self._programme.runs],
            )
        )

    def solve(
        self, deadline_us: int, hint: Placement | None, *, budget: Budget, seed: int
    ) -> DeadlineResult:
        """Search for the least energy with a makespan of at most `deadline_us`.

        A long search is given up at some point, and the bound counts.
        """
        if deadline_us < self.shortest_us:
            return DeadlineResult(None, None)
        if not budget.left_s:
            return DeadlineResult(self._least_nj, None)
        # a field of the model, so that nothing has to be built again
        self._programme.makespan.proto.domain[1] = deadline_us
        self._hint(hint)
        return self._search(budget, seed)

    def _hint(self, hint: Placement | None) -> None:
        self._programme.model.clear_hints()  # type: ignore[no-untyped-call]
        if hint is not None:
            self._programme.hint(hint)

    def _search(self, budget: Budget, seed: int) -> DeadlineResult:
        outcome = run_cp_sat(
            self._programme.model,
            most_s=LONG_S,
            budget=budget,
            seed=seed,
            linearization_level=1,
            relative_gap_limit=self._gap,
        )
        if outcome.infeasible:
            return DeadlineResult(None, None)
        bound_nj = max(ceil(outcome.bound - ROUNDING), self._least_nj)
        if not outcome.found:
            return DeadlineResult(bound_nj, None)
        solver = outcome.solver
        starts_us = [solver.value(start) for start in self._programme.start]
        best = placement(self._problem, self._programme.processors(solver), starts_us)
        return DeadlineResult(bound_nj, best)


def dynamic_nj(energy_j: Energies, processor: Sequence[int]) -> int:
    """Nanojoules that the operators take, each rounded down."""
    return sum(floor_units(row[p], NANO) for row, p in zip(energy_j, processor, strict=True))
