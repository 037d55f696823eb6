"""Least energy under a deadline as a constraint programme, built once and solved many times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

from parapipe.mapping.fine.bounds import Bounds, path_bounds
from parapipe.mapping.fine.budget import Budget
from parapipe.mapping.fine.cp_sat import LEAST_S, SEED_LIMIT, WORK, Model
from parapipe.mapping.fine.implied import without_implied_edges
from parapipe.mapping.fine.integer_problem import IntegerProblem
from parapipe.mapping.fine.placement import Placement, placement
from parapipe.mapping.schedule import Energies
from parapipe.mapping.units import NANO, ROUNDING, whole

if TYPE_CHECKING:
    pass

SMALL = 30  # operators of a problem that is searched without a linear relaxation first
# CP-SAT's own seconds
FIRST_S = 0.1
LONG_S = 0.5


@dataclass(frozen=True, slots=True)
class Frugal:
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
        self.shortest_us = bounds.makespan_us()
        self.energy_nj = tuple(
            tuple(whole(row[p], NANO) if p in choices else 0 for p in range(problem.processors))
            for row, choices in zip(energy_j, problem.choices, strict=True)
        )
        self._problem = problem
        self._gap = gap
        self._least_nj = sum(
            min(row[p] for p in choices)
            for row, choices in zip(self.energy_nj, problem.choices, strict=True)
        )
        reduced = Bounds(without_implied_edges(problem), bounds.head_us, bounds.tail_us)
        self._built = Model(reduced, max(longest_us, self.shortest_us), cp_model.CpModel())
        self._built.state()
        self._built.model.minimize(
            cp_model.LinearExpr.weighted_sum(
                list(self._built.runs.values()),
                [self.energy_nj[v][p] for v, p in self._built.runs],
            )
        )

    def solve(
        self, deadline_us: int, hint: Placement | None, *, budget: Budget, seed: int
    ) -> Frugal:
        """Search for the least energy with a makespan of at most `deadline_us`.

        Short searches come first; a long one is given up at some point, and the bound counts.
        """
        if deadline_us < self.shortest_us:
            return Frugal(None, None)
        known = Frugal(self._least_nj, None)
        # a field of the model, so that nothing has to be built again
        self._built.makespan.proto.domain[1] = deadline_us
        small = self._problem.operators <= SMALL
        for effort_s, thorough in ((FIRST_S, not small), (LONG_S, True)):
            if not budget.left_s:
                break
            self._hint(hint)
            found = self._search(effort_s, thorough, budget, seed)
            if found.bound_nj is None:
                return found
            bound_nj = max(known.bound_nj or 0, found.bound_nj)
            known = Frugal(bound_nj, found.placement or known.placement)
            hint = known.placement or hint
            if known.placement and self._taken_nj(known.placement) <= bound_nj * (1 + self._gap):
                break
        return known

    def _hint(self, hint: Placement | None) -> None:
        self._built.model.clear_hints()  # type: ignore[no-untyped-call]
        if hint is not None:
            self._built.hint(hint)

    def _search(self, effort_s: float, thorough: bool, budget: Budget, seed: int) -> Frugal:
        from ortools.sat.python import cp_model  # heavy

        solver = cp_model.CpSolver()
        parameters = solver.parameters
        parameters.num_workers = 1  # more are not reproducible, and other problems use the cores
        parameters.linearization_level = 1 if thorough else 0
        parameters.cp_model_presolve = thorough
        parameters.random_seed = seed % SEED_LIMIT
        parameters.catch_sigint_signal = False  # Ctrl-C is Python's to handle
        parameters.relative_gap_limit = self._gap if thorough else 0.0
        parameters.max_deterministic_time = effort_s
        if budget.deterministic:
            parameters.max_deterministic_time = min(effort_s, budget.left_s / WORK)
        else:
            parameters.max_time_in_seconds = budget.left_s
        status = solver.solve(self._built.model)
        budget.work(WORK * max(solver.response_proto.deterministic_time, LEAST_S))
        if status == cp_model.INFEASIBLE:
            return Frugal(None, None)
        bound_nj = max(ceil(solver.best_objective_bound - ROUNDING), self._least_nj)
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return Frugal(bound_nj, None)
        starts_us = [solver.value(start) for start in self._built.start]
        found = placement(self._problem, self._built.processors(solver), starts_us)
        return Frugal(bound_nj, found)

    def _taken_nj(self, found: Placement) -> int:
        return sum(row[p] for row, p in zip(self.energy_nj, found.processor, strict=True))


def taken_nj(energy_j: Energies, processor: Sequence[int]) -> int:
    """Nanojoules that the operators take, each rounded down."""
    return sum(whole(row[p], NANO) for row, p in zip(energy_j, processor, strict=True))
