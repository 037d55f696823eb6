"""The exact mapper where transfers keep their sender, their receiver or a link busy.

With pure delays in their place the problem gets easier: every schedule stays one. So what is proven
of that is a bound, and if its placement, replayed with what transfers occupy, is no longer, it is
the optimum. Else CP-SAT searches the whole, transfers being optional intervals. None of the
shortcuts for pure delays (chains, one processor) proves anything by itself here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from time import perf_counter
from typing import TYPE_CHECKING

from parapipe.solvers.cp_sat import Budget, name
from parapipe.solvers.fine import constraint_model
from parapipe.solvers.fine.constraint_model import Busy, Model, Strategy
from parapipe.solvers.fine.integer_problem import (
    Bounds,
    integer_problem,
    narrowed,
    path_bounds,
    units_per_second,
)
from parapipe.solvers.fine.list_schedules import MOST_SEARCHED
from parapipe.solvers.problem import MICRO, Flow, MappingProblem, floor_units, rounded_down
from parapipe.solvers.replay import Job, Timed, certified, expand_transfers, replay, with_transfers
from parapipe.solvers.schedule import Certificate, Schedule

if TYPE_CHECKING:
    from ortools.sat.python import cp_model


Ordered = tuple[tuple[int, ...], tuple[Job, ...]]
"""The processor of each operator, and an order of operators and transfers."""


def search(
    problem: MappingProblem,
    bounds: Bounds,
    limit_units: int,
    hint: tuple[Sequence[int], Timed],
    *,
    strategy: Strategy,
    budget: Budget,
    seed: int,
) -> tuple[int, Ordered | None]:
    """Search for a shortest schedule of at most `limit_units` in which transfers occupy something.

    To the model of `cp_sat` come, for a flow from operator u on p to any processor q:

    - an optional interval (t_q, c_pq, y_pq) on what the transfer occupies, no two intervals there
      overlapping, those of operators included;
    - x_up ∧ x_vq ⇒ y_pq for every consumer v;
    - y_pq ⇒ t_q ≥ s_u + w_up, and y_pq ∧ x_vq ⇒ s_v ≥ t_q + c_pq.

    Parameters
    ----------
    problem
        In whole units, each written as a microsecond.
    bounds
        Of the same problem with pure delays.
    hint
        Where operators run, and when everything does.

    Returns
    -------
    tuple
        A lower bound in units, at most `limit_units` + 1; and the best schedule found.
    """
    from ortools.sat.python import cp_model  # heavy

    model = Model(bounds, limit_units, cp_model.CpModel())
    moves = _Moves(problem, model)
    moves.state()
    model.state()
    moves.fill_links()
    moves.hint(*hint)
    solver, bound_units = constraint_model.search(
        model, strategy=strategy, budget=budget, seed=seed
    )
    if solver is None:
        return bound_units, None
    processor = tuple(model.processors(solver))
    start_units = moves.starts(solver)
    jobs = expand_transfers(problem, processor)
    ranked = []
    for i, (job, resource) in enumerate(zip(jobs.jobs, jobs.processor, strict=True)):
        time_units = floor_units(jobs.problem.time_s[i][resource])
        ranked.append((start_units[job], start_units[job] + time_units, i, job))
    order = tuple(job for *_, job in sorted(ranked, key=lambda entry: entry[:3]))
    return bound_units, (processor, order)


class _Moves:
    """Variables of the transfers that may occupy something."""

    def __init__(self, problem: MappingProblem, model: Model) -> None:
        self.problem = problem
        self.model = model
        self.start: dict[tuple[int, int], cp_model.IntVar] = {}
        self.present: dict[tuple[int, int, int], cp_model.IntVar] = {}

    def state(self) -> None:
        """State intervals, and how they stand to operators."""
        for f, flow in enumerate(self.problem.flows):
            for p, q, readers in self._pairs(flow):
                if (f, q) not in self.start:
                    last_units = self.model.limit_units
                    self.start[f, q] = self.model.model.new_int_var(0, last_units, "")
                self._move(f, p, q, readers)

    def _pairs(self, flow: Flow) -> Iterator[tuple[int, int, list[int]]]:
        """Yield the transfers of a flow that occupy something, with who may read it there."""
        choices = self.model.problem.choices
        if flow.producer is not None:
            sources = choices[flow.producer]
        else:
            sources = () if flow.location is None else (flow.location,)
        for q in range(self.problem.processors):
            readers = [v for v in flow.consumers if q in choices[v]]
            for p in sources:
                if readers and self.problem.resource_of(p, q) is not None:
                    yield p, q, readers

    def _move(self, f: int, p: int, q: int, readers: Sequence[int]) -> None:
        model, runs, flow = self.model.model, self.model.runs, self.problem.flows[f]
        resource = self.problem.resource_of(p, q)
        assert resource is not None
        producer_runs = [] if flow.producer is None else [runs[flow.producer, p]]
        present = self.present[f, p, q] = model.new_bool_var("")
        start, time_units = self.start[f, q], floor_units(flow.transfer_s[p][q])
        for literal in producer_runs:
            model.add_implication(present, literal)
        model.add_bool_or([present.negated(), *(runs[v, q] for v in readers)])
        for v in readers:
            absent = [literal.negated() for literal in (*producer_runs, runs[v, q])]
            model.add_bool_or([present, *absent])
            after = model.add(self.model.start[v] >= start + time_units)
            after.only_enforce_if([present, runs[v, q]])
        if flow.producer is not None:
            ready = (
                self.model.start[flow.producer] + self.model.problem.time_units[flow.producer][p]
            )
            model.add(start >= ready).only_enforce_if(present)
        interval = model.new_optional_fixed_size_interval_var(start, time_units, present, "")
        self.model.busy.setdefault(resource, []).append(Busy(interval, present, time_units))

    def fill_links(self) -> None:
        """Let nothing overlap where no operator can run: on links, on processors of others."""
        filled = {p for choices in self.model.problem.choices for p in choices}
        for resource, busy in self.model.busy.items():
            if resource not in filled:
                self.model.model.add_no_overlap([each.interval for each in busy])
                load = constraint_model.weighted(
                    [each.present for each in busy], [each.time_units for each in busy]
                )
                self.model.model.add(self.model.makespan >= load)

    def hint(self, processor: Sequence[int], timed: Timed) -> None:
        """Tell where a schedule has everything."""
        model = self.model.model
        for v, choices in enumerate(self.model.problem.choices):
            model.add_hint(self.model.start[v], floor_units(timed.start_s[v]))
            for p in choices if len(choices) > 1 else ():
                model.add_hint(self.model.runs[v, p], processor[v] == p)
        begun = {(transfer.flow, transfer.target): transfer.start_s for transfer in timed.transfers}
        for key, start in self.start.items():
            model.add_hint(start, round(begun.get(key, 0.0) * MICRO))

    def starts(self, solver: cp_model.CpSolver) -> dict[Job, int]:
        """Read when each operator and each transfer starts."""
        start_units: dict[Job, int] = {
            v: solver.value(start) for v, start in enumerate(self.model.start)
        }
        start_units |= {key: solver.value(start) for key, start in self.start.items()}
        return start_units


RELAXED_SHARE = 0.5  # of the time, for the problem with pure delays
_NEVER = Timed((1e12,), (1e12,), ())


def occupied(
    problem: MappingProblem,
    relaxed: Callable[..., Schedule],
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
        The exact mapper of problems with pure delays; it gets half of the time.
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
    state = _BusySearch(problem, free.certificate, units_per_second(free.makespan_s), seed)
    pure = Timed(free.start_s, free.end_s)
    state.offer(free.processor, with_transfers(problem, free.processor, pure))
    state.search(budget)
    return certified(
        problem,
        state.processor,
        state.timed,
        bound_s=state.bound_s,
        proven=state.closed,
        solver=state.solver,
        seed=seed,
        began_s=began_s,
    )


@dataclass(slots=True)
class _BusySearch:
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
        self.bound_units = floor_units(self.relaxed.bound_s, self.per_second)
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
        expansion = expand_transfers(self.rounded, processor)
        times: dict[Job, tuple[float, float]] = dict(
            enumerate(zip(timed.start_s, timed.end_s, strict=True))
        )
        times |= {(t.flow, t.target): (t.start_s, t.end_s) for t in timed.transfers}
        order = sorted(range(len(expansion.jobs)), key=lambda i: (*times[expansion.jobs[i]], i))
        self.take(processor, tuple(expansion.jobs[i] for i in order))

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
        bound_units, ordered = search(
            self.rounded,
            bounds,
            limit_units,
            self.hint,
            strategy=Strategy(inf),
            budget=budget,
            seed=self.seed,
        )
        self.bound_units = max(self.bound_units, bound_units)
        if ordered:
            self.take(*ordered)

    def take(self, processor: tuple[int, ...], order: tuple[Job, ...]) -> None:
        """Replay an order, in units and in exact times."""
        rounded = replay(self.rounded, processor, order)
        if rounded.makespan_s < self.hint[1].makespan_s:
            self.hint = processor, rounded
        timed = replay(self.problem, processor, order)
        if timed.makespan_s < self.timed.makespan_s:
            self.processor, self.timed = processor, timed
