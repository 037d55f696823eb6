"""A candidate of the search spelled out: every operator's place and time, and what it all costs."""

from __future__ import annotations

from collections.abc import Sequence

from parapipe.cost.cost_table import CostTable
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.pipeline.choices import Choice
from parapipe.pipeline.configuration import Configuration, Move, Placement, Stage
from parapipe.pipeline.moves import flow_of_frames, moves_of, once_each
from parapipe.pipeline.runs import Runs
from parapipe.pipeline.search import Candidate
from parapipe.pipeline.sustained import sustained_period_s


def configure(
    candidate: Candidate,
    *,
    runs: Runs,
    graph: OperatorGraph,
    costs: CostTable,
    choices: Sequence[Choice],
) -> Configuration:
    """Spell out a candidate operator by operator, in exact seconds."""
    stages: list[Stage] = []
    chosen: list[Choice] = []
    for run in candidate.stages:
        options = runs.trace(run.run, run.time_ns, run.energy_nj)
        begin_s = 0.0
        placements: list[Placement] = []
        moves: list[Move] = []
        for option in options:
            choice = choices[option.choice]
            schedule = choice.schedule
            chosen.append(choice)
            placements += [
                Placement(v, p, begin_s + start_s, begin_s + end_s)
                for v, p, start_s, end_s in zip(
                    choice.request.operators,
                    schedule.processor,
                    schedule.start_s,
                    schedule.end_s,
                    strict=True,
                )
            ]
            moves += moves_of(choice.request, schedule, begin_s)
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
        proven=all(choice.claim.proven for choice in chosen),
        gap=max(choice.claim.gap for choice in chosen),
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
