"""Orders of operators on one processor, and one in which the fewest bytes are alive at the peak."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import heappop, heappush
from types import MappingProxyType

MOST_STATES = 200_000
"""Sets of operators that are visited before the search ends without a proof."""


@dataclass(frozen=True, slots=True)
class LiveTensor:
    """A tensor that takes memory from its maker's start to the end of its last reader.

    Parameters
    ----------
    maker
        The operator that makes it; None if it is there before them all.
    readers
        Operators that read it.
    kept
        Whether it stays to the end.
    """

    size_bytes: int
    maker: int | None
    readers: frozenset[int]
    kept: bool = False


@dataclass(frozen=True)
class OrderProblem:
    """Operators 0 to `operators` - 1, which one processor runs, and all that is alive meanwhile.

    Raises
    ------
    ValueError
        If operators wait for each other.
    """

    operators: int
    tensors: tuple[LiveTensor, ...]

    def __post_init__(self) -> None:
        if len(order_by(self, lambda _state, v: v)) < self.operators:
            raise ValueError("operators wait for each other")

    @cached_property
    def reads(self) -> list[list[int]]:
        """Tensors that each operator reads."""
        reads: list[list[int]] = [[] for _ in range(self.operators)]
        for t, tensor in enumerate(self.tensors):
            for v in tensor.readers:
                reads[v].append(t)
        return reads

    @cached_property
    def makes(self) -> list[list[int]]:
        """Tensors that each operator makes."""
        makes: list[list[int]] = [[] for _ in range(self.operators)]
        for t, tensor in enumerate(self.tensors):
            if tensor.maker is not None:
                makes[tensor.maker].append(t)
        return makes

    @cached_property
    def made_bytes(self) -> list[int]:
        """Bytes that each operator makes."""
        return [sum(self.tensors[t].size_bytes for t in made) for made in self.makes]

    @cached_property
    def before(self) -> list[set[int]]:
        """Operators whose tensors each one reads."""
        makers = ({self.tensors[t].maker for t in read} for read in self.reads)
        return [{v for v in each if v is not None} for each in makers]

    @cached_property
    def behind(self) -> list[set[int]]:
        """Operators that read what each one makes."""
        return [{w for t in made for w in self.tensors[t].readers} for made in self.makes]

    @cached_property
    def reader_sets(self) -> list[int]:
        """Bits of the operators that read each tensor; a bit that never ends if it is kept."""
        kept = 1 << self.operators
        return [sum(1 << v for v in t.readers) | kept * t.kept for t in self.tensors]

    @property
    def first_bytes(self) -> int:
        """Bytes that are there before all operators."""
        return sum(t.size_bytes for t in self.tensors if t.maker is None)

    @property
    def total_bytes(self) -> int:
        """What is needed if no tensor takes the memory of another."""
        return sum(t.size_bytes for t in self.tensors)

    def freed_bytes(self, done: int, v: int) -> int:
        """Return the bytes that end with an operator, the last of the set `done` (of bits)."""
        ends = (t for t in (*self.reads[v], *self.makes[v]) if not self.reader_sets[t] & ~done)
        return sum(self.tensors[t].size_bytes for t in ends)

    def peak_bytes(self, order: Sequence[int]) -> int:
        """Return the most bytes that are alive at one time in an order."""
        done, live = 0, self.first_bytes
        peak = live
        for v in order:
            done |= 1 << v
            live += self.made_bytes[v]
            peak = max(peak, live)
            live -= self.freed_bytes(done, v)
        return peak

    def bound_bytes(self) -> int:
        """Return what no order does without: what is alive during some operator in all of them.

        That is each tensor made by it or by one that must go before it, and read by it or by one
        that must come behind it.
        """
        order = order_by(self, lambda _state, v: v)
        above = [1 << v for v in range(self.operators)]
        below = [1 << self.operators | 1 << v for v in range(self.operators)]
        for v in order:
            for u in self.before[v]:
                above[v] |= above[u]
        for v in reversed(order):
            for w in self.behind[v]:
                below[v] |= below[w]
        bounds = (
            sum(
                t.size_bytes
                for t, readers in zip(self.tensors, self.reader_sets, strict=True)
                if (t.maker is None or above[v] >> t.maker & 1)
                and (readers & below[v] or t.maker == v)
            )
            for v in range(self.operators)
        )
        return max(self.first_bytes, *bounds) if self.operators else self.first_bytes


@dataclass(slots=True)
class State:
    """A list scheduler on its way."""

    problem: OrderProblem
    done: int
    missing: list[int]
    ready_since: dict[int, int]
    to_end: Sequence[int]

    def released(self, v: int) -> int:
        """Return how many operators wait for this one alone."""
        return sum(self.missing[w] == 1 for w in self.problem.behind[v])

    def growth_bytes(self, v: int) -> int:
        """Return how many more bytes are alive behind an operator than before it."""
        freed = self.problem.freed_bytes(self.done | 1 << v, v)
        return self.problem.made_bytes[v] - freed


Priority = Callable[[State, int], int]

PRIORITIES: Mapping[str, Priority] = MappingProxyType({
    "breadth-first": lambda state, v: state.ready_since[v],
    "depth-first": lambda state, v: -state.ready_since[v],
    "longest path": lambda state, v: -state.to_end[v],
    "most released": lambda state, v: -state.released(v),
    "bytes freed": lambda state, v: state.growth_bytes(v),
})  # fmt: skip
"""What goes first has the least number: priorities of list schedulers, by name."""


def order_by(problem: OrderProblem, priority: Priority) -> list[int]:
    """Return the order in which the operator of least priority that can run always goes first.

    Of equals, that of the lowest number goes first. Operators that wait for each other are left
    out.
    """
    missing = [len(before) for before in problem.before]
    first = [v for v, count in enumerate(missing) if not count]
    state = State(problem, 0, missing, dict.fromkeys(first, 0), _to_end(problem))
    order: list[int] = []
    while state.ready_since:
        v = min(state.ready_since, key=lambda v: (priority(state, v), v))
        del state.ready_since[v]
        order.append(v)
        state.done |= 1 << v
        for w in problem.behind[v]:
            missing[w] -= 1
            if not missing[w]:
                state.ready_since[w] = len(order)
    return order


def _to_end(problem: OrderProblem) -> list[int]:
    """Return the operators of the longest path from each one to an end."""
    waiting = [len(behind) for behind in problem.behind]
    last = [v for v, count in enumerate(waiting) if not count]
    longest = [1] * problem.operators
    while last:
        v = last.pop()
        for u in problem.before[v]:
            longest[u] = max(longest[u], longest[v] + 1)
            waiting[u] -= 1
            if not waiting[u]:
                last.append(u)
    return longest


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


def least_order(problem: OrderProblem, most_states: int = MOST_STATES) -> LeastOrder:
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
        order is the best one that list schedulers or the heuristic of the search found.
    """
    known = (order_by(problem, priority) for priority in PRIORITIES.values())
    best = min(known, key=problem.peak_bytes)
    return _Search(problem, best).run(most_states)


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
