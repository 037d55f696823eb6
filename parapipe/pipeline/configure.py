"""A candidate of the search spelled out: every operator's place and time, and what it all costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from parapipe.cost.cost_table import CostTable
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.mapping.problem import MappingProblem
from parapipe.mapping.schedule import Schedule
from parapipe.pipeline.configuration import Configuration, Move, Placement, Stage
from parapipe.pipeline.moves import flow_of_frames, moves_of, once_each
from parapipe.pipeline.problems import Request
from parapipe.pipeline.runs import Runs
from parapipe.pipeline.search import Candidate
from parapipe.pipeline.sustained import sustained_period_s


def configure(
    candidate: Candidate,
    *,
    runs: Runs,
    graph: OperatorGraph,
    costs: CostTable,
    asked: Sequence[Request],
    schedules: Mapping[MappingProblem, Schedule],
) -> Configuration:
    """Spell out a candidate operator by operator, in exact seconds."""
    stages: list[Stage] = []
    chosen: list[Schedule] = []
    for run in candidate.stages:
        options = runs.trace(run.run, run.time_ns, run.energy_nj)
        begin_s = 0.0
        placements: list[Placement] = []
        moves: list[Move] = []
        for option in options:
            request = asked[option.choice]
            schedule = schedules[request.problem]
            chosen.append(schedule)
            placements += [
                Placement(v, p, begin_s + start_s, begin_s + end_s)
                for v, p, start_s, end_s in zip(
                    request.operators,
                    schedule.processor,
                    schedule.start_s,
                    schedule.end_s,
                    strict=True,
                )
            ]
            moves += moves_of(request, schedule, begin_s)
            begin_s += schedule.makespan_s
        # As a plan orders them: an operator that takes no time goes before one that starts with it.
        placements.sort(key=lambda placed: (placed.start_s, placed.end_s, placed.operator))
        used = tuple(sorted({placement.processor for placement in placements}))
        units = run.run.begin, run.run.end - 1
        stages.append(Stage(used, *units, tuple(placements), begin_s, once_each(moves)))
    period_s = max(stage.time_s for stage in stages)
    energy_j = sum(
        costs.energy_j(placement.operator, placement.processor)
        for stage in stages
        for placement in stage.placements
    ) + period_s * sum(costs.static_power_w[p] for stage in stages for p in stage.processors)
    return Configuration(
        stages=tuple(stages),
        latency_s=sum(stage.time_s for stage in stages),
        period_s=period_s,
        sustained_period_s=sustained_period_s(*flow_of_frames(graph, costs, stages)),
        input_s=costs.input_s(_first_reader(graph, stages)),
        output_s=costs.output_s(_processor_of(stages)[graph.producer[graph.outputs[-1]]]),
        energy_j=energy_j,
        board_energy_j=energy_j + period_s * costs.idle_power_w,
        proven=all(schedule.certificate.proven for schedule in chosen),
        gap=max(schedule.certificate.gap for schedule in chosen),
    )


def _processor_of(stages: Sequence[Stage]) -> dict[int, int]:
    return {
        placement.operator: placement.processor
        for stage in stages
        for placement in stage.placements
    }


def _first_reader(graph: OperatorGraph, stages: Sequence[Stage]) -> int:
    """Processor of the first operator that reads a graph input: it loads the frame."""
    readers = {v for name in graph.inputs for v in graph.consumers.get(name, ())}
    return next(
        placement.processor
        for stage in stages
        for placement in stage.placements
        if placement.operator in readers or not readers
    )
