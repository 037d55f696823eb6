"""The exact mapper where transfers keep their sender, their receiver or a link busy.

With pure delays in their place the problem gets easier: every schedule stays one. So what is proven
of that is a bound, and if its placement, replayed with what transfers occupy, is no longer, it is
the optimum. Else CP-SAT searches the whole, transfers being optional intervals. None of the
shortcuts for pure delays (chains, articulations, one processor) proves anything by itself here.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import floor, inf
from time import perf_counter
from typing import Protocol

from parapipe.mapping import cpop, heft, layer_switched, peft
from parapipe.mapping.carried import Job, Timed, by_start, replay_carried, settled, spelled_out
from parapipe.mapping.fine import cp_sat, transfer_model
from parapipe.mapping.fine.bounds import narrowed, path_bounds
from parapipe.mapping.fine.budget import Budget
from parapipe.mapping.fine.cp_sat import Strategy
from parapipe.mapping.fine.integer_problem import MICRO, ROUNDING_US, integer_problem
from parapipe.mapping.fine_milp import rounded_down
from parapipe.mapping.problem import MappingProblem
from parapipe.mapping.schedule import Certificate, Schedule
from parapipe.mapping.verify import verify

QUICK = (heft.map, cpop.map, peft.map, layer_switched.map)
RELAXED_SHARE = 0.5  # of the time, for the problem with pure delays
FIRST_S = 0.02  # CP-SAT's own seconds; twice that in each later round


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

    What is said of `fine` about microseconds, time limit and seed holds here as well.

    Parameters
    ----------
    relaxed
        Solves the same problem with pure delays, within half of the time.
    """
    began_s = perf_counter()
    free = relaxed(
        replace(problem, carrier=()),
        time_limit_s=time_limit_s * RELAXED_SHARE,
        seed=seed,
        deterministic=deterministic,
    )
    budget = Budget(time_limit_s, False, began_s)
    if deterministic:
        budget = Budget(time_limit_s * (1 - RELAXED_SHARE), True)
    bound_us = floor(free.certificate.bound_s * MICRO + ROUNDING_US)
    work = _Work(problem, rounded_down(problem), bound_us, seed, free.certificate.solver)
    work.offer(free.processor, settled(problem, free.processor, by_start(free.start_s, free.end_s)))
    for heuristic in QUICK:
        clock_s = inf if deterministic else time_limit_s
        found = heuristic(problem, time_limit_s=clock_s, seed=seed)
        work.offer(found.processor, Timed(found.start_s, found.end_s, found.transfers))
    work.search(budget)
    timed = work.timed
    certificate = Certificate(
        proves="makespan",
        objective_s=timed.makespan_s,
        bound_s=min(max(work.bound_us / MICRO, free.certificate.bound_s), timed.makespan_s),
        proven=work.closed,
        wall_s=perf_counter() - began_s,
        seed=seed,
        solver=work.solver,
    )
    schedule = Schedule(work.processor, timed.start_s, timed.end_s, certificate, timed.transfers)
    verify(problem, schedule)
    return schedule


@dataclass(slots=True)
class _Work:
    """The best schedule so far, and what is proven.

    Parameters
    ----------
    rounded
        The problem in whole microseconds, rounded down.
    bound_us
        No schedule of that is shorter.
    shortest_us
        The shortest schedule of that.
    """

    problem: MappingProblem
    rounded: MappingProblem
    bound_us: int
    seed: int
    solver: str
    shortest_us: int = 1 << 60
    processor: tuple[int, ...] = ()
    timed: Timed = field(default_factory=lambda: Timed((inf,), (inf,), ()))

    @property
    def closed(self) -> bool:
        """Whether the best schedule is proven."""
        return self.bound_us >= self.shortest_us

    def offer(self, processor: tuple[int, ...], timed: Timed) -> None:
        """Take a schedule if its order makes the shortest one; its own times may be longer."""
        whole = spelled_out(self.rounded, processor)
        times: dict[Job, tuple[float, float]] = dict(
            enumerate(zip(timed.start_s, timed.end_s, strict=True))
        )
        times |= {(t.flow, t.target): (t.start_s, t.end_s) for t in timed.transfers}
        order = sorted(range(len(whole.jobs)), key=lambda i: (*times[whole.jobs[i]], i))
        length_us = round(whole.replayed(order).makespan_s * MICRO)
        self.take(processor, tuple(whole.jobs[i] for i in order), length_us)

    def search(self, budget: Budget) -> None:
        """Search below the shortest schedule, with ever more effort."""
        start = path_bounds(integer_problem(replace(self.problem, carrier=())))
        strategy = Strategy(FIRST_S, presolve=False)
        while not self.closed and budget.left_s:
            limit_us = self.shortest_us - 1
            bounds = narrowed(start, limit_us)
            if bounds is None:
                self.bound_us = self.shortest_us
                return
            self.solver = cp_sat.name()
            bound_us, found = transfer_model.search(
                self.rounded,
                bounds,
                limit_us,
                (self.processor, self.timed),
                strategy=strategy,
                budget=budget,
                seed=self.seed,
            )
            self.bound_us = max(self.bound_us, bound_us)
            if found:
                self.take(found.processor, found.order, found.makespan_us)
            strategy = Strategy(2 * strategy.deterministic_s, linear=not strategy.linear)

    def take(self, processor: tuple[int, ...], order: tuple[Job, ...], length_us: int) -> None:
        """Replay an order, whose length in whole microseconds is known, in exact times."""
        self.shortest_us = min(self.shortest_us, length_us)
        timed = replay_carried(self.problem, processor, order)
        if timed.makespan_s < self.timed.makespan_s:
            self.processor, self.timed = processor, timed
