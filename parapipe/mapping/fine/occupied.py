"""The exact mapper where transfers keep their sender, their receiver or a link busy.

With pure delays in their place the problem gets easier: every schedule stays one. So what is proven
of that is a bound, and if its placement, replayed with what transfers occupy, is no longer, it is
the optimum. Else CP-SAT searches the whole, transfers being optional intervals. None of the
shortcuts for pure delays (chains, one processor) proves anything by itself here.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import inf
from time import perf_counter
from typing import Protocol

from parapipe.mapping.budget import Budget
from parapipe.mapping.certify import certified, with_transfers
from parapipe.mapping.cp_sat import name
from parapipe.mapping.fine import transfer_model
from parapipe.mapping.fine.bounds import narrowed, path_bounds
from parapipe.mapping.fine.cp_sat import Strategy
from parapipe.mapping.fine.integer_problem import integer_problem, units_per_second
from parapipe.mapping.fine.large import MOST_SEARCHED
from parapipe.mapping.problem import MappingProblem
from parapipe.mapping.replay import Job, Timed, expanded, replay
from parapipe.mapping.schedule import Certificate, Schedule
from parapipe.mapping.units import MICRO, rounded_down, whole

RELAXED_SHARE = 0.5  # of the time, for the problem with pure delays
_NEVER = Timed((1e12,), (1e12,), ())


class Relaxed(Protocol):
    """The exact mapper of problems with pure delays."""

    def __call__(
        self, problem: MappingProblem, *, time_limit_s: float, seed: int, deterministic: bool
    ) -> Schedule:
        """Place and order the operators."""
        ...


def occupied(
    problem: MappingProblem,
    relaxed: Relaxed,
    *,
    time_limit_s: float,
    seed: int,
    deterministic: bool,
) -> Schedule:
    """Place and order operators and transfers so that the makespan is least; verified.

    What is said of `fine` about microseconds, time limit and seed holds here as well. If time runs
    out, heuristics that count what transfers occupy may have found a shorter schedule.

    Parameters
    ----------
    relaxed
        Solves the same problem with pure delays, within half of the time.
    """
    began_s = perf_counter()
    free = relaxed(
        replace(problem, transfer_resource=()),
        time_limit_s=time_limit_s * RELAXED_SHARE,
        seed=seed,
        deterministic=deterministic,
    )
    budget = Budget(time_limit_s, False, began_s)
    if deterministic:
        budget = Budget(time_limit_s * (1 - RELAXED_SHARE), True)
    work = _Work(problem, free.certificate, units_per_second(free.makespan_s), seed)
    pure = Timed(free.start_s, free.end_s)
    work.offer(free.processor, with_transfers(problem, free.processor, pure))
    work.search(budget)
    return certified(
        problem,
        work.processor,
        work.timed,
        bound_s=work.bound_s,
        proven=work.closed,
        solver=work.solver,
        seed=seed,
        began_s=began_s,
    )


@dataclass(slots=True)
class _Work:
    """The best schedule so far, and what is proven.

    Parameters
    ----------
    relaxed
        What is proven of pure delays.
    per_second
        Into how many units a second is cut.
    rounded
        The problem in such units, rounded down, as if they were microseconds.
    bound_units
        No schedule of that is shorter, as far as is known.
    hint
        The shortest schedule of that, of `shortest_units`.
    processor, timed
        The shortest schedule of the exact problem.
    """

    problem: MappingProblem
    relaxed: Certificate
    per_second: float
    seed: int
    rounded: MappingProblem = field(init=False)
    bound_units: int = field(init=False)
    solver: str = field(init=False)
    hint: tuple[tuple[int, ...], Timed] = ((), _NEVER)
    processor: tuple[int, ...] = ()
    timed: Timed = _NEVER

    def __post_init__(self) -> None:
        self.rounded = rounded_down(self.problem, self.per_second)
        self.bound_units = whole(self.relaxed.bound_s, self.per_second)
        self.solver = self.relaxed.solver

    @property
    def shortest_units(self) -> int:
        """Units that the shortest schedule in units takes."""
        return round(self.hint[1].makespan_s * MICRO)

    @property
    def bound_s(self) -> float:
        """Seconds that no schedule of the exact problem falls below."""
        return max(self.bound_units / self.per_second, self.relaxed.bound_s)

    @property
    def closed(self) -> bool:
        """Whether the best schedule is proven."""
        return self.bound_units >= self.shortest_units

    def offer(self, processor: tuple[int, ...], timed: Timed) -> None:
        """Take a schedule if its order makes the shortest one; its own times may be longer."""
        whole = expanded(self.rounded, processor)
        times: dict[Job, tuple[float, float]] = dict(
            enumerate(zip(timed.start_s, timed.end_s, strict=True))
        )
        times |= {(t.flow, t.target): (t.start_s, t.end_s) for t in timed.transfers}
        order = sorted(range(len(whole.jobs)), key=lambda i: (*times[whole.jobs[i]], i))
        self.take(processor, tuple(whole.jobs[i] for i in order))

    def search(self, budget: Budget) -> None:
        """Search below the shortest schedule."""
        if self.closed or not budget.left_s or self.problem.operators > MOST_SEARCHED:
            return
        start = path_bounds(
            integer_problem(replace(self.problem, transfer_resource=()), self.per_second)
        )
        limit_units = self.shortest_units - 1
        bounds = narrowed(start, limit_units)
        if bounds is None:
            self.bound_units = self.shortest_units
            return
        self.solver = name()
        bound_units, found = transfer_model.search(
            self.rounded,
            bounds,
            limit_units,
            self.hint,
            strategy=Strategy(inf),
            budget=budget,
            seed=self.seed,
        )
        self.bound_units = max(self.bound_units, bound_units)
        if found:
            self.take(found.processor, found.order)

    def take(self, processor: tuple[int, ...], order: tuple[Job, ...]) -> None:
        """Replay an order, in units and in exact times."""
        rounded = replay(self.rounded, processor, order)
        if rounded.makespan_s < self.hint[1].makespan_s:
            self.hint = processor, rounded
        timed = replay(self.problem, processor, order)
        if timed.makespan_s < self.timed.makespan_s:
            self.processor, self.timed = processor, timed
