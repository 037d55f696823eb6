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
from parapipe.mapping.fine.integer_problem import IntegerProblem
from parapipe.mapping.fine.join_bounds import raise_bounds
from parapipe.mapping.fine.load_bound import load_bound, worth
from parapipe.mapping.fine.placement import Answer, best_list_schedule
from parapipe.mapping.fine.priced_lists import priced_list_schedules
from parapipe.mapping.fine.segment_chain import chained
from parapipe.mapping.units import NEVER

TINY = 20  # operators of a problem that is tried before it is split
SMALL = 30
LISTS = 200
ROUNDS = 20
MANY_ROUNDS = 300
CHAIN_SHARE = 2  # a part of so many of the time left, for the segments of a problem
# CP-SAT's own seconds
FIRST_S = 0.1
SMALL_S = 0.02
TINY_S = 0.02


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
        if problem.operators <= TINY:
            strategy = Strategy(TINY_S, presolve=False)
            answer = self._cp_sat(bounds, answer, limit_us, strategy, budget)
            if answer.closed(limit_us) or not budget.left_s:
                return answer
        segments = segments_of(bounds)
        if len(segments) > 1:
            within_us = answer.within(limit_us)
            share = budget.share(CHAIN_SHARE)
            found = chained(reduced, segments, within_us, self.solve, share)
            budget.settle(share)
            answer = answer.and_then(found, within_us)
        if answer.closed(limit_us) or not budget.left_s:
            return answer
        return self._close(bounds, answer, limit_us, budget)

    def _close(self, bounds: Bounds, answer: Answer, limit_us: int, budget: Budget) -> Answer:
        """Search a problem as a whole, with ever more effort."""
        large = bounds.problem.operators > SMALL
        if large:
            known_us = load_bound(bounds, worth(bounds.problem, ROUNDS))
            answer = answer.and_then(Answer(known_us, None), NEVER)
            answer = self._raised(bounds, answer, limit_us, budget)
        strategy = Strategy(FIRST_S, presolve=large)
        answer = self._cp_sat(bounds, answer, limit_us, strategy, budget)
        if answer.closed(limit_us):
            return answer
        prices = worth(bounds.problem, MANY_ROUNDS)
        answer = answer.and_then(Answer(load_bound(bounds, prices), None), NEVER)
        for found in islice(priced_list_schedules(bounds, prices, self.seed), LISTS):
            answer = answer.and_then(Answer(0, found), NEVER)
            if not budget.left_s:
                break
        effort_s = FIRST_S
        while budget.left_s and not answer.closed(limit_us):
            answer = self._nearby(bounds, answer, effort_s, budget)
            strategy = Strategy(effort_s, linear=True)
            answer = self._cp_sat(bounds, answer, limit_us, strategy, budget)
            effort_s *= 2
        return answer

    def _raised(self, bounds: Bounds, answer: Answer, limit_us: int, budget: Budget) -> Answer:
        """Raise the bounds of a large problem."""
        within_us = answer.within(limit_us)
        tight = narrowed(bounds, within_us)
        if tight:
            raise_bounds(
                tight,
                answer.bound_us,
                within_us,
                lambda part, enough_us, us: self._small(part, enough_us, us, budget),
            )
            bounds.learn(tight)
            tight = narrowed(tight, within_us)
        bound_us = tight.makespan_us() if tight else within_us + 1
        return answer.and_then(Answer(bound_us, None), within_us)

    def _small(
        self, problem: IntegerProblem, enough_us: int, limit_us: int, budget: Budget
    ) -> Answer:
        """Bound a small problem with little effort, if its bound can exceed what is enough."""
        bounds = path_bounds(problem)
        best = best_list_schedule(bounds)
        answer = Answer(bounds.makespan_us(), best)
        if answer.closed(limit_us) or best.makespan_us <= enough_us or not budget.left_s:
            return answer
        return self._cp_sat(bounds, answer, limit_us, Strategy(SMALL_S), budget)

    def _nearby(self, bounds: Bounds, answer: Answer, effort_s: float, budget: Budget) -> Answer:
        """Look for a better placement near to the best."""
        best = answer.placement
        near = narrowed(bounds, best.makespan_us) if best else None
        if best is None or near is None or not budget.left_s:
            return answer
        found = cp_sat.solve(
            near,
            best.makespan_us,
            best,
            strategy=Strategy(effort_s, nearby=True),
            budget=budget,
            seed=self.seed,
        )
        return answer.and_then(found, best.makespan_us)

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
