"""The final evaluation: what a given mapping takes, without a search.

Prices are those of a cost table. Two effects that no sum of separable costs can hold come on top,
each a parameter of the platform's `evaluation` section: blocks that were measured apart hold part
of the hand-overs between them already, and stages that run side by side share the memory.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf

from parapipe.cost.cost_table import CostTable, Matrix
from parapipe.cost.coverage import Coverage, coverage_of
from parapipe.cost.price import OperatorCost
from parapipe.errors import AssignmentError
from parapipe.graph.listing import listed
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.mapping.carried import spelled_out
from parapipe.mapping.problem import Flow, MappingProblem
from parapipe.mapping.replay import list_order, replay
from parapipe.pipeline.assignment import Assignment
from parapipe.platform.platform import Platform


@dataclass(frozen=True, slots=True)
class EvaluatedStage:
    """A stage and what it takes.

    Parameters
    ----------
    processors
        Platform indices, ascending.
    operators
        Indices into the graph's operators, in the order in which they start.
    time_s
        Seconds from its first operator's inputs on the stage before to its last end; loading the
        frame is not part of it.
    work_s
        Seconds of its operators, added up.
    dynamic_energy_j
        Joules of its operators without the static part.
    shared_processor
        Whether another stage runs on one of its processors too.
    contended_time_s
        `time_s` while all other stages work on other frames and use the memory as well.
    """

    processors: tuple[int, ...]
    operators: tuple[int, ...]
    time_s: float
    work_s: float
    dynamic_energy_j: float
    shared_processor: bool
    contended_time_s: float


@dataclass(frozen=True, slots=True)
class Evaluated:
    """A mapping and what it takes.

    Parameters
    ----------
    latency_s
        One frame through all stages, one after the other.
    longest_stage_s
        The period of the paper.
    period_s
        Seconds between frames: the longest stage, or if longer the time in which a processor that
        several stages share works for one frame.
    energy_j, board_energy_j
        Joules per frame at that period, equation (8); the latter with the board's idle power.
    sequential_energy_j, sequential_board_energy_j
        Joules of one frame at a time: only the processors of the running stage draw static power.
    coverage
        Of the prices of the operators where they run.
    sources
        Operators (parts counted singly) and seconds by source of the price.
    """

    stages: tuple[EvaluatedStage, ...]
    input_s: float
    output_s: float
    latency_s: float
    longest_stage_s: float
    period_s: float
    energy_j: float
    board_energy_j: float
    sequential_energy_j: float
    sequential_board_energy_j: float
    coverage: Coverage
    sources: Mapping[str, tuple[int, float]]


def evaluate(
    graph: OperatorGraph,
    platform: Platform,
    costs: CostTable,
    assignment: Assignment,
    *,
    blocks: Sequence[int] | None = None,
) -> Evaluated:
    """Price an assignment.

    Parameters
    ----------
    blocks
        Block of each operator, if the costs are those of blocks that were measured apart.

    Raises
    ------
    AssignmentError
        If an operator is put on a processor that does not run it; all such operators are named.
    """
    _check_supported(graph, costs, assignment)
    timing = _Timing(graph, platform, costs, assignment, blocks)
    times = [timing.of_stage(stage) for stage in range(len(assignment.stages))]
    used = [tuple(sorted({assignment.processors[v] for v in m})) for m in assignment.stages]
    longest_s = _period_s(used, [time_s for time_s, _ in times])
    if not longest_s:
        raise AssignmentError(f"'{graph.source.name}' has no operator that takes time to evaluate")
    traffic = [timing.bytes_of(members) / longest_s for members in assignment.stages]
    slowed = [
        time_s * (1 + timing.contention * (sum(traffic) - own))
        for (time_s, _), own in zip(times, traffic, strict=True)
    ]
    stages = tuple(
        EvaluatedStage(
            processors=used[i],
            operators=order,
            time_s=time_s,
            work_s=sum(costs.time_s(v, assignment.processors[v]) for v in order),
            dynamic_energy_j=sum(costs.energy_j(v, assignment.processors[v]) for v in order),
            shared_processor=any(set(used[i]) & set(used[j]) for j in range(len(used)) if j != i),
            contended_time_s=slowed[i],
        )
        for i, (time_s, order) in enumerate(times)
    )
    return _totals(stages, graph, costs, assignment, _period_s(used, slowed))


def _check_supported(graph: OperatorGraph, costs: CostTable, assignment: Assignment) -> None:
    unable = [
        f"'{graph.operators[v].name}' ({costs.unsupported(v, p)})"
        for v, p in enumerate(assignment.processors)
        if costs.time_s(v, p) == inf
    ]
    if unable:
        raise AssignmentError(
            f"the assignment puts operators of '{graph.source.name}' where they cannot run: "
            f"{listed(unable)}; choose other processors for them"
        )


def _period_s(used: Sequence[Sequence[int]], times: Sequence[float]) -> float:
    """Return the longest stage, or the longest work of a processor that stages share."""
    work: dict[int, float] = {}
    for processors, time_s in zip(used, times, strict=True):
        for p in processors:
            work[p] = work.get(p, 0.0) + time_s
    return max(work.values())


def _totals(
    stages: tuple[EvaluatedStage, ...],
    graph: OperatorGraph,
    costs: CostTable,
    assignment: Assignment,
    period_s: float,
) -> Evaluated:
    latency_s = sum(stage.time_s for stage in stages)
    dynamic_j = sum(stage.dynamic_energy_j for stage in stages)
    everyone = {p for stage in stages for p in stage.processors}
    energy_j = dynamic_j + period_s * sum(costs.static_power_w[p] for p in everyone)
    sequential_j = dynamic_j + sum(
        stage.time_s * costs.static_power_w[p] for stage in stages for p in stage.processors
    )
    last = graph.producer[graph.outputs[-1]]
    coverage, sources = _sources(costs, assignment)
    return Evaluated(
        stages=stages,
        input_s=costs.input_s(assignment.processors[_first_reader(graph, stages)]),
        output_s=costs.output_s(assignment.processors[last]),
        latency_s=latency_s,
        longest_stage_s=max(stage.time_s for stage in stages),
        period_s=period_s,
        energy_j=energy_j,
        board_energy_j=energy_j + period_s * costs.idle_power_w,
        sequential_energy_j=sequential_j,
        sequential_board_energy_j=sequential_j + latency_s * costs.idle_power_w,
        coverage=coverage,
        sources=sources,
    )


def _first_reader(graph: OperatorGraph, stages: Sequence[EvaluatedStage]) -> int:
    readers = {v for name in graph.inputs for v in graph.consumers.get(name, ())}
    return next(v for stage in stages for v in stage.operators if v in readers or not readers)


def _sources(
    costs: CostTable, assignment: Assignment
) -> tuple[Coverage, dict[str, tuple[int, float]]]:
    found: dict[str, tuple[int, float]] = {}
    entries: dict[str, list[OperatorCost]] = {}
    for v, p in enumerate(assignment.processors):
        if cost := costs.cost(v, p):
            entries.setdefault(costs.processors[p], []).append(cost)
            for part in cost.parts:
                count, time_s = found.get(part.source, (0, 0.0))
                found[part.source] = (count + 1, time_s + part.time_s)
    parts = {name: [part for cost in some for part in cost.parts] for name, some in entries.items()}
    return coverage_of(parts), dict(sorted(found.items()))


@dataclass(frozen=True, slots=True)
class _Timing:
    """When the operators of a stage start and end."""

    graph: OperatorGraph
    platform: Platform
    costs: CostTable
    assignment: Assignment
    blocks: Sequence[int] | None

    @property
    def contention(self) -> float:
        """Lengthening per byte a second that others move."""
        known = self.platform.evaluation
        return known.contention / self.platform.memory.bandwidth_bytes_per_s if known else 0.0

    def bytes_of(self, operators: Sequence[int]) -> int:
        """Return what the operators read and write in one frame."""
        works = [self.graph.operators[v].work for v in operators]
        return sum(work.read_bytes + work.written_bytes for work in works)

    def of_stage(self, stage: int) -> tuple[float, tuple[int, ...]]:
        """Return the seconds of a stage, and its operators by start."""
        operators = self.assignment.stages[stage]
        local = {v: i for i, v in enumerate(operators)}
        placed = [self.assignment.processors[v] for v in operators]
        problem = MappingProblem(
            tuple(
                tuple(self.costs.time_s(v, q) if q == p else inf for q in self._everyone)
                for v, p in zip(operators, placed, strict=True)
            ),
            tuple(self._flows(local, stage)),
            tuple(range(len(operators))),
            self.costs.carrier,
        )
        spelled = spelled_out(problem, placed)
        order = list_order(spelled.problem, spelled.processor, range(len(spelled.jobs)))
        start_s, end_s = replay(spelled.problem, spelled.processor, order)
        done = sorted(
            (start_s[i], end_s[i], job)
            for i, job in enumerate(spelled.jobs)
            if isinstance(job, int)
        )
        return max(end for _, end, _ in done), tuple(operators[job] for _, _, job in done)

    @property
    def _everyone(self) -> range:
        return range(len(self.costs.processors))

    def _flows(self, local: Mapping[int, int], stage: int) -> Iterator[Flow]:
        names = dict.fromkeys(
            name for v in local for name in self.graph.reads(self.graph.operators[v])
        )
        for name in names:
            maker = self.graph.producer.get(name)
            if maker is None:
                continue  # a graph input is everywhere once it is loaded
            for share, readers in self._by_share(maker, name, local):
                inside = tuple(sorted(local[v] for v in readers))
                matrix = _scaled(self.costs.transfer_matrix(name), share)
                if maker in local:
                    yield Flow(local[maker], inside, matrix)
                else:
                    home = self.assignment.processors[maker]
                    there = self._copies(name, stage)
                    yield Flow(None, inside, _without(matrix, home, there), home)

    def _by_share(
        self, maker: int, name: str, local: Collection[int]
    ) -> Iterator[tuple[float, list[int]]]:
        """Group a tensor's readers by how much of the hand-over to them their times lack."""
        known = self.platform.evaluation
        groups: dict[float, list[int]] = {}
        for v in self.graph.consumers[name]:
            if v in local:
                apart = self.blocks is not None and self.blocks[maker] != self.blocks[v]
                share = known.hand_over_share if apart and known else 1.0
                groups.setdefault(share, []).append(v)
        yield from groups.items()

    def _copies(self, name: str, stage: int) -> set[int]:
        """Processors to which an earlier stage has moved the tensor already."""
        earlier = {v for members in self.assignment.stages[:stage] for v in members}
        readers = earlier.intersection(self.graph.consumers[name])
        return {self.assignment.processors[v] for v in readers}


def _scaled(matrix: Matrix, share: float) -> Matrix:
    if share == 1.0:
        return matrix
    return tuple(tuple(share * time_s for time_s in row) for row in matrix)


def _without(matrix: Matrix, home: int, copies: Collection[int]) -> Matrix:
    """Return the matrix with nothing to pay from a tensor's home to where copies are."""
    row = tuple(0.0 if q in copies else time_s for q, time_s in enumerate(matrix[home]))
    return (*matrix[:home], row, *matrix[home + 1 :])
