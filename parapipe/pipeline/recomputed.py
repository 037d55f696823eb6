"""Sequential configurations in which operators run again in place of keeping what they made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import ceil, inf

from parapipe.cost.cost_table import CostTable, build_cost_table
from parapipe.errors import SplitError
from parapipe.graph.operator_graph import Operator, OperatorGraph
from parapipe.graph.parts.again import Run, again_rule
from parapipe.graph.parts.marks import again_name, own_and_run
from parapipe.pipeline.assigned import mapping_of
from parapipe.pipeline.assignment import Assignment
from parapipe.pipeline.candidate import Candidate
from parapipe.pipeline.configuration import Configuration, SplitModel
from parapipe.pipeline.deadline import Deadline
from parapipe.pipeline.evaluate import evaluate
from parapipe.pipeline.memory import peaks_of
from parapipe.pipeline.memory_limit import MemoryLimit
from parapipe.pipeline.runs_again import Row, Rows
from parapipe.pipeline.search_contract import Moment, SearchProblem, SplitSources
from parapipe.pipeline.split_model import ordered
from parapipe.pipeline.storage import Storage

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

        def measured(found: Configuration) -> Configuration:
            return replace(found, peak=peak_of(found))

        storage, models = Storage.of(graph, costs), _Models(problem.splitting, costs)
        for p in range(len(costs.processors)):
            time_s = [costs.time_s(v, p) for v in range(len(graph.operators))]
            if max(time_s) == inf or deadline.over:
                continue
            rows = Rows(graph, problem.partition, time_s, partial(storage.tensor_bytes, p=p))
            plain = measured(_configured(graph, costs, p, rows.least.runs))
            yield plain
            left = limit.left_bytes(plain)
            if left >= 0 and not trades:
                continue
            asked = rows.least.peak_bytes + min(left, -1)
            alone, _ = (None, False) if trades else rows.within(int(asked))
            for row in [alone] if alone else _lower(rows, deadline):
                try:
                    yield measured(models.configured(graph, p, row, plain))
                except SplitError as error:
                    problem.left_out(
                        f"a configuration that makes tensors again is left out: {error}"
                    )


def _lower(rows: Rows, deadline: Deadline) -> Iterator[Row]:
    """Yield rows of lower and lower peaks."""
    row: Row | None = rows.least
    step = ceil((rows.least.peak_bytes - rows.floor_bytes) / STEPS)
    while row and row.peak_bytes > rows.floor_bytes and not deadline.over:
        row, _ = rows.within(max(rows.floor_bytes, row.peak_bytes - step))
        if row:
            yield row


def _configured(
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
    made = evaluate(mapping, graph, costs)
    return Configuration(
        mapping,
        made,
        proven=split is None,
        gap=1 - least_s / made.latency_s if split else 0.0,
        table=0,
        split=split,
    )


@dataclass(frozen=True, slots=True)
class _Models:
    """Makes models in which operators run again."""

    sources: SplitSources
    costs: CostTable

    def configured(
        self, graph: OperatorGraph, p: int, row: Row, plain: Configuration
    ) -> Configuration:
        """Return the configuration of a row of runs; SplitError if an operator cannot run again."""
        runs = [*numbered(graph, row.runs)]
        rules = tuple(rules_of(graph, runs))
        if not rules:
            return _configured(graph, self.costs, p, row.runs)
        sources = self.sources
        made = sources.splitter(rules)
        costs = build_cost_table(
            made, sources.platform, profiles=sources.profiles, precision=self.costs.precision
        )
        model = SplitModel(rules, made, costs)
        order = ordered(made, [(float(at),) for at in _places(graph, made, runs)])
        least_s = plain.evaluated.latency_s
        return _configured(made, costs, p, order, split=model, least_s=least_s)


def numbered(graph: OperatorGraph, row: Sequence[int]) -> Iterator[Run]:
    """Yield the runs of a row that are of use; the last one of each operator has the number 0."""
    runs = [*row]
    while True:
        left = Counter(runs)
        found: list[Run] = []
        read: set[Run] = set()
        latest: dict[int, int] = {}
        for v in runs:
            left[v] -= 1
            read |= {(u, latest[u]) for u in graph.predecessors(v)}
            latest[v] = left[v]
            found.append((v, left[v]))
        useful = [each for each in found if not each[1] or each in read]
        if len(useful) == len(runs):
            yield from found
            return
        runs = [v for v, _ in useful]


def rules_of(graph: OperatorGraph, runs: Sequence[Run]) -> Iterator[str]:
    """Yield the rules by which a model's operators run so: see `AgainRule`."""
    latest: dict[int, int] = {}
    for v, run in runs:
        for u in graph.predecessors(v):
            if latest[u]:
                reader = again_name(graph.operators[v].id, run)
                yield again_rule(graph.operators[u].id, latest[u], reader)
        latest[v] = run


def _places(graph: OperatorGraph, made: OperatorGraph, runs: Sequence[Run]) -> Iterator[int]:
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
    for operator in made.operators:
        if (run := _run_of(operator, operator_of)) not in place:
            raise SplitError(f"'{operator.name}' is no operator of the model, nor another run")
        yield place[run]


def _run_of(operator: Operator, operator_of: Mapping[str, int]) -> Run:
    """Return which operator of the model this is, by its last node, and which run of it."""
    last = operator.members[-1]
    if last in operator_of:
        return operator_of[last], 0
    name, run = own_and_run(last) or (last, 0)
    return operator_of.get(name, -1), run
