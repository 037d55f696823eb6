"""CP-SAT, the solver of constraint programmes in OR-Tools: its budget, run, stop and answer.

This module alone runs it. A signal's handler runs in Python's main thread, and not while a solver
keeps that busy: so what the main thread has to solve is solved in a thread beside it, and whatever
the handler raises stops the solver before it goes on. Solvers in other threads are stopped by who
waits for these, see `Stop`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from math import inf
from threading import current_thread, main_thread
from time import perf_counter
from typing import TYPE_CHECKING, TypeVar

from parapipe.files.progress import SOLVER_THREADS

if TYPE_CHECKING:
    from ortools.sat.python import cp_model


@dataclass(slots=True)
class Budget:
    """What is left of a time limit.

    Parameters
    ----------
    limit_s
        Seconds of wall time, or of CP-SAT's deterministic time.
    deterministic
        Count work instead of wall time.
    began_s
        When wall time began, on the clock of `time.perf_counter`.
    """

    limit_s: float
    deterministic: bool = False
    began_s: float = field(default_factory=perf_counter)
    _worked_s: float = 0.0

    @property
    def left_s(self) -> float:
        """Seconds left, at least 0."""
        spent_s = self._worked_s if self.deterministic else perf_counter() - self.began_s
        return max(self.limit_s - spent_s, 0.0)

    def work(self, deterministic_s: float) -> None:
        """Note work that was done."""
        self._worked_s += deterministic_s


T = TypeVar("T")

SEED = 1  # CP-SAT's own, if none is given
SEED_LIMIT = 2**31 - 1
WORK = 5.0  # seconds of a core, more or less, for one of CP-SAT's deterministic seconds
LEAST_S = 2e-4  # deterministic; building a model takes time as well
LOOK_S = 0.2  # a signal that another thread receives does not wake the main one


@dataclass(frozen=True, slots=True)
class Outcome:
    """What CP-SAT says of a minimisation.

    Parameters
    ----------
    solver
        Has the values of the best solution found.
    found
        Whether there is a solution.
    optimal
        Whether it is proven to be the best, to within the requested gap.
    infeasible
        Whether it is proven that there is none.
    bound
        Lower bound on the objective.
    work_s
        CP-SAT's deterministic seconds, which do not depend on the machine.
    """

    solver: cp_model.CpSolver
    found: bool
    optimal: bool
    infeasible: bool
    bound: float
    work_s: float


def run_cp_sat(
    model: cp_model.CpModel,
    *,
    most_s: float = inf,
    budget: Budget | None = None,
    seed: int = SEED,
    **parameters: float,
) -> Outcome:
    """Minimise a model by CP-SAT with one worker: equal calls have equal outcomes.

    Parameters
    ----------
    most_s
        Of CP-SAT's deterministic seconds, at most.
    budget
        What is left of it is a limit, too: in wall time or, if it counts work, in `WORK`. The work
        done is noted there.
    seed
        Of random choices; any whole number.
    parameters
        Others of CP-SAT's, by their names.

    Raises
    ------
    StoppedError
        In a thread that was stopped.
    """
    from ortools.sat.python import cp_model  # heavy

    solver = cp_model.CpSolver()
    settings = solver.parameters
    settings.num_workers = SOLVER_THREADS
    settings.random_seed = seed % SEED_LIMIT
    settings.catch_sigint_signal = False  # Ctrl-C is Python's to handle
    settings.max_deterministic_time = most_s
    if budget and budget.deterministic:
        settings.max_deterministic_time = min(most_s, budget.left_s / WORK)
    elif budget:
        settings.max_time_in_seconds = budget.left_s
    for name, value in parameters.items():
        setattr(settings, name, value)
    _solve(solver, model)
    status = solver.response_proto.status
    assert status != cp_model.MODEL_INVALID, model.validate()
    work_s = solver.response_proto.deterministic_time
    if budget:
        budget.work(WORK * max(work_s, LEAST_S))
    return Outcome(
        solver,
        found=status in (cp_model.OPTIMAL, cp_model.FEASIBLE),
        optimal=status == cp_model.OPTIMAL,
        infeasible=status == cp_model.INFEASIBLE,
        bound=solver.best_objective_bound,
        work_s=work_s,
    )


@cache
def name() -> str:
    """Name and version of the solver."""
    return f"CP-SAT {version('ortools')}"


class StoppedError(Exception):
    """What is being solved is of no use any more; never seen by a user."""


class Stop:
    """Ends what CP-SAT solves in threads, and what is started there later."""

    def __init__(self) -> None:
        self._ended = False
        self._solvers: set[cp_model.CpSolver] = set()

    def stoppable(self, call: Callable[..., T]) -> Callable[..., T]:
        """Return a function that heeds this in whatever thread it is called."""

        def heeding(*arguments: object) -> T:
            token = _STOP.set(self)
            try:
                return call(*arguments)
            finally:
                _STOP.reset(token)

        return heeding

    def end(self, calls: Collection[Future[T]]) -> None:
        """Stop what runs until all calls have ended; those that have are left as they are."""
        self._ended = True
        while wait(calls, 0).not_done:
            for solver in tuple(self._solvers):
                solver.stop_search()  # of no effect on one that is just about to begin
            wait(calls, LOOK_S)

    def solve(self, solver: cp_model.CpSolver, model: cp_model.CpModel) -> None:
        """Solve a model; StoppedError if this is stopped before that is done."""
        self._solvers.add(solver)
        try:
            if not self._ended:
                solver.solve(model)
        finally:
            self._solvers.discard(solver)
        if self._ended:
            raise StoppedError


_STOP: ContextVar[Stop | None] = ContextVar("what stops the solvers of a thread", default=None)


def _solve(solver: cp_model.CpSolver, model: cp_model.CpModel) -> None:
    if stop := _STOP.get():
        stop.solve(solver, model)
    elif current_thread() is main_thread():
        _solve_beside(solver, model)
    else:
        solver.solve(model)


def _solve_beside(solver: cp_model.CpSolver, model: cp_model.CpModel) -> None:
    """Solve a model while this thread, the main one, stays free for signals."""
    stop, calls = Stop(), list[Future[None]]()
    with ThreadPoolExecutor(1) as beside:
        try:
            calls.append(beside.submit(stop.solve, solver, model))
            while wait(calls, LOOK_S).not_done:
                pass
        finally:
            stop.end(calls)
    calls[0].result()
