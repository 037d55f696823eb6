"""Operators in a row on one processor, some of them more than once, so that they need less memory.

A model is cut into windows between points where branches meet, each in its least order. What is
made in one window is not made again in another: the integer programme that decides what runs again
grows with the third power of the operators.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from parapipe.graph.operator_graph import OperatorGraph
from parapipe.graph.partition import Partition
from parapipe.mapping.memory.least_order import least_order
from parapipe.mapping.memory.orders import OrderProblem
from parapipe.mapping.memory.recompute import recompute, working_set_bytes
from parapipe.mapping.units import NANO
from parapipe.pipeline.memory_order import order_problem

MOST_OPERATORS = 30
"""Of a window, unless a single section has more."""
SEARCHED_S = 10.0
"""Of CP-SAT for a window, in seconds of its own."""


@dataclass(frozen=True, slots=True)
class Row:
    """Operators in a row.

    Parameters
    ----------
    runs
        Operators, some perhaps more than once.
    peak_bytes
        Of activations, of one frame.
    """

    runs: tuple[int, ...]
    peak_bytes: int


@dataclass(frozen=True, slots=True)
class _Window:
    """Operators of neighbouring sections, in their least order.

    Parameters
    ----------
    passing_bytes
        What is alive meanwhile that they neither make nor read.
    row
        Peak included of what passes.
    """

    operators: tuple[int, ...]
    problem: OrderProblem
    passing_bytes: int
    row: Row


@dataclass(frozen=True)
class Rows:
    """Finds rows of a model's operators on one processor.

    Parameters
    ----------
    time_s
        Of each operator there.
    size_bytes
        Gives what a tensor takes there.
    """

    graph: OperatorGraph
    partition: Partition
    time_s: Sequence[float]
    size_bytes: Callable[[str], int]

    @cached_property
    def least(self) -> Row:
        """The row in which each operator runs once, in the least order of its window."""
        return self._joined([window.row for window in self._windows])

    @cached_property
    def floor_bytes(self) -> int:
        """Return what no row does without, however often operators run."""
        return max(working_set_bytes(w.problem) + w.passing_bytes for w in self._windows)

    def within(self, most_bytes: int) -> tuple[Row | None, bool]:
        """Return a row that takes little time and keeps a limit, and what is proven.

        That is, for these windows and their orders: that none takes less time or, if there is no
        row, that none keeps the limit.
        """
        rows, all_proven = [], True
        for window in self._windows:
            row, proven = self._within(window, most_bytes)
            if row is None:
                return None, proven
            rows.append(row)
            all_proven = all_proven and proven
        return self._joined(rows), all_proven

    def _within(self, window: _Window, most_bytes: int) -> tuple[Row | None, bool]:
        if window.row.peak_bytes <= most_bytes:
            return window.row, True
        if len(window.operators) > MOST_OPERATORS:
            return None, False
        place = {v: i for i, v in enumerate(window.operators)}
        costs = [round(self.time_s[v] * NANO) for v in window.operators]
        found = recompute(
            window.problem,
            [place[v] for v in window.row.runs],
            costs,
            most_bytes - window.passing_bytes,
            SEARCHED_S,
        )
        if not found.runs:
            return None, found.proven
        runs = tuple(window.operators[i] for i in found.runs)
        return Row(runs, found.peak_bytes + window.passing_bytes), found.proven

    @staticmethod
    def _joined(rows: Sequence[Row]) -> Row:
        runs = tuple(v for row in rows for v in row.runs)
        return Row(runs, max(row.peak_bytes for row in rows))

    @cached_property
    def _windows(self) -> list[_Window]:
        operators = [*windows(self.partition)]
        window_of = {v: i for i, inside in enumerate(operators) for v in inside}
        made = []
        for i, inside in enumerate(operators):
            problem = order_problem(self.graph, inside, self.size_bytes)
            passing_bytes = self._passing_bytes(window_of, i, len(operators))
            found = least_order(problem)
            runs = tuple(inside[v] for v in found.order)
            row = Row(runs, found.peak_bytes + passing_bytes)
            made.append(_Window(inside, problem, passing_bytes, row))
        return made

    def _passing_bytes(self, window_of: dict[int, int], i: int, count: int) -> int:
        graph, passing = self.graph, 0
        for name in (*graph.inputs, *graph.producer):
            made = window_of[graph.producer[name]] if name in graph.producer else -1
            reads = [window_of[v] for v in graph.consumers.get(name, ())]
            last = count if name in graph.outputs else max(reads, default=made)
            if name and made < i < last and i not in reads:
                passing += self.size_bytes(name)
        return passing


def windows(partition: Partition) -> Iterator[tuple[int, ...]]:
    """Yield the sections between points where branches meet, neighbours put together."""
    window: tuple[int, ...] = ()
    for each in partition.subgraphs:
        if window and len(window) + len(each.operators) > MOST_OPERATORS:
            yield window
            window = ()
        window += each.operators
    yield window
