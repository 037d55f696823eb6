"""Which tensors to make again in place of keeping them, so that a limit of memory is kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from parapipe.mapping.cp_sat import run_cp_sat
from parapipe.mapping.memory.orders import OrderProblem
from parapipe.mapping.units import ROUNDING

DETERMINISTIC_S = 60.0
"""CP-SAT's own seconds, which do not depend on the machine."""


@dataclass(frozen=True, slots=True)
class Recomputed:
    """Operators in a row, some of them more than once.

    Parameters
    ----------
    runs
        Empty if none was found that keeps the limit.
    cost
        Sum of the costs of all runs.
    bound
        No such row costs less; None if none keeps the limit.
    peak_bytes
        Of the row.
    """

    runs: tuple[int, ...]
    cost: int
    bound: int | None
    peak_bytes: int

    @property
    def proven(self) -> bool:
        """Whether no row costs less, or none keeps the limit."""
        return self.bound is None or (bool(self.runs) and self.cost == self.bound)


def working_set_bytes(problem: OrderProblem) -> int:
    """Return what no row does without, however often operators run: all that one reads and makes.

    Where an order needs no more, nothing is gained by making tensors again.
    """
    tensors = problem.tensors
    sets = ({*read, *made} for read, made in zip(problem.reads, problem.makes, strict=True))
    return max((sum(tensors[t].size_bytes for t in each) for each in sets), default=0)


def peak_of_runs(problem: OrderProblem, runs: Sequence[int]) -> int:
    """Return the most bytes that are alive at one time if operators run in this row.

    A tensor is alive from each run of its maker to the last run that reads it before the next one.

    Raises
    ------
    ValueError
        An operator does not run, or runs before one that it waits for.
    """
    if {*runs} != {*range(problem.operators)}:
        raise ValueError("every operator has to run")
    place: dict[int, int] = {}
    for step, v in enumerate(runs):
        if any(u not in place for u in problem.before[v]):
            raise ValueError(f"operator {v} runs before one that it waits for")
        place[v] = step
    needed = {t for t, tensor in enumerate(problem.tensors) if tensor.kept}
    peak = sum(problem.tensors[t].size_bytes for t in needed)
    for v in reversed(runs):
        needed |= {*problem.reads[v], *problem.makes[v]}
        peak = max(peak, sum(problem.tensors[t].size_bytes for t in needed))
        needed.difference_update(problem.makes[v])
    return peak


def recompute(
    problem: OrderProblem,
    order: Sequence[int],
    costs: Sequence[int],
    most_bytes: int,
    deterministic_s: float = DETERMINISTIC_S,
) -> Recomputed:
    """Return a row of runs of least cost that needs no more memory than allowed.

    An integer programme after Jain et al., Checkmate, MLSys 2020: before each operator's first run,
    in the given order, operators before it may run again, each once, in that order. For each of
    these slots there is a variable that says whether its operator runs, and one for each tensor
    that says whether it is alive; the number of these grows with the third power of the operators,
    so that larger graphs than of about forty should be solved section by section.

    Parameters
    ----------
    order
        All operators, in a topological order.
    costs
        Of one run of each operator, in whole units, at least 0.
    most_bytes
        The limit.
    """
    if working_set_bytes(problem) > most_bytes:
        return Recomputed((), 0, None, 0)
    built = _built(problem, order, costs, most_bytes)
    outcome = run_cp_sat(built.model, most_s=deterministic_s)
    if outcome.infeasible:
        return Recomputed((), 0, None, 0)
    bound = max(sum(costs), int(-(-(outcome.bound - ROUNDING) // 1)))
    if not outcome.found:
        return Recomputed((), 0, bound, 0)
    runs = tuple(v for v, runs in built.slots if outcome.solver.value(runs))
    peak_bytes = peak_of_runs(problem, runs)
    if peak_bytes > most_bytes:
        raise AssertionError(f"a row of {most_bytes} bytes needs {peak_bytes}")
    return Recomputed(runs, sum(costs[v] for v in runs), bound, peak_bytes)


@dataclass(frozen=True, slots=True)
class _Built:
    """The programme, and the operator and the variable of each slot."""

    model: Any
    slots: list[tuple[int, Any]]


def _built(
    problem: OrderProblem, order: Sequence[int], costs: Sequence[int], most_bytes: int
) -> _Built:
    from ortools.sat.python import cp_model  # heavy

    model = cp_model.CpModel()
    slots: list[tuple[int, Any]] = []
    # Whether each tensor is alive in the slot before.
    before: dict[int, Any] = {t: 1 for t, each in enumerate(problem.tensors) if each.maker is None}
    for v, first in _slots(order):
        runs = model.new_constant(1) if first else model.new_bool_var("")
        slots.append((v, runs))
        made = set(problem.makes[v])
        alive = {t: model.new_bool_var("") for t in {*before, *made}}
        for t, there in alive.items():
            model.add(there <= before.get(t, 0) + (runs if t in made else 0))
        for t in (*problem.reads[v], *problem.makes[v]):
            model.add_implication(runs, alive[t])
        model.add(sum(problem.tensors[t].size_bytes * alive[t] for t in alive) <= most_bytes)
        before = alive
    for t, tensor in enumerate(problem.tensors):
        if tensor.kept:
            model.add(before[t] == 1)
    model.minimize(sum(costs[v] * runs for v, runs in slots))
    return _Built(model, slots)


def _slots(order: Sequence[int]) -> Iterator[tuple[int, bool]]:
    """Yield the operator of each slot, and whether that is its first run."""
    for step, v in enumerate(order):
        yield from ((u, False) for u in order[:step])
        yield v, True
