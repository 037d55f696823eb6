"""`fine`: the least makespan of operators placed and ordered one by one, with a proof.

The problem is that of the paper's fine-grained ILP, equations (3) to (7). What is done, in this
order, until the proof is complete:

1. A chain of operators and a single usable processor are solved exactly, in doubles; so are small
   problems, all assignments of which are looked at at once (`solvers/assignments`).
2. HEFT, CPOP and PEFT give a schedule to beat.
3. In whole microseconds (fractions, if it is short): longest paths bound the makespan from below,
   and choices that lead beyond the schedule to beat are left out (`integer_problem`).
4. Large problems: loads, and small exact problems around joins and forks, raise the bounds
   (`load_bound`, `raise_bounds`).
5. Problems of more than `MOST_SEARCHED` operators end here, with list schedules and balanced loads
   (`list_schedules`).
6. CP-SAT searches the rest (`constraint_model`). If that takes long, list schedules that count what
   the processors' time is worth (`list_schedules`) and searches around the best schedule alternate;
   with few choices CP-SAT is left alone.

`benchmarks/results/ablation.md` says what each of these brings, and which others were tried.

Where transfers keep a resource busy, all this gives a bound and a placement to begin with, and
`busy_transfers` does the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from math import inf
from time import perf_counter

from parapipe.solvers.assignments.enumerate import LEAST_S, NAME, enumerated
from parapipe.solvers.chain import is_chain, place_run
from parapipe.solvers.cp_sat import Budget, name
from parapipe.solvers.fine import constraint_model, list_schedules
from parapipe.solvers.fine.busy_transfers import occupied
from parapipe.solvers.fine.constraint_model import Strategy
from parapipe.solvers.fine.integer_problem import (
    Bounds,
    IntegerProblem,
    integer_problem,
    load_bound,
    narrowed,
    path_bounds,
    units_per_second,
    worth,
)
from parapipe.solvers.fine.list_schedules import (
    MOST_SEARCHED,
    Answer,
    in_order,
    list_by_paths,
    priced_list_schedules,
)
from parapipe.solvers.lists import cpop_table, heft_table, peft_table
from parapipe.solvers.paths import list_order, simple_bound_s, supporting
from parapipe.solvers.problem import NEVER, MappingProblem
from parapipe.solvers.replay import Timed, certified, is_as_short, order_by_start, replay
from parapipe.solvers.schedule import Schedule

WINDOW = 14  # operators before a join

# Given a problem, a bound of it that is enough, and a limit.
Solve = Callable[[IntegerProblem, int, int], Answer]


def raise_bounds(bounds: Bounds, lower_units: int, limit_units: int, solve: Solve) -> None:
    """Raise heads, then tails; paths alone overlook that operators before a join share processors.

    Parameters
    ----------
    lower_units
        A bound on the makespan: a head is of interest if it can lead beyond.
    limit_units
        Only makespans up to that are of interest.
    solve
        Bounds small problems.
    """
    _Heads(bounds, lower_units, limit_units, solve).raise_all()
    bounds.propagate_tails()
    last = bounds.problem.operators - 1
    backwards = Bounds(
        bounds.problem.reversed(),
        [list(row) for row in reversed(bounds.tail_units)],
        [list(row) for row in reversed(bounds.head_units)],
    )
    _Heads(backwards, lower_units, limit_units, solve).raise_all()
    for v in range(last + 1):
        bounds.tail_units[v][:] = backwards.head_units[last - v]
    bounds.propagate_heads()


@dataclass(frozen=True, slots=True)
class _Heads:
    """Heads to be raised, and what for."""

    bounds: Bounds
    lower_units: int
    limit_units: int
    solve: Solve

    def raise_all(self) -> None:
        before = _ancestors_of(self.bounds.problem)
        for v, inputs in enumerate(self.bounds.problem.edges):
            self.bounds.raise_head(v)
            if len(inputs) > 1:
                window = self._window(before[v])
                for p in self.bounds.problem.choices[v]:
                    self._raise_head((*window, v), p)

    def _window(self, mask: int) -> tuple[int, ...]:
        """Return the ancestors nearest to a join: with two of them all that lies between."""
        choices, head_units = self.bounds.problem.choices, self.bounds.head_units
        ancestors = [u for u in range(mask.bit_length()) if mask >> u & 1]
        ancestors.sort(key=lambda u: (min(head_units[u][p] for p in choices[u]), u))
        return tuple(sorted(ancestors[-WINDOW:]))

    def _raise_head(self, operators: tuple[int, ...], p: int) -> None:
        """Raise the head of the last of the operators by what the others need before it.

        Operators before the window are not ignored: heads found so far are releases.
        """
        problem, join = self.bounds.problem, operators[-1]
        head_units, tail_units = self.bounds.head_units[join], self.bounds.tail_units[join][p]
        time_units = problem.time_units[join][p]
        if head_units[p] + time_units + tail_units > self.limit_units:
            return
        part = problem.part(operators, [tuple(self.bounds.head_units[u]) for u in operators])
        part = part.pinned({len(operators) - 1: p})
        answer = self.solve(part, self.lower_units - tail_units, self.limit_units - tail_units)
        head_units[p] = max(head_units[p], answer.bound_units - time_units)


def _ancestors_of(problem: IntegerProblem) -> tuple[int, ...]:
    """For each operator a bit mask of those that must end before it starts."""
    masks: list[int] = []
    for inputs in problem.edges:
        mask = 0
        for u, _ in inputs:
            mask |= masks[u] | 1 << u
        masks.append(mask)
    return tuple(masks)


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
        answer = Answer(bounds.makespan_units(), list_by_paths(bounds))
        if answer.closed(limit_units) or not budget.left_s:
            return answer
        return self._close(bounds, answer, limit_units, budget)

    def _close(self, bounds: Bounds, answer: Answer, limit_units: int, budget: Budget) -> Answer:
        """Search a problem as a whole, with ever more effort."""
        if bounds.problem.operators > SMALL:
            load_units = load_bound(bounds, worth(bounds.problem, ROUNDS))
            answer = answer.and_then(Answer(load_units, None), NEVER)
            answer = self._tighten(bounds, answer, limit_units, budget)
        answer = self._cp_sat(bounds, answer, limit_units, Strategy(FIRST_S), budget)
        if answer.closed(limit_units):
            return answer
        choices = bounds.problem.choices
        if sum(len(row) > 1 for row in choices) < FEW * len(choices):
            # a job shop, more or less: CP-SAT proves that best without interruption
            answer = self._nearby(bounds, answer, NEARBY_S, budget)
            return self._cp_sat(bounds, answer, limit_units, Strategy(inf, linear=True), budget)
        prices = worth(bounds.problem, MANY_ROUNDS)
        answer = answer.and_then(Answer(load_bound(bounds, prices), None), NEVER)
        for candidate in islice(priced_list_schedules(bounds, prices, self.seed), LISTS):
            answer = answer.and_then(Answer(0, candidate), NEVER)
            if not budget.left_s:
                break
        effort_s = FIRST_S
        while budget.left_s and not answer.closed(limit_units):
            answer = self._nearby(bounds, answer, effort_s, budget)
            strategy = Strategy(effort_s, linear=True)
            answer = self._cp_sat(bounds, answer, limit_units, strategy, budget)
            effort_s *= 2
        return answer

    def _tighten(self, bounds: Bounds, answer: Answer, limit_units: int, budget: Budget) -> Answer:
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
        best = list_by_paths(bounds)
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
        answer_nearby = constraint_model.solve(
            near,
            best.makespan_units,
            best,
            strategy=Strategy(effort_s, nearby=True),
            budget=budget,
            seed=self.seed,
        )
        return answer.and_then(answer_nearby, best.makespan_units)

    def _cp_sat(
        self, bounds: Bounds, answer: Answer, limit_units: int, strategy: Strategy, budget: Budget
    ) -> Answer:
        """Search below the best placement with CP-SAT."""
        within_units = answer.within(limit_units)
        tight = narrowed(bounds, within_units)
        if tight is None:
            return answer.and_then(Answer(within_units + 1, None), within_units)
        self.solver = name()
        result = constraint_model.solve(
            tight, within_units, answer.placement, strategy=strategy, budget=budget, seed=self.seed
        )
        return answer.and_then(result, within_units)


QUICK = (heft_table, cpop_table, peft_table)


def map(  # the protocol's name
    problem: MappingProblem,
    *,
    time_limit_s: float,
    seed: int,
    deterministic: bool = False,
    shortest: Schedule | None = None,
) -> Schedule:
    """Place and order the operators so that the makespan is least; verified.

    The search works in whole microseconds, rounded down, so that its bound holds for exact times
    too; if the makespan is below ten milliseconds, in decimal fractions of them. `objective_s` is
    the exact makespan of the schedule, `bound_s` the bound. `proven` says that in rounded times no
    schedule is shorter: objective and bound then differ by less than such a unit for each operator
    and each transfer in a chain of those that wait for each other.
    Chains, problems of one processor and small ones are proven in exact times. The schedule is
    never longer than those of HEFT, CPOP and PEFT.

    Parameters
    ----------
    time_limit_s
        For the whole call. When it is over, the best schedule found comes with the bound proven so
        far; if it is 0, these are the heuristics' best and the longest path.
    seed
        Of all random choices. What is solved within the limit is the same for the same seed.
    deterministic
        Count work instead of wall time, so that what is not solved within the limit is the same
        as well. A second of work takes a fraction of a second to a few seconds.
    shortest
        A schedule that is known to be as short as any, if there is one: it spares a search.
    """
    began_s = perf_counter()
    if problem.transfer_resource:
        return occupied(
            problem, map, time_limit_s=time_limit_s, seed=seed, deterministic=deterministic
        )
    exact = _without_search(problem)
    if exact is None and shortest is not None:
        return shortest
    if exact is None and time_limit_s >= LEAST_S and (every := enumerated(problem)):
        exact = every[0].processor, every[0].timed, NAME
    if exact:
        processor, timed, solver = exact
        return certified(
            problem,
            processor,
            timed,
            bound_s=timed.makespan_s,
            solver=solver,
            seed=seed,
            began_s=began_s,
        )
    if problem.operators > MOST_SEARCHED:
        return list_schedules.scheduled(problem, seed=seed, began_s=began_s)
    budget = Budget(time_limit_s, deterministic, began_s)
    quick = min((table(problem) for table in QUICK), key=lambda table: table.timed.makespan_s)
    best = quick.timed
    bound_s = simple_bound_s(problem)
    per_second = units_per_second(best.makespan_s)
    rounded = integer_problem(problem, per_second)
    start = in_order(rounded, quick.processor, order_by_start(best.start_s, best.end_s))
    search = Search(seed)
    if is_as_short(problem, best.makespan_s, bound_s):
        answer = Answer(start.makespan_units, None)
    else:
        answer = search.solve(rounded, start.makespan_units - 1, budget)
    placements = [start, *([answer.placement] if answer.placement else [])]
    # a heuristic's schedule may wait where its own order need not, so that is replayed as well
    schedules = [(tuple(quick.processor), best)]
    for placement in placements:
        order = order_by_start(placement.start_units, placement.end_units)
        schedules.append((placement.processor, replay(problem, placement.processor, order)))
    processor, timed = min(schedules, key=lambda schedule: schedule[1].makespan_s)
    return certified(
        problem,
        processor,
        timed,
        bound_s=max(answer.bound_units / per_second, bound_s),
        proven=answer.bound_units >= min(placement.makespan_units for placement in placements),
        solver=search.solver,
        seed=seed,
        began_s=began_s,
    )


def _without_search(problem: MappingProblem) -> tuple[tuple[int, ...], Timed, str] | None:
    """Solve what needs no search: chains, and problems of which one processor runs all."""
    everything = tuple(range(problem.operators))
    usable = sorted({p for support in supporting(problem) for p in support})
    if is_chain(problem, everything):
        processor, order = place_run(problem, everything, {})[0].processor, everything
        return processor, replay(problem, processor, order), "shortest path"
    if len(usable) == 1:
        # whoever never waits without need ends first
        processor = tuple(usable) * problem.operators
        order = list_order(problem, processor, everything)
        return processor, replay(problem, processor, order), "list scheduling"
    return None
