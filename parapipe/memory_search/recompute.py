"""Sequential configurations in which operators run again, so that they need less memory.

A model is cut into windows between points where branches meet, each in its least order. What is
made in one window is not made again in another: the integer programme that decides what runs again
grows with the third power of the operators.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import ceil, inf

from parapipe.cost.cost_table import CostTable, build_cost_table
from parapipe.errors import SplitError
from parapipe.graph.operator_graph import Operator, OperatorGraph
from parapipe.graph.part_marks import operator_and_run, recompute_name
from parapipe.graph.partition import Partition
from parapipe.mappings.assembly import mapping_of
from parapipe.mappings.assignment import Assignment
from parapipe.mappings.configuration import Configuration, SplitModel
from parapipe.mappings.evaluate import evaluate
from parapipe.mappings.lifetimes import Storage
from parapipe.mappings.memory import MemoryLimit, order_problem, peaks_of
from parapipe.parts.recompute import Run, recompute_rule
from parapipe.processes.deadline import Deadline
from parapipe.search.contract import Moment, SearchProblem
from parapipe.search.stages.candidates import Candidate
from parapipe.solvers.memory.least_memory import least_order, recompute, working_set_bytes
from parapipe.solvers.memory.orders import OrderProblem
from parapipe.solvers.problem import NANO
from parapipe.split_search.split_model import topological_order

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
        return self._joined_rows([window.row for window in self._windows])

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
            row, proven = self._window_within(window, most_bytes)
            if row is None:
                return None, proven
            rows.append(row)
            all_proven = all_proven and proven
        return self._joined_rows(rows), all_proven

    def _window_within(self, window: _Window, most_bytes: int) -> tuple[Row | None, bool]:
        if window.row.peak_bytes <= most_bytes:
            return window.row, True
        if len(window.operators) > MOST_OPERATORS:
            return None, False
        place = {v: i for i, v in enumerate(window.operators)}
        costs = [round(self.time_s[v] * NANO) for v in window.operators]
        recomputed = recompute(
            window.problem,
            [place[v] for v in window.row.runs],
            costs,
            most_bytes - window.passing_bytes,
            SEARCHED_S,
        )
        if not recomputed.runs:
            return None, recomputed.proven
        runs = tuple(window.operators[i] for i in recomputed.runs)
        return Row(runs, recomputed.peak_bytes + window.passing_bytes), recomputed.proven

    @staticmethod
    def _joined_rows(rows: Sequence[Row]) -> Row:
        runs = tuple(v for row in rows for v in row.runs)
        return Row(runs, max(row.peak_bytes for row in rows))

    @cached_property
    def _windows(self) -> list[_Window]:
        operators = [*windows(self.partition)]
        window_of = {v: i for i, inside in enumerate(operators) for v in inside}
        parts = []
        for i, inside in enumerate(operators):
            problem = order_problem(self.graph, inside, self.size_bytes)
            passing_bytes = self._passing_bytes(window_of, i, len(operators))
            least = least_order(problem)
            runs = tuple(inside[v] for v in least.order)
            row = Row(runs, least.peak_bytes + passing_bytes)
            parts.append(_Window(inside, problem, passing_bytes, row))
        return parts

    def _passing_bytes(self, window_of: dict[int, int], i: int, count: int) -> int:
        graph, passing = self.graph, 0
        for name in (*graph.inputs, *graph.producer):
            maker = window_of[graph.producer[name]] if name in graph.producer else -1
            reads = [window_of[v] for v in graph.consumers.get(name, ())]
            last = count if name in graph.outputs else max(reads, default=maker)
            if name and maker < i < last and i not in reads:
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


STEPS = 20
"""Limits that are tried from the least order's peak down to what one operator reads and makes."""


class RecomputedSearch:
    """The search for configurations of one processor in which operators run again."""

    name = "recomputed"
    moment = Moment.MEMORY

    def run(
        self, problem: SearchProblem, incumbents: Sequence[Candidate], deadline: Deadline
    ) -> Iterator[Configuration]:
        """Yield configurations of each processor alone that need less memory than its least order.

        The least order comes first. With a limit alone, the fastest row of runs that was found to
        keep it follows; else, and where none keeps it, rows of lower and lower peaks, down to where
        none is found. The incumbents do not matter: others need more memory.
        """
        del incumbents
        graph, costs = problem.graph, problem.tables[0]
        limit, trades = MemoryLimit(problem.options.max_memory_bytes), problem.options.memory
        peak_of = peaks_of(graph, lambda _: costs)

        def measured(configuration: Configuration) -> Configuration:
            return replace(configuration, peak=peak_of(configuration))

        storage = Storage.of(graph, costs)
        for p in range(len(costs.processors)):
            time_s = [costs.time_s(v, p) for v in range(len(graph.operators))]
            if max(time_s) == inf or deadline.over:
                continue
            rows = Rows(graph, problem.partition, time_s, partial(storage.tensor_bytes, p=p))
            plain = measured(_sequential(graph, costs, p, rows.least.runs))
            yield plain
            left_bytes = limit.left_bytes(plain)
            if left_bytes >= 0 and not trades:
                continue
            most_bytes = rows.least.peak_bytes + min(left_bytes, -1)
            alone, _ = (None, False) if trades else rows.within(int(most_bytes))
            for row in [alone] if alone else _rows_of_lower_peaks(rows, deadline):
                try:
                    yield measured(_recomputing(problem, p, row, plain))
                except SplitError as error:
                    problem.left_out(
                        f"a configuration that makes tensors again is left out: {error}"
                    )


def _rows_of_lower_peaks(rows: Rows, deadline: Deadline) -> Iterator[Row]:
    """Yield rows of lower and lower peaks."""
    row: Row | None = rows.least
    step = ceil((rows.least.peak_bytes - rows.floor_bytes) / STEPS)
    while row and row.peak_bytes > rows.floor_bytes and not deadline.over:
        row, _ = rows.within(max(rows.floor_bytes, row.peak_bytes - step))
        if row:
            yield row


def _sequential(
    graph: OperatorGraph,
    costs: CostTable,
    p: int,
    order: Sequence[int],
    *,
    split: SplitModel | None = None,
    least_s: float = 0.0,
) -> Configuration:
    """Return all operators on a processor in an order."""
    assignment = Assignment((p,) * len(graph.operators), (tuple(order),), ordered=True)
    mapping = mapping_of(graph, None, costs, assignment)
    evaluated = evaluate(mapping, graph, costs)
    return Configuration(
        mapping,
        evaluated,
        proven=split is None,
        gap=1 - least_s / evaluated.latency_s if split else 0.0,
        table=0,
        split=split,
    )


def _recomputing(problem: SearchProblem, p: int, row: Row, plain: Configuration) -> Configuration:
    """Return the configuration of a row of runs; SplitError if an operator cannot run again."""
    graph, costs, sources = problem.graph, problem.tables[0], problem.splitting
    runs = [*numbered(graph, row.runs)]
    rules = tuple(rules_of(graph, runs))
    if not rules:
        return _sequential(graph, costs, p, row.runs)
    model_graph = sources.splitter(rules)
    table = build_cost_table(
        model_graph, sources.platform, profiles=sources.profiles, precision=costs.precision
    )
    costs = replace(table, arrival_s=costs.arrival_s, graph_launch_s=costs.graph_launch_s)
    model = SplitModel(rules, model_graph, costs)
    places = _places_in_row(graph, model_graph, runs)
    order = topological_order(model_graph, [(float(at),) for at in places])
    least_s = plain.evaluated.latency_s
    return _sequential(model_graph, costs, p, order, split=model, least_s=least_s)


def numbered(graph: OperatorGraph, row: Sequence[int]) -> Iterator[Run]:
    """Yield the runs of a row that are of use; the last one of each operator has the number 0."""
    runs = [*row]
    while True:
        runs_left = Counter(runs)
        numbered_runs: list[Run] = []
        read: set[Run] = set()
        latest: dict[int, int] = {}
        for v in runs:
            runs_left[v] -= 1
            read |= {(u, latest[u]) for u in graph.predecessors(v)}
            latest[v] = runs_left[v]
            numbered_runs.append((v, runs_left[v]))
        useful = [each for each in numbered_runs if not each[1] or each in read]
        if len(useful) == len(runs):
            yield from numbered_runs
            return
        runs = [v for v, _ in useful]


def rules_of(graph: OperatorGraph, runs: Sequence[Run]) -> Iterator[str]:
    """Yield the rules by which a model's operators run so: see `RecomputeRule`."""
    latest: dict[int, int] = {}
    for v, run in runs:
        for u in graph.predecessors(v):
            if latest[u]:
                reader = recompute_name(graph.operators[v].id, run)
                yield recompute_rule(graph.operators[u].id, latest[u], reader)
        latest[v] = run


def _places_in_row(
    graph: OperatorGraph, model_graph: OperatorGraph, runs: Sequence[Run]
) -> Iterator[int]:
    """Yield the place in the row of each operator of the model with more runs.

    With fewer readers of a tensor, an activation may have joined the operator before it. Then the
    place is that of the activation.

    Raises
    ------
    SplitError
        If an operator is none of a run.
    """
    place = {run: at for at, run in enumerate(runs)}
    operator_of = {member: v for v, each in enumerate(graph.operators) for member in each.members}
    for operator in model_graph.operators:
        if (run := _model_run(operator, operator_of)) not in place:
            raise SplitError(f"'{operator.name}' is no operator of the model, nor another run")
        yield place[run]


def _model_run(operator: Operator, operator_of: Mapping[str, int]) -> Run:
    """Return which operator of the model this is, by its last node, and which run of it."""
    last = operator.members[-1]
    if last in operator_of:
        return operator_of[last], 0
    name, run = operator_and_run(last) or (last, 0)
    return operator_of.get(name, -1), run
