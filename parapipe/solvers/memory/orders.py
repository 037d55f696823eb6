"""Orders of operators on one processor, what is alive in them, and those of list schedulers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType


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
        return [sum(self.tensors[t].size_bytes for t in outputs) for outputs in self.makes]

    @cached_property
    def before(self) -> list[set[int]]:
        """Operators whose tensors each one reads."""
        makers = ({self.tensors[t].maker for t in read} for read in self.reads)
        return [{v for v in each if v is not None} for each in makers]

    @cached_property
    def behind(self) -> list[set[int]]:
        """Operators that read what each one makes."""
        return [{w for t in outputs for w in self.tensors[t].readers} for outputs in self.makes]

    @cached_property
    def reader_sets(self) -> list[int]:
        """Bits of the operators that read each tensor; a bit that never ends if it is kept."""
        endless = 1 << self.operators
        return [sum(1 << v for v in t.readers) | endless * t.kept for t in self.tensors]

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
    """What a list scheduler has done so far."""

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
    state = State(problem, 0, missing, dict.fromkeys(first, 0), _path_lengths(problem))
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


def _path_lengths(problem: OrderProblem) -> list[int]:
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
