"""A configuration becomes a plan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pydantic import ValidationError

from parapipe.cost.cost_table import CostTable
from parapipe.cost.coverage import coverage_of
from parapipe.errors import PlanError
from parapipe.graph import operator_graph
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.pipeline.configuration import Configuration, Placement
from parapipe.pipeline.sustained import channel_depth
from parapipe.plan import schema
from parapipe.plan.schema import SCHEMA, Plan
from parapipe.plan.verify import verify_plan
from parapipe.platform.platform import Platform


def build_plan(
    graph: OperatorGraph,
    platform: Platform,
    costs: CostTable,
    configuration: Configuration,
    operators: tuple[schema.Operator, ...] | None = None,
) -> Plan:
    """Write a configuration down for a runtime, and verify what was written.

    Parameters
    ----------
    graph, platform, costs
        What the configuration was found for.
    operators
        What `written_operators` says of the graph; it is the same for all plans.

    Raises
    ------
    PlanError
        As `written_operators` does.
    VerificationError
        If the plan breaks a rule that runtimes rely on.
    """
    plan = Plan(
        schema=SCHEMA,
        model=schema.Model(
            name=graph.source.name, sha256=graph.source.sha256, external=graph.source.external
        ),
        platform=platform.name,
        inputs=graph.inputs,
        outputs=graph.outputs,
        tensors=tensors_of(graph),
        operators=written_operators(graph) if operators is None else operators,
        processors=tuple(_processors(platform, configuration)),
        stages=tuple(_stages(graph, platform, costs, configuration)),
        transfers=tuple(_transfers(graph, platform, costs, configuration)),
        predicted=_predicted(costs, configuration),
    )
    verify_plan(plan)
    return plan


def tensors_of(graph: OperatorGraph) -> dict[str, schema.Tensor]:
    """Return the tensors of a graph, as a plan says them."""
    return {
        tensor.name: schema.Tensor(
            shape=tensor.shape, dtype=tensor.dtype, size_bytes=tensor.size_bytes
        )
        for tensor in graph.tensors.values()
    }


def written_operators(graph: OperatorGraph) -> tuple[schema.Operator, ...]:
    """Return a graph's operators as a plan holds them.

    Raises
    ------
    PlanError
        If something cannot be written in a plan, such as an attribute that is infinite; names
        every such operator.
    """
    written: list[schema.Operator] = []
    refused: list[str] = []
    for operator in graph.operators:
        try:
            written.append(_operator(operator, graph))
        except ValidationError as error:
            refused += [
                f"{'.'.join(map(str, mistake['loc']))} of operator '{operator.name}' "
                f"{mistake['msg']}, and is {mistake['input']!r}"
                for mistake in error.errors(include_url=False)
            ]
    if refused:
        raise PlanError(
            f"{graph.source.name}: no plan can be written, since {'; '.join(refused)}; change the "
            "model there"
        )
    return tuple(written)


def _operator(operator: operator_graph.Operator, graph: OperatorGraph) -> schema.Operator:
    names = dict.fromkeys(name for name in operator.inputs if name in graph.constants)
    with_parts = {folded.id for part in operator.parts for folded in part.folded}
    return schema.Operator(
        id=operator.id,
        name=operator.name,
        domain=operator.domain,
        type=operator.type,
        attributes=operator.attributes,
        members=operator.members,
        inputs=operator.inputs,
        outputs=operator.outputs,
        constants=tuple(_constant(graph.constants[name]) for name in names),
        opaque=True if operator.opaque else None,
        parts=tuple(_operator(part, graph) for part in operator.parts),
        folded=tuple(
            _operator(folded, graph) for folded in operator.folded if folded.id not in with_parts
        ),
    )


def _constant(constant: operator_graph.Constant) -> schema.Constant:
    return schema.Constant(
        name=constant.name,
        shape=constant.shape,
        dtype=constant.dtype,
        recipe=schema.Computed(kind="computed", nodes=constant.nodes)
        if constant.nodes
        else schema.Initializer(kind="initializer"),
    )


def _processors(platform: Platform, configuration: Configuration) -> Iterator[schema.Processor]:
    """Yield the processors used, in the platform's order."""
    for p in sorted(p for stage in configuration.stages for p in stage.processors):
        processor = platform.processors[p]
        yield schema.Processor(
            name=processor.name,
            kind=processor.kind,
            backend=processor.backend,
            cores=tuple(processor.cores),
            operating_point=schema.OperatingPoint(
                frequency_hz=processor.point.frequency_hz, voltage_v=processor.point.voltage_v
            ),
        )


def _stages(
    graph: OperatorGraph, platform: Platform, costs: CostTable, configuration: Configuration
) -> Iterator[schema.Stage]:
    for index, stage in enumerate(configuration.stages):
        yield schema.Stage(
            index=index,
            processors=tuple(
                schema.StageProcessor(
                    name=platform.processors[p].name,
                    operators=tuple(
                        schema.PlacedOperator(
                            operator=graph.operators[at.operator].id,
                            start_s=at.start_s,
                            end_s=at.end_s,
                            lag=index,
                            energy_j=costs.energy_j(at.operator, at.processor),
                        )
                        for at in _in_order(stage.placements, p)
                    ),
                )
                for p in stage.processors
            ),
            time_s=stage.time_s,
        )


def _in_order(placements: Iterable[Placement], processor: int) -> list[Placement]:
    """Return what a processor runs, in its order; operators that take no time go first."""
    mine = (at for at in placements if at.processor == processor)
    return sorted(mine, key=lambda at: (at.start_s, at.end_s, at.operator))


def _transfers(
    graph: OperatorGraph, platform: Platform, costs: CostTable, configuration: Configuration
) -> Iterator[schema.Transfer]:
    """Yield one transfer for each tensor and pair of processors, by name.

    A processor belongs to one stage, so all readers on it are equally far from the maker.
    """
    at = {
        placement.operator: (stage, placement.processor)
        for stage, entry in enumerate(configuration.stages)
        for placement in entry.placements
    }
    routes = {
        (name, *at[producer], *at[reader])
        for name, producer in graph.producer.items()
        for reader in graph.consumers.get(name, ())
        if at[producer][1] != at[reader][1]
    }
    moves = {
        (move.tensor, move.target): {
            "occupies": platform.resources[move.resource],
            "start_s": move.start_s,
            "end_s": move.end_s,
        }
        for stage in configuration.stages
        for move in stage.moves
    }
    for name, made_in, source, read_in, target in sorted(routes):
        yield schema.Transfer.model_validate(
            {
                "tensor": name,
                "from": platform.processors[source].name,
                "to": platform.processors[target].name,
                "kind": "within-stage" if made_in == read_in else "stage",
                "size_bytes": graph.tensors[name].size_bytes,
                "time_s": costs.transfer_s(name, source, target),
                "queue_depth": channel_depth(made_in, read_in),
                **moves.get((name, target), {}),
            }
        )


def _predicted(costs: CostTable, configuration: Configuration) -> schema.Predicted:
    return schema.Predicted(
        latency_s=configuration.latency_s,
        period_s=configuration.period_s,
        sustained_period_s=configuration.sustained_period_s,
        throughput_fps=configuration.throughput_fps,
        energy_j=configuration.energy_j,
        board_energy_j=configuration.board_energy_j,
        input_s=configuration.input_s,
        output_s=configuration.output_s,
        coverage=_coverage(costs, configuration),
    )


def _coverage(costs: CostTable, configuration: Configuration) -> schema.Coverage:
    """Return where the times of the operators come from, each on the processor that runs it."""
    parts = [
        part
        for stage in configuration.stages
        for at in stage.placements
        if (cost := costs.cost(at.operator, at.processor)) is not None
        for part in cost.parts
    ]
    share = coverage_of({"plan": parts}).overall.time
    return schema.Coverage(measured=share.measured, fitted=share.fitted, nominal=share.nominal)
