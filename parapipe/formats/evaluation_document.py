"""An evaluation written down: what `parapipe evaluate --json` prints."""

from __future__ import annotations

from collections.abc import Sequence

from parapipe.cost.cost_table import View
from parapipe.formats.coverage_row import coverage_row
from parapipe.formats.evaluation_schema import (
    SCHEMA,
    EvaluatedStageRow,
    EvaluationDocument,
    SequentialRow,
    SourceRow,
)
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.pipeline.evaluate import Evaluated, EvaluatedStage
from parapipe.platform.platform import Platform
from parapipe.version import __version__


def evaluation_document(
    found: Evaluated,
    graph: OperatorGraph,
    platform: Platform,
    *,
    view: View,
    network: str | None,
    order: str | None,
    blocks: Sequence[int] | None,
) -> EvaluationDocument:
    """Write an evaluation down."""
    shared = [
        name
        for p, name in enumerate(platform.names)
        if sum(p in stage.processors for stage in found.stages) > 1
    ]
    return EvaluationDocument(
        schema=SCHEMA,
        parapipe=__version__,
        model=graph.source.name,
        platform=platform.name,
        network=network,
        order=order,
        view=view,
        latency_s=found.latency_s,
        input_s=found.input_s,
        output_s=found.output_s,
        stages=tuple(_stage(stage, graph, platform, blocks) for stage in found.stages),
        longest_stage_s=found.longest_stage_s,
        period_s=found.period_s,
        sustained_period_s=found.sustained_period_s,
        throughput_fps=1 / found.period_s,
        shared_processor=tuple(shared),
        energy_j=found.energy_j,
        board_energy_j=found.board_energy_j,
        sequential=SequentialRow(
            energy_j=found.sequential_energy_j, board_energy_j=found.sequential_board_energy_j
        ),
        coverage=coverage_row(found.coverage),
        sources=tuple(
            SourceRow(source=source, operators=count, time_s=time_s)
            for source, (count, time_s) in found.sources.items()
        ),
    )


def _stage(
    stage: EvaluatedStage, graph: OperatorGraph, platform: Platform, blocks: Sequence[int] | None
) -> EvaluatedStageRow:
    held = sorted(blocks[v] for v in stage.operators) if blocks else []
    return EvaluatedStageRow(
        processors=tuple(platform.names[p] for p in stage.processors),
        time_s=stage.time_s,
        work_s=stage.work_s,
        contended_time_s=stage.contended_time_s,
        dynamic_energy_j=stage.dynamic_energy_j,
        operators=len(stage.operators),
        first_operator=graph.operators[stage.operators[0]].id,
        last_operator=graph.operators[stage.operators[-1]].id,
        blocks=(held[0], held[-1]) if held else (),
        shared_processor=stage.shared_processor,
    )
