"""The exact search: cheap bounds first, then segments, then better bounds and CP-SAT."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice

from parapipe.mapping.fine import cp_sat
from parapipe.mapping.fine.articulation import segments_of
from parapipe.mapping.fine.bounds import Bounds, narrowed, path_bounds
from parapipe.mapping.fine.budget import Budget
from parapipe.mapping.fine.cp_sat import Strategy
from parapipe.mapping.fine.implied import without_implied_edges
from parapipe.mapping.fine.integer_problem import NEVER, IntegerProblem
from parapipe.mapping.fine.join_bounds import raise_bounds
from parapipe.mapping.fine.load_bound import load_bound
from parapipe.mapping.fine.placement import Answer, best_list_schedule
from parapipe.mapping.fine.priced_lists import priced_list_schedules
from parapipe.mapping.fine.segment_chain import chained

SMALL = 30
LISTS = 200
# CP-SAT's own seconds
FIRST_S = 0.3
SMALL_S = 0.02


@dataclass(slots=True)
class Search:
    """A search and what it has found out so far.

    Parameters
    ----------
    known
        Answers by problem; networks repeat their blocks.
    solver
        What has closed the problem, as far as that is known.
    """

    seed: int
    known: dict[IntegerProblem, Answer] = field(default_factory=dict)
    solver: str = "list scheduling"

    def solve(self, problem: IntegerProblem, limit_us: int, budget: Budget) -> Answer:
        """Find a shortest placement of at most `limit_us`, or a bound."""
        known = self.known.get(problem)
        if known and known.closed(limit_us):
            return known
        answer = self._solve(problem, limit_us, budget)
        if answer.closed(limit_us):
            self.known[problem] = answer
        return answer

    def _solve(self, problem: IntegerProblem, limit_us: int, budget: Budget) -> Answer:
        bounds = path_bounds(problem)
        best = best_list_schedule(bounds)
        answer = Answer(bounds.makespan_us(), best)
        if answer.closed(limit_us) or not budget.left_s:
            return answer
        reduced = without_implied_edges(problem)
        bounds = Bounds(reduced, bounds.head_us, bounds.tail_us)
        segments = segments_of(bounds)
        within_us = min(limit_us, best.makespan_us - 1)
        if len(segments) > 1:
            return answer.and_then(
                chained(reduced, segments, within_us, self.solve, budget), within_us
            )
        return self._close(bounds, answer, limit_us, budget)

    def _close(self, bounds: Bounds, answer: Answer, limit_us: int, budget: Budget) -> Answer:
        """Search a problem that nothing splits, with ever more effort."""
        large = bounds.problem.operators > SMALL
        if large:
            answer = self._raised(bounds, answer, limit_us, budget)
        first = Strategy(FIRST_S, presolve=large)
        answer = self._cp_sat(bounds, answer, limit_us, first, budget)
        if answer.closed(limit_us) or not budget.left_s:
            return answer
        load_us, prices = load_bound(bounds.problem)
        found = islice(priced_list_schedules(bounds, prices, self.seed), LISTS)
        best = min(found, key=lambda found: found.makespan_us)
        answer = answer.and_then(Answer(load_us, best), NEVER)
        return self._cp_sat(
            bounds, answer, limit_us, Strategy(NEVER, linear=True, workers=8), budget
        )

    def _raised(self, bounds: Bounds, answer: Answer, limit_us: int, budget: Budget) -> Answer:
        """Raise the bounds of a large problem."""
        within_us = answer.within(limit_us)
        tight = narrowed(bounds, within_us)
        if tight:
            raise_bounds(tight, within_us, lambda part, us: self._small(part, us, budget))
            tight = narrowed(tight, within_us)
        if tight is None:
            return answer.and_then(Answer(within_us + 1, None), within_us)
        for mine, better in ((bounds.head_us, tight.head_us), (bounds.tail_us, tight.tail_us)):
            mine[:] = better
        return answer.and_then(Answer(tight.makespan_us(), None), within_us)

    def _small(self, problem: IntegerProblem, limit_us: int, budget: Budget) -> Answer:
        """Bound a small problem with little effort."""
        bounds = path_bounds(problem)
        answer = Answer(bounds.makespan_us(), best_list_schedule(bounds))
        if answer.closed(limit_us):
            return answer
        return self._cp_sat(bounds, answer, limit_us, Strategy(SMALL_S), budget)

    def _cp_sat(
        self, bounds: Bounds, answer: Answer, limit_us: int, strategy: Strategy, budget: Budget
    ) -> Answer:
        """Search below the best placement with CP-SAT."""
        within_us = answer.within(limit_us)
        tight = narrowed(bounds, within_us)
        if tight is None:
            return answer.and_then(Answer(within_us + 1, None), within_us)
        self.solver = cp_sat.name()
        found = cp_sat.solve(
            tight, within_us, answer.placement, strategy=strategy, budget=budget, seed=self.seed
        )
        return answer.and_then(found, within_us)
