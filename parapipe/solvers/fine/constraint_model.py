"""The integer problem as a constraint programme, solved by CP-SAT."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

from parapipe.solvers.cp_sat import Budget, run_cp_sat
from parapipe.solvers.fine.integer_problem import Bounds, Delay, IntegerProblem
from parapipe.solvers.fine.list_schedules import Answer, Placement, placement

if TYPE_CHECKING:
    from ortools.sat.python import cp_model


@dataclass(frozen=True, slots=True)
class Strategy:
    """How CP-SAT searches.

    Parameters
    ----------
    deterministic_s
        Its own measure of work, at most.
    linear
        Solve linear relaxations on the way. They bound loads well, and are slow.
    nearby
        Only look for better placements near to the hint, which must lie within the limit.
    """

    deterministic_s: float
    linear: bool = False
    nearby: bool = False


def solve(
    bounds: Bounds,
    limit_units: int,
    hint: Placement | None,
    *,
    strategy: Strategy,
    budget: Budget,
    seed: int,
) -> Answer:
    """Search for a shortest placement of at most `limit_units`.

    For operators v on processors p, with start s_v and presence x_vp:

    - an optional interval (s_v, w_vp, x_vp) for each choice, no two overlapping on a processor,
      exactly one present for each operator;
    - s_v ≥ s_u + Σ_p w_up x_up on every edge, and x_up ∧ x_vq ⇒ s_v ≥ s_u + w_up + c_uv,pq;
    - s_v ≥ Σ_p H_vp x_vp and C ≥ s_v + Σ_p (w_vp + T_vp) x_vp with heads H and tails T;
    - C ≥ min head + Σ_v w_vp x_vp + min tail for each processor that runs anything;
    - C ≤ limit. Minimise C.

    Parameters
    ----------
    bounds
        Of the problem; each choice can lead to a makespan within the limit as far as they know.
    hint
        A placement to search near to; it may lie beyond the limit.
    """
    from ortools.sat.python import cp_model  # heavy

    model = Model(bounds, limit_units, cp_model.CpModel())
    model.state()
    if hint:
        model.hint(hint)
    solver, bound_units = search(model, strategy=strategy, budget=budget, seed=seed)
    if solver is None:
        return Answer(bound_units, None)
    starts_units = [solver.value(start) for start in model.start]
    return Answer(bound_units, placement(bounds.problem, model.processors(solver), starts_units))


def search(
    model: Model, *, strategy: Strategy, budget: Budget, seed: int
) -> tuple[cp_model.CpSolver | None, int]:
    """Let CP-SAT search.

    Returns
    -------
    tuple
        The solver with the best solution found, None if there is none; and the bound in
        units, one more than the model's limit if nothing is within that.
    """
    outcome = run_cp_sat(
        model.model,
        most_s=strategy.deterministic_s,
        budget=budget,
        seed=seed,
        interleave_search=strategy.nearby,
        use_lns_only=strategy.nearby,
        linearization_level=1 if strategy.linear else 0,
        cp_model_presolve=False,  # it takes more than it saves
    )
    if outcome.infeasible:
        return None, model.limit_units + 1
    bound_units = min(ceil(outcome.bound - 1e-6), model.limit_units + 1)
    bound_units = max(bound_units, model.bounds.makespan_units())
    return outcome.solver if outcome.found else None, bound_units


@dataclass(frozen=True, slots=True)
class Busy:
    """Something besides operators that keeps a processor busy."""

    interval: cp_model.IntervalVar
    present: cp_model.IntVar
    time_units: int


class Model:
    """The constraint programme under construction."""

    def __init__(self, bounds: Bounds, limit_units: int, model: cp_model.CpModel) -> None:
        self.bounds = bounds
        self.problem: IntegerProblem = bounds.problem
        self.limit_units = limit_units
        self.model = model
        self.makespan = model.new_int_var(bounds.makespan_units(), limit_units, "")
        self.start = [self._start(v) for v in range(self.problem.operators)]
        # a literal of each choice; the constant 1 where there is one choice only
        self.runs: dict[tuple[int, int], cp_model.IntVar] = {
            (v, p): model.new_bool_var("") if len(choices) > 1 else model.new_constant(1)
            for v, choices in enumerate(self.problem.choices)
            for p in choices
        }

        # what else keeps a processor busy: an interval, whether it is there, and its length
        self.busy: dict[int, list[Busy]] = {}

    def processors(self, solver: cp_model.CpSolver) -> list[int]:
        """Read the processor of each operator out of a solution."""
        return [
            next(p for p in choices if len(choices) == 1 or solver.value(self.runs[v, p]))
            for v, choices in enumerate(self.problem.choices)
        ]

    def state(self) -> None:
        """State variables, constraints and objective."""
        for v in range(self.problem.operators):
            self._place(v)
            for u, delay in self.problem.edges[v]:
                self._join(u, v, delay)
        for p in range(self.problem.processors):
            eligible = [v for v, choices in enumerate(self.problem.choices) if p in choices]
            if eligible:
                self._fill(p, eligible)
        self.model.minimize(self.makespan)

    def hint(self, incumbent: Placement) -> None:
        """Tell where a placement has everything."""
        self.model.add_hint(
            self.makespan, max(incumbent.makespan_units, self.bounds.makespan_units())
        )
        for v, choices in enumerate(self.problem.choices):
            self.model.add_hint(self.start[v], incumbent.start_units[v])
            if len(choices) > 1:
                for p in choices:
                    self.model.add_hint(self.runs[v, p], incumbent.processor[v] == p)

    def _start(self, v: int) -> cp_model.IntVar:
        head_units, tail_units = self.bounds.head_units[v], self.bounds.tail_units[v]
        time_units, choices = self.problem.time_units[v], self.problem.choices[v]
        first_units = min(head_units[p] for p in choices)
        last_units = max(self.limit_units - time_units[p] - tail_units[p] for p in choices)
        return self.model.new_int_var(first_units, last_units, "")

    def _sum(self, v: int, values: Sequence[int]) -> cp_model.LinearExpr:
        """Return the value that belongs to the processor of operator v."""
        choices = self.problem.choices[v]
        return weighted([self.runs[v, p] for p in choices], [values[p] for p in choices])

    def _place(self, v: int) -> None:
        choices, start = self.problem.choices[v], self.start[v]
        behind_units = [
            t + tail
            for t, tail in zip(self.problem.time_units[v], self.bounds.tail_units[v], strict=True)
        ]
        self.model.add(self.makespan >= start + self._sum(v, behind_units))
        if len(choices) > 1:
            self.model.add_exactly_one(self.runs[v, p] for p in choices)
            self.model.add(start >= self._sum(v, self.bounds.head_units[v]))

    def _join(self, u: int, v: int, delay: Delay) -> None:
        problem = self.problem
        self.model.add(self.start[v] >= self.start[u] + self._sum(u, problem.time_units[u]))
        for p in problem.choices[u]:
            for q in problem.choices[v]:
                if not delay[p][q]:
                    continue
                distance_units = problem.time_units[u][p] + delay[p][q]
                constraint = self.model.add(self.start[v] >= self.start[u] + distance_units)
                literals = [
                    self.runs[w, r] for w, r in ((u, p), (v, q)) if len(problem.choices[w]) > 1
                ]
                if literals:
                    constraint.only_enforce_if(literals)

    def _fill(self, p: int, eligible: Sequence[int]) -> None:
        """State that a processor runs one operator at a time, and that its load takes time."""
        problem, bounds = self.problem, self.bounds
        others = self.busy.get(p, [])
        intervals = [self._interval(v, p) for v in eligible]
        self.model.add_no_overlap([*intervals, *(busy.interval for busy in others)])
        idle_units = 0
        if not others:  # who knows what is first and last with them
            idle_units += min(bounds.head_units[v][p] for v in eligible)
            idle_units += min(bounds.tail_units[v][p] for v in eligible)
        load = weighted(
            [*(self.runs[v, p] for v in eligible), *(busy.present for busy in others)],
            [*(problem.time_units[v][p] for v in eligible), *(busy.time_units for busy in others)],
        )
        used: cp_model.IntVar | int = 1
        if all(len(problem.choices[v]) > 1 for v in eligible):
            used = self.model.new_bool_var("")
            for v in eligible:
                self.model.add_implication(self.runs[v, p], used)
        self.model.add(self.makespan >= idle_units * used + load)

    def _interval(self, v: int, p: int) -> cp_model.IntervalVar:
        time_units = self.problem.time_units[v][p]
        if len(self.problem.choices[v]) == 1:
            return self.model.new_fixed_size_interval_var(self.start[v], time_units, "")
        return self.model.new_optional_fixed_size_interval_var(
            self.start[v], time_units, self.runs[v, p], ""
        )


def weighted(variables: Sequence[cp_model.IntVar], factors: Sequence[int]) -> cp_model.LinearExpr:
    """Return the sum of variables, each times its factor."""
    from ortools.sat.python import cp_model  # heavy

    total: cp_model.LinearExpr = cp_model.LinearExpr.weighted_sum(variables, factors)
    return total
