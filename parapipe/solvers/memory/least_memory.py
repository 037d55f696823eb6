"""Orders on one processor with the fewest bytes alive, and tensors to recompute for fewer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from math import ceil
from typing import Any

from parapipe.solvers.cp_sat import run_cp_sat
from parapipe.solvers.memory.orders import PRIORITIES, OrderProblem, order_by
from parapipe.solvers.problem import ROUNDING

MOST_STATES = 200_000
"""Sets of operators that are visited before the search ends without a proof."""
DETERMINISTIC_S = 20.0
"""Of CP-SAT behind that, in its own seconds, which do not depend on the machine."""


@dataclass(frozen=True, slots=True)
class LeastOrder:
    """An order of low peak.

    Parameters
    ----------
    bound_bytes
        No order has a lower peak.
    states
        Sets of operators that the search visited.
    """

    order: tuple[int, ...]
    peak_bytes: int
    bound_bytes: int
    states: int

    @property
    def proven(self) -> bool:
        """Whether no order has a lower peak."""
        return self.peak_bytes == self.bound_bytes

    @property
    def gap(self) -> float:
        """Share of the peak that a better order could save at most."""
        return 1 - self.bound_bytes / self.peak_bytes if self.peak_bytes else 0.0


def least_order(
    problem: OrderProblem, most_states: int = MOST_STATES, deterministic_s: float = DETERMINISTIC_S
) -> LeastOrder:
    """Return an order in which the fewest bytes are alive at the peak.

    A search over the sets of operators that have run, that of the least peak so far first: what is
    alive behind a set does not depend on the order in it. Where all branches meet there is one set
    only, so that sections between such points are searched one by one. If a row of operators
    keeps below a peak that is reached anyway, and leaves no more bytes alive than there were, then
    nothing else is tried: what is alive is a submodular function of the set, so that no order gets
    worse if these go first.

    Parameters
    ----------
    most_states
        Sets that are visited. After these, the least peak of those that wait is the bound, and the
        order is the best one that list schedulers found. CP-SAT then looks for better ones, and
        for a better bound.
    deterministic_s
        Of CP-SAT; 0 if it is not to be used.
    """
    candidates = (order_by(problem, priority) for priority in PRIORITIES.values())
    best = min(candidates, key=problem.peak_bytes)
    result = _Search(problem, best).run(most_states)
    if result.proven or deterministic_s <= 0:
        return result
    return _improve(problem, result, deterministic_s)


_Step = tuple[int, tuple[int, ...]]  # the set before, and the operators that follow it


class _Search:
    """Sets of operators that wait, and how each was reached."""

    def __init__(self, problem: OrderProblem, incumbent: Sequence[int]) -> None:
        self.problem = problem
        self.order, self.peak = tuple(incumbent), problem.peak_bytes(incumbent)
        self.needs = [sum(1 << u for u in before) for before in problem.before]
        self.all = (1 << problem.operators) - 1
        self.previous: dict[int, _Step] = {}

    def run(self, most_states: int) -> LeastOrder:
        bound, states = self.problem.bound_bytes(), 0
        # Peak so far, operators to go, set, bytes alive.
        heap = [(bound, self.problem.operators, 0, self.problem.first_bytes)]
        closed: set[int] = set()
        least = {0: bound}
        while heap and bound < self.peak:
            peak, to_go, done, live = heappop(heap)
            if done in closed:
                continue
            bound = max(bound, peak)
            if bound >= self.peak or states >= most_states:
                break
            if done == self.all:
                self.order, self.peak = self.path(), peak
                break
            closed.add(done)
            states += 1
            for row, after, most, left in self.steps(done, live, peak):
                reached = max(peak, most)
                if reached < min(self.peak, least.get(after, self.peak)):
                    least[after] = reached
                    self.previous[after] = done, row
                    heappush(heap, (reached, to_go - len(row), after, left))
        else:
            bound = self.peak
        return LeastOrder(self.order, self.peak, min(bound, self.peak), states)

    def steps(
        self, done: int, live: int, peak: int
    ) -> Iterator[tuple[tuple[int, ...], int, int, int]]:
        """Yield operators that run next, the set behind them, their peak, and what is alive then.

        One row only if it may go first without loss.
        """
        ready = [v for v, needs in enumerate(self.needs) if not done >> v & 1 and not needs & ~done]
        for v in ready:
            row = self.row(done, live, peak, v)
            if row:
                yield row
                return
        for v in ready:
            most = live + self.problem.made_bytes[v]
            after = done | 1 << v
            yield (v,), after, most, most - self.problem.freed_bytes(after, v)

    def row(
        self, done: int, live: int, peak: int, v: int
    ) -> tuple[tuple[int, ...], int, int, int] | None:
        """Return operators from v on that follow each other alone and end with no more alive."""
        first, most = live, live
        passed: list[int] = []
        while (during := live + self.problem.made_bytes[v]) <= peak:
            passed.append(v)
            done |= 1 << v
            most = max(most, during)
            live = during - self.problem.freed_bytes(done, v)
            if live <= first:
                return tuple(passed), done, most, live
            behind = self.problem.behind[v]
            if len(behind) != 1 or self.needs[v := next(iter(behind))] & ~done:
                return None
        return None

    def path(self) -> tuple[int, ...]:
        """Return the operators of the path to the set of all."""
        rows: list[tuple[int, ...]] = []
        done = self.all
        while done:
            done, row = self.previous[done]
            rows.append(row)
        return tuple(v for row in reversed(rows) for v in row)


def _improve(problem: OrderProblem, result: LeastOrder, deterministic_s: float) -> LeastOrder:
    """Improve an order, or its bound: lives that share a capacity, operators one at a time."""
    from ortools.sat.python import cp_model  # heavy

    count, model = problem.operators, cp_model.CpModel()
    positions = [model.new_int_var(0, count - 1, "") for _ in range(count)]
    model.add_all_different(positions)
    for v, before in enumerate(problem.before):
        for u in before:
            model.add(positions[u] < positions[v])
    for position, v in enumerate(result.order):
        model.add_hint(positions[v], position)
    lives, sizes = [], []
    for tensor in problem.tensors:
        begin = 0 if tensor.maker is None else positions[tensor.maker]
        ends = [positions[v] for v in (*tensor.readers, tensor.maker) if v is not None]
        end = model.new_int_var(0, count, "")
        if tensor.kept or not ends:
            model.add(end == count)
        for each in ends:
            model.add(end > each)
        lives.append(model.new_interval_var(begin, model.new_int_var(0, count, ""), end, ""))
        sizes.append(tensor.size_bytes)
    peak = model.new_int_var(result.bound_bytes, result.peak_bytes, "")
    model.add_cumulative(lives, sizes, peak)
    model.minimize(peak)
    outcome = run_cp_sat(model, most_s=deterministic_s)
    bound_bytes = max(result.bound_bytes, ceil(outcome.bound - ROUNDING))
    if outcome.found:
        order = tuple(sorted(range(count), key=lambda v: outcome.solver.value(positions[v])))
        peak_bytes = problem.peak_bytes(order)
        if peak_bytes < result.peak_bytes:
            result = replace(result, order=order, peak_bytes=peak_bytes)
    return replace(result, bound_bytes=min(bound_bytes, result.peak_bytes))


RECOMPUTE_DETERMINISTIC_S = 60.0
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
    sets = (
        {*inputs, *outputs} for inputs, outputs in zip(problem.reads, problem.makes, strict=True)
    )
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
    deterministic_s: float = RECOMPUTE_DETERMINISTIC_S,
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
    programme = _recompute_programme(problem, order, costs, most_bytes)
    outcome = run_cp_sat(programme.model, most_s=deterministic_s)
    if outcome.infeasible:
        return Recomputed((), 0, None, 0)
    bound = max(sum(costs), int(-(-(outcome.bound - ROUNDING) // 1)))
    if not outcome.found:
        return Recomputed((), 0, bound, 0)
    runs = tuple(v for v, runs in programme.slots if outcome.solver.value(runs))
    peak_bytes = peak_of_runs(problem, runs)
    if peak_bytes > most_bytes:
        raise AssertionError(f"a row of {most_bytes} bytes needs {peak_bytes}")
    return Recomputed(runs, sum(costs[v] for v in runs), bound, peak_bytes)


@dataclass(frozen=True, slots=True)
class _Programme:
    """The programme, and the operator and the variable of each slot."""

    model: Any
    slots: list[tuple[int, Any]]


def _recompute_programme(
    problem: OrderProblem, order: Sequence[int], costs: Sequence[int], most_bytes: int
) -> _Programme:
    from ortools.sat.python import cp_model  # heavy

    model = cp_model.CpModel()
    slots: list[tuple[int, Any]] = []
    # Whether each tensor is alive in the slot before.
    before: dict[int, Any] = {t: 1 for t, each in enumerate(problem.tensors) if each.maker is None}
    for v, first in _slots(order):
        runs = model.new_constant(1) if first else model.new_bool_var("")
        slots.append((v, runs))
        outputs = set(problem.makes[v])
        alive = {t: model.new_bool_var("") for t in {*before, *outputs}}
        for t, there in alive.items():
            model.add(there <= before.get(t, 0) + (runs if t in outputs else 0))
        for t in (*problem.reads[v], *problem.makes[v]):
            model.add_implication(runs, alive[t])
        model.add(sum(problem.tensors[t].size_bytes * alive[t] for t in alive) <= most_bytes)
        before = alive
    for t, tensor in enumerate(problem.tensors):
        if tensor.kept:
            model.add(before[t] == 1)
    model.minimize(sum(costs[v] * runs for v, runs in slots))
    return _Programme(model, slots)


def _slots(order: Sequence[int]) -> Iterator[tuple[int, bool]]:
    """Yield the operator of each slot, and whether that is its first run."""
    for step, v in enumerate(order):
        yield from ((u, False) for u in order[:step])
        yield v, True
