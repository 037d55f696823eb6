"""An order of operators on one processor in which the fewest bytes are alive at the peak."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from math import ceil

from parapipe.mapping.cp_sat import run_cp_sat
from parapipe.mapping.memory.orders import PRIORITIES, OrderProblem, order_by
from parapipe.mapping.units import ROUNDING

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
    problem: OrderProblem,
    most_states: int = MOST_STATES,
    deterministic_s: float = DETERMINISTIC_S,
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
    known = (order_by(problem, priority) for priority in PRIORITIES.values())
    best = min(known, key=problem.peak_bytes)
    found = _Search(problem, best).run(most_states)
    if found.proven or deterministic_s <= 0:
        return found
    return _by_cp_sat(problem, found, deterministic_s)


_Step = tuple[int, tuple[int, ...]]  # the set before, and the operators that follow it


class _Search:
    """Sets of operators that wait, and how each was reached."""

    def __init__(self, problem: OrderProblem, known: Sequence[int]) -> None:
        self.problem = problem
        self.order, self.peak = tuple(known), problem.peak_bytes(known)
        self.needs = [sum(1 << u for u in before) for before in problem.before]
        self.all = (1 << problem.operators) - 1
        self.came: dict[int, _Step] = {}

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
                    self.came[after] = done, row
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
        """Return the operators of the way to the set of all."""
        rows: list[tuple[int, ...]] = []
        done = self.all
        while done:
            done, row = self.came[done]
            rows.append(row)
        return tuple(v for row in reversed(rows) for v in row)


def _by_cp_sat(problem: OrderProblem, found: LeastOrder, deterministic_s: float) -> LeastOrder:
    """Improve an order, or its bound: lives that share a capacity, operators one at a time."""
    from ortools.sat.python import cp_model  # heavy

    count, model = problem.operators, cp_model.CpModel()
    turns = [model.new_int_var(0, count - 1, "") for _ in range(count)]
    model.add_all_different(turns)
    for v, before in enumerate(problem.before):
        for u in before:
            model.add(turns[u] < turns[v])
    for turn, v in enumerate(found.order):
        model.add_hint(turns[v], turn)
    lives, sizes = [], []
    for tensor in problem.tensors:
        begin = 0 if tensor.maker is None else turns[tensor.maker]
        ends = [turns[v] for v in (*tensor.readers, tensor.maker) if v is not None]
        end = model.new_int_var(0, count, "")
        if tensor.kept or not ends:
            model.add(end == count)
        for each in ends:
            model.add(end > each)
        lives.append(model.new_interval_var(begin, model.new_int_var(0, count, ""), end, ""))
        sizes.append(tensor.size_bytes)
    peak = model.new_int_var(found.bound_bytes, found.peak_bytes, "")
    model.add_cumulative(lives, sizes, peak)
    model.minimize(peak)
    outcome = run_cp_sat(model, most_s=deterministic_s)
    bound_bytes = max(found.bound_bytes, ceil(outcome.bound - ROUNDING))
    if outcome.found:
        order = tuple(sorted(range(count), key=lambda v: outcome.solver.value(turns[v])))
        peak_bytes = problem.peak_bytes(order)
        if peak_bytes < found.peak_bytes:
            found = replace(found, order=order, peak_bytes=peak_bytes)
    return replace(found, bound_bytes=min(bound_bytes, found.peak_bytes))
