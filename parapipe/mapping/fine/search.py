"""The exact search: cheap bounds first, then better bounds and CP-SAT."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from math import inf

from parapipe.mapping.budget import Budget
from parapipe.mapping.cp_sat import name
from parapipe.mapping.fine import cp_sat
from parapipe.mapping.fine.bounds import Bounds, narrowed, path_bounds
from parapipe.mapping.fine.cp_sat import Strategy
from parapipe.mapping.fine.integer_problem import IntegerProblem
from parapipe.mapping.fine.join_bounds import raise_bounds
from parapipe.mapping.fine.load_bound import load_bound, worth
from parapipe.mapping.fine.placement import Answer, by_least_way
from parapipe.mapping.fine.priced_lists import priced_list_schedules
from parapipe.mapping.units import NEVER

FEW = 0.25  # share of operators with a choice of processors, below which order is all
SMALL = 30  # operators of a problem that goes to CP-SAT as it is
LISTS = 200
ROUNDS = 20
MANY_ROUNDS = 300
# CP-SAT's own seconds
FIRST_S = 0.1
NEARBY_S = 0.4
SMALL_S = 0.02


@dataclass(slots=True)
class Search:
    """A search and what has closed the problem, as far as that is known."""

    seed: int
    solver: str = "list scheduling"

    def solve(self, problem: IntegerProblem, limit_units: int, budget: Budget) -> Answer:
        """Find a shortest placement of at most `limit_units`, or a bound."""
        bounds = path_bounds(problem)
        answer = Answer(bounds.makespan_units(), by_least_way(bounds))
        if answer.closed(limit_units) or not budget.left_s:
            return answer
        return self._close(bounds, answer, limit_units, budget)

    def _close(self, bounds: Bounds, answer: Answer, limit_units: int, budget: Budget) -> Answer:
        """Search a problem as a whole, with ever more effort."""
        if bounds.problem.operators > SMALL:
            known_units = load_bound(bounds, worth(bounds.problem, ROUNDS))
            answer = answer.and_then(Answer(known_units, None), NEVER)
            answer = self._raised(bounds, answer, limit_units, budget)
        answer = self._cp_sat(bounds, answer, limit_units, Strategy(FIRST_S), budget)
        if answer.closed(limit_units):
            return answer
        choices = bounds.problem.choices
        if sum(len(some) > 1 for some in choices) < FEW * len(choices):
            # a job shop, more or less: CP-SAT proves that best without interruption
            answer = self._nearby(bounds, answer, NEARBY_S, budget)
            return self._cp_sat(bounds, answer, limit_units, Strategy(inf, linear=True), budget)
        prices = worth(bounds.problem, MANY_ROUNDS)
        answer = answer.and_then(Answer(load_bound(bounds, prices), None), NEVER)
        for found in islice(priced_list_schedules(bounds, prices, self.seed), LISTS):
            answer = answer.and_then(Answer(0, found), NEVER)
            if not budget.left_s:
                break
        effort_s = FIRST_S
        while budget.left_s and not answer.closed(limit_units):
            answer = self._nearby(bounds, answer, effort_s, budget)
            strategy = Strategy(effort_s, linear=True)
            answer = self._cp_sat(bounds, answer, limit_units, strategy, budget)
            effort_s *= 2
        return answer

    def _raised(self, bounds: Bounds, answer: Answer, limit_units: int, budget: Budget) -> Answer:
        """Raise the bounds of a large problem."""
        within_units = answer.within(limit_units)
        tight = narrowed(bounds, within_units)
        if tight:
            raise_bounds(
                tight,
                answer.bound_units,
                within_units,
                lambda part, enough_units, us: self._small(part, enough_units, us, budget),
            )
            bounds.learn(tight)
            tight = narrowed(tight, within_units)
        bound_units = tight.makespan_units() if tight else within_units + 1
        return answer.and_then(Answer(bound_units, None), within_units)

    def _small(
        self, problem: IntegerProblem, enough_units: int, limit_units: int, budget: Budget
    ) -> Answer:
        """Bound a small problem with little effort, if its bound can exceed what is enough."""
        bounds = path_bounds(problem)
        best = by_least_way(bounds)
        answer = Answer(bounds.makespan_units(), best)
        if answer.closed(limit_units) or best.makespan_units <= enough_units or not budget.left_s:
            return answer
        return self._cp_sat(bounds, answer, limit_units, Strategy(SMALL_S), budget)

    def _nearby(self, bounds: Bounds, answer: Answer, effort_s: float, budget: Budget) -> Answer:
        """Look for a better placement near to the best."""
        best = answer.placement
        near = narrowed(bounds, best.makespan_units) if best else None
        if best is None or near is None or not budget.left_s:
            return answer
        found = cp_sat.solve(
            near,
            best.makespan_units,
            best,
            strategy=Strategy(effort_s, nearby=True),
            budget=budget,
            seed=self.seed,
        )
        return answer.and_then(found, best.makespan_units)

    def _cp_sat(
        self, bounds: Bounds, answer: Answer, limit_units: int, strategy: Strategy, budget: Budget
    ) -> Answer:
        """Search below the best placement with CP-SAT."""
        within_units = answer.within(limit_units)
        tight = narrowed(bounds, within_units)
        if tight is None:
            return answer.and_then(Answer(within_units + 1, None), within_units)
        self.solver = name()
        found = cp_sat.solve(
            tight, within_units, answer.placement, strategy=strategy, budget=budget, seed=self.seed
        )
        return answer.and_then(found, within_units)
