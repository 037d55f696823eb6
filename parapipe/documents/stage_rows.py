"""Rows of front.json for the stages of a configuration and the processors in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from parapipe.cost.operating_points import Setting
from parapipe.documents.front_records import ProcessorRow, StageRow
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.graph.part_marks import origins
from parapipe.graph.partition import Partition
from parapipe.mappings.configuration import Configuration, stated_figure
from parapipe.plan.schema import OperatingPoint
from parapipe.platform.sections import OperatingPoint as PlatformPoint


def stage_rows(
    configuration: Configuration,
    at: Setting,
    graph: OperatorGraph,
    partition: Partition,
    segments: Mapping[int, int],
) -> Iterator[StageRow]:
    """Yield the stages, and what each processor does for a frame in any of them."""
    mapping, costs, count = configuration.mapping, at.costs, len(at.costs.processors)
    busy_s, transfer_s, dynamic_energy_j = ([0.0] * count for _ in range(3))
    for placement in (each for stage in mapping.stages for each in stage.placements):
        turns = mapping.replicas.get(placement.processor, (placement.processor,))
        for p in turns:
            busy_s[p] += (placement.end_s - placement.start_s) / len(turns)
            dynamic_energy_j[p] += costs.energy_j(placement.operator, p) / len(turns)
    for transfer in (each for stage in mapping.stages for each in stage.transfers):
        if transfer.resource is not None and transfer.resource < count:  # else a shared link
            transfer_s[transfer.resource] += transfer.end_s - transfer.start_s
    processors = [
        ProcessorRow(
            name=processor.name,
            operating_point=point_row(processor.point),
            busy_s=busy_s[p],
            transfer_s=transfer_s[p],
            dynamic_energy_j=dynamic_energy_j[p],
            static_power_w=costs.static_power_w[p],
            segments=segments.get(p),
        )
        for p, processor in enumerate(at.platform.processors)
    ]
    unsplit = _unsplit_operators(configuration, graph)
    place = {v: i for i, v in enumerate(partition.order)}
    for stage in mapping.stages:
        inside = sorted(
            {unsplit[placement.operator] for placement in stage.placements}, key=place.__getitem__
        )
        yield StageRow(
            processors=tuple(processors[p] for p in stage.replicas or stage.processors),
            first_operator=graph.operators[inside[0]].id,
            last_operator=graph.operators[inside[-1]].id,
            subgraphs=partition.numbers(inside),
            time_s=stated_figure(stage.time_s),
            in_turn=bool(stage.replicas),
        )


def _unsplit_operators(configuration: Configuration, graph: OperatorGraph) -> Sequence[int]:
    """Return the model's operator for each one that a configuration runs, by index."""
    if configuration.split is None:
        return range(len(graph.operators))
    number = {operator.id: v for v, operator in enumerate(graph.operators)}
    parts = configuration.split.graph.operators
    origin = origins(parts, number)
    return [number[origin[operator.id]] for operator in parts]


def point_row(point: PlatformPoint) -> OperatingPoint:
    """Return an operating point of a platform as documents have it."""
    return OperatingPoint(frequency_hz=point.frequency_hz, voltage_v=point.voltage_v)
