"""An evaluation written down: what `parapipe evaluate --json` prints."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from parapipe.cost.cost_table import CostTable, View
from parapipe.cost.coverage import coverage_of
from parapipe.cost.price import PartCost
from parapipe.formats.coverage_row import coverage_row
from parapipe.formats.evaluation_schema import (
    SCHEMA,
    EvaluatedStageRow,
    EvaluationDocument,
    SequentialRow,
    SourceRow,
)
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.pipeline.evaluate import Evaluated, EvaluatedStage, priced_parts
from parapipe.pipeline.mapping import Mapping
from parapipe.platform.platform import Platform
from parapipe.version import __version__


def evaluation_document(
    found: Evaluated,
    mapping: Mapping,
    costs: CostTable,
    graph: OperatorGraph,
    platform: Platform,
    *,
    view: View,
    network: str | None,
    order: str | None,
    blocks: Sequence[int] | None,
) -> EvaluationDocument:
    """Write an evaluation down."""
    shared = [platform.names[p] for p, lags in mapping.lags.items() if len(lags) > 1]
    parts = priced_parts(mapping, costs)
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
        coverage=coverage_row(coverage_of(parts)),
        sources=_sources(part for some in parts.values() for part in some),
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


def _sources(parts: Iterable[PartCost]) -> tuple[SourceRow, ...]:
    """Return operators (parts counted singly) and seconds by source of the price."""
    found: dict[str, tuple[int, float]] = {}
    for part in parts:
        count, time_s = found.get(part.source, (0, 0.0))
        found[part.source] = (count + 1, time_s + part.time_s)
    return tuple(
        SourceRow(source=source, operators=count, time_s=time_s)
        for source, (count, time_s) in sorted(found.items())
    )
