"""The final evaluation: what a given mapping takes, without a search.

Prices are those of a cost table. Two effects that no sum of separable costs can hold come on top,
each a parameter of the platform's `evaluation` section: blocks that were measured apart hold part
of the hand-overs between them already, and stages that run side by side share the memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

from parapipe.cost.cost_table import CostTable
from parapipe.cost.coverage import Coverage, coverage_of
from parapipe.cost.price import OperatorCost
from parapipe.errors import AssignmentError
from parapipe.files.listing import listed
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.pipeline.assignment import Assignment
from parapipe.pipeline.moves import ordered_flow
from parapipe.pipeline.stage_timing import StageTiming
from parapipe.pipeline.sustained import sustained_period_s
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
    sustained_period_s
        What an executor with one thread per processor and two slots per channel reaches, if stages
        do not contend for the memory; a processor that stages share takes what they ask of it in
        a period in the order of the starts.
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
    sustained_period_s: float
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
    timing = StageTiming(graph, platform, costs, assignment, blocks)
    timed = [timing.of_stage(stage) for stage in range(len(assignment.stages))]
    times = [(each.time_s, each.order) for each in timed]
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
    works = [work for each in timed for work in each.works]
    links = [link for each in timed for link in each.links]
    return _totals(
        stages,
        graph,
        costs,
        assignment,
        period_s=_period_s(used, slowed),
        sustained_period_s=sustained_period_s(*ordered_flow(works, links)),
    )


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
    *,
    period_s: float,
    sustained_period_s: float,
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
        sustained_period_s=sustained_period_s,
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
