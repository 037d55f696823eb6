"""Builds a plan of a mapping, or of another plan with other numbers of slots in its channels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Mapping as ByKey
from math import inf

from pydantic import ValidationError

from parapipe.cost.cost_table import CostTable
from parapipe.cost.coverage import coverage_of
from parapipe.cost.precision import Cast, type_on_the_way
from parapipe.cost.price import PROVENANCES
from parapipe.errors import PlanError
from parapipe.files.mistakes import listed_sentences
from parapipe.graph import operator_graph
from parapipe.graph.operator_graph import Constant, OperatorGraph, Tensor
from parapipe.mappings.evaluate import Evaluated, priced_parts, settle
from parapipe.mappings.event_graph import PICOSECONDS
from parapipe.mappings.feedback import with_feedback
from parapipe.mappings.lifetimes import Storage
from parapipe.mappings.mapping import Mapping, Placement
from parapipe.mappings.service import service_of_frames
from parapipe.plan import schema
from parapipe.plan.co_run import co_run_of, sustained_co_run_s
from parapipe.plan.layout import laid_out
from parapipe.plan.mapped import COPIED, mapping_view, network_of, state_moved_bytes
from parapipe.plan.plan_lives import PlanLives
from parapipe.plan.power_rules import power_limit_s
from parapipe.plan.program import program
from parapipe.plan.records import Coverage, Predicted, State, Stream, WayBack
from parapipe.plan.schema import SCHEMA, Plan
from parapipe.plan.structure_rules import least_slots
from parapipe.plan.verify import verify_plan
from parapipe.platform.platform import Platform
from parapipe.version import __version__


def build_plan(
    graph: OperatorGraph,
    platform: Platform,
    costs: CostTable,
    mapping: Mapping,
    *,
    found: Evaluated | None = None,
    like: Plan | None = None,
    arena_bytes: ByKey[str, float] | None = None,
    arena_effort_s: float = inf,
) -> Plan:
    """Write a mapping down for a runtime, and verify what was written.

    Parameters
    ----------
    graph, platform, costs
        What the mapping was made for.
    found
        What the mapping takes, if that is at hand.
    like
        Another plan of the same graph: what it says of the graph itself is the same.
    arena_bytes, arena_effort_s
        As for `laid_out`.

    Raises
    ------
    PlanError
        As `plan_operators` does.
    VerificationError
        If the plan breaks a rule that runtimes rely on.
    """
    if found is None:
        mapping, found = settle(mapping, graph, costs)
    evaluated, effect = found, found.co_run
    predicted = Predicted.model_validate(evaluated, from_attributes=True)
    shares = coverage_of(priced_parts(mapping, costs))
    coverage = Coverage(
        **{name: each.time for name in PROVENANCES if (each := getattr(shares, name))}
    )
    plan = Plan(
        schema=SCHEMA,
        parapipe=__version__,
        model=_model(graph),
        models=_models(graph, mapping, evaluated) or None,
        platform=platform.name,
        precision=None if costs.precision == "model" else costs.precision,
        bandwidth_bytes_per_s=costs.bandwidth_bytes_per_s,
        inputs=graph.inputs,
        outputs=graph.outputs,
        tensors=like.tensors if like else plan_tensors(graph),
        operators=like.operators
        if like
        else plan_operators(graph, moved=costs.bandwidth_bytes_per_s is not None),
        processors=tuple(_processors(platform, costs, mapping)),
        stages=tuple(_stages(graph, platform, costs, mapping)),
        transfers=tuple(_transfers(graph, platform, costs, mapping)),
        predicted=predicted.model_copy(update={"coverage": coverage}),
        co_run=co_run_of(mapping, graph, costs, effect) if effect else None,
        states=tuple(_states(graph, platform, with_feedback(mapping, graph, costs))) or None,
        sequences=graph.sequences if graph.sequences > 1 else None,
    )
    lives = PlanLives(plan, graph, Storage.of(graph, costs).system)
    plan = laid_out(plan, lives, arena_bytes, arena_effort_s)
    verify_plan(plan, like, lives)
    return plan


def _model(graph: OperatorGraph) -> schema.Model:
    source, split = graph.source, None
    if source.split:
        split = schema.SplitModel(rules=source.split, granularity=graph.granularity)
    return schema.Model(
        name=source.name, sha256=source.sha256, external=source.external, split=split
    )


def _models(
    graph: OperatorGraph, mapping: Mapping, evaluated: Evaluated
) -> tuple[schema.PlannedModel, ...]:
    members = graph.source.members
    served = service_of_frames(mapping, graph, evaluated) if members else []
    return tuple(
        schema.PlannedModel(
            name=each.source.name,
            sha256=each.source.sha256,
            external=each.source.external,
            prefixes=tuple(map(each.prefix, range(each.frames))),
            come_s=come_s,
            latency_s=latency_s,
        )
        for each, (come_s, latency_s) in zip(members, served, strict=True)
    )


def plan_tensors(graph: OperatorGraph) -> dict[str, schema.Tensor]:
    """Return the tensors of a graph, as a plan says them."""
    return {
        tensor.name: schema.Tensor.model_validate(tensor, from_attributes=True)
        for tensor in graph.tensors.values()
    }


def plan_operators(graph: OperatorGraph, *, moved: bool = False) -> tuple[schema.Operator, ...]:
    """Return a graph's operators as a plan holds them.

    Parameters
    ----------
    moved
        Whether to state the bytes that they move where their types and tensors do not tell.

    Raises
    ------
    PlanError
        If something cannot be written in a plan, such as an attribute that is infinite; names
        every such operator.
    """
    written: list[schema.Operator] = []
    refused: list[str] = []
    declared: dict[str, Tensor | Constant] = {**graph.constants, **graph.tensors}
    for operator in graph.operators:
        try:
            entry = _operator(operator, graph)
            written.append(state_moved_bytes(entry, operator, declared) if moved else entry)
        except ValidationError as error:
            refused += [
                f"{'.'.join(map(str, mistake['loc']))} of operator '{operator.name}' "
                f"{mistake['msg']}, and is {mistake['input']!r}"
                for mistake in error.errors(include_url=False)
            ]
    if refused:
        raise PlanError(
            f"{graph.source.name}: no plan can be written, since {listed_sentences(refused)}; "
            "change the model there"
        )
    return tuple(written)


def _operator(operator: operator_graph.Operator, graph: OperatorGraph) -> schema.Operator:
    names = dict.fromkeys(name for name in operator.inputs if name in graph.constants)
    folded_into_parts = {folded.id for part in operator.parts for folded in part.folded}
    return schema.Operator(
        **{field: getattr(operator, field) for field in COPIED},
        constants=tuple(_constant(graph.constants[name]) for name in names),
        opaque=True if operator.opaque else None,
        computes_in=operator.computes_in or None,
        parts=tuple(_operator(part, graph) for part in operator.parts),
        folded=tuple(
            _operator(folded, graph)
            for folded in operator.folded
            if folded.id not in folded_into_parts
        ),
    )


def _constant(constant: operator_graph.Constant) -> schema.Constant:
    return schema.Constant(
        name=constant.name,
        shape=constant.shape,
        dtype=constant.dtype,
        stored=constant.stored or None,
        scale_bytes=constant.scale_bytes or None,
        recipe=schema.Computed(kind="computed", nodes=constant.nodes)
        if constant.nodes
        else schema.Initializer(kind="initializer"),
    )


def _processors(
    platform: Platform, costs: CostTable, mapping: Mapping
) -> Iterator[schema.Processor]:
    """Yield the processors used, in the platform's order."""
    for p in mapping.processors:
        processor = platform.processors[p]
        yield schema.Processor(
            name=processor.name,
            kind=processor.kind,
            backend=processor.backend,
            compiler=schema.CompilerTarget(**processor.compiler.model_dump())
            if processor.compiler
            else None,
            options=processor.options or None,
            cores=tuple(processor.cores),
            stream=Stream(of=processor.stream_of, count=processor.at_once)
            if processor.stream_of
            else None,
            operating_point=schema.OperatingPoint.model_validate(
                processor.point, from_attributes=True
            ),
            graph_launch_s=costs.graph_launch_s[p] if costs.graph_launch_s else None,
            data_type=costs.working[p],
        )


def _stages(
    graph: OperatorGraph, platform: Platform, costs: CostTable, mapping: Mapping
) -> Iterator[schema.Stage]:
    """Yield the stages; all that are made for one period are one, with several lags."""
    for index, group in enumerate(mapping.groups):
        lags = {stage.lag for stage in group}
        yield schema.Stage(
            index=index,
            processors=tuple(
                schema.StageProcessor(
                    name=platform.processors[p].name,
                    replicas=tuple(
                        platform.processors[q].name for q in mapping.replicas.get(p, ())[1:]
                    )
                    or None,
                    operators=tuple(
                        schema.PlacedOperator(
                            operator=graph.operators[at.operator].id,
                            start_s=at.start_s,
                            end_s=at.end_s,
                            lag=at.lag,
                            energy_j=costs.energy_j(at.operator, at.processor),
                            data_type=_wider_type(costs, at),
                        )
                        for at in mapping.orders[p]
                        if at.lag in lags
                    ),
                )
                for p in sorted({p for stage in group for p in stage.processors})
            ),
            time_s=mapping.period_s or max(s.time_s for s in group),
        )


def _wider_type(costs: CostTable, at: Placement) -> str | None:
    """Return the type that an operator computes in if that is not its processor's."""
    cost = costs.cost(at.operator, at.processor)
    data_type = cost.data_type if cost else None
    return None if data_type == costs.working[at.processor] else data_type


def _transfers(
    graph: OperatorGraph, platform: Platform, costs: CostTable, mapping: Mapping
) -> Iterator[schema.Transfer]:
    """Yield one transfer for each tensor and pair of processors, by name."""
    group_of = {p: i for i, g in enumerate(mapping.groups) for s in g for p in s.processors}
    ordered = sorted(
        enumerate(mapping.transfers),
        key=lambda each: (each[1].tensor, mapping.at[each[1].producer].lag, each[1].source,
                          each[1].lag, each[1].target),
    )  # fmt: skip
    for number, transfer in ordered:
        tensor = graph.tensors[transfer.tensor]
        _, size_bytes, cast = type_on_the_way(
            tensor, platform, transfer.source, transfer.target, costs.working
        )
        busy = {} if transfer.resource is None else {
            "occupies": platform.resources[transfer.resource],
            "start_s": transfer.start_s,
            "end_s": transfer.end_s,
        }  # fmt: skip
        yield schema.Transfer.model_validate(
            {
                "tensor": transfer.tensor,
                "from": platform.processors[transfer.source].name,
                "to": platform.processors[transfer.target].name,
                "kind": "within-stage"
                if group_of[transfer.source] == group_of[transfer.target]
                else "stage",
                "size_bytes": size_bytes,
                "time_s": transfer.time_s,
                "cast": _cast(cast, platform),
                "queue_depth": mapping.channel_slots[number],
                **busy,
            }
        )


def _states(graph: OperatorGraph, platform: Platform, mapping: Mapping) -> Iterator[State]:
    for state in graph.states:
        ways: dict[tuple[int, int], float] = {}
        for each in mapping.feedback:
            if each.state == state.input and each.time_s:
                ends = mapping.at[each.producer].processor, mapping.at[each.consumer].processor
                ways[ends] = each.time_s
        yield State(
            input=state.input,
            output=state.output,
            kind=state.kind,
            ways_back=tuple(
                WayBack.model_validate(
                    {"from": platform.names[p], "to": platform.names[q], "time_s": time_s}
                )
                for (p, q), time_s in sorted(ways.items())
            ),
        )


def _cast(cast: Cast | None, platform: Platform) -> schema.Cast | None:
    if cast is None:
        return None
    return schema.Cast.model_validate({
        "from": cast.source_type,
        "to": cast.target_type,
        "operator": cast.operator,
        "processor": platform.names[cast.processor],
        "time_s": cast.time.value,
    })  # fmt: skip


def fewest_slots(plan: Plan) -> tuple[int, ...]:
    """Return the slots that each transfer of a plan needs at least."""
    view = mapping_view(plan)
    return tuple(least_slots(view, transfer) for transfer in plan.transfers)


def with_slots(plan: Plan, slots: Sequence[int]) -> Plan:
    """Return a plan whose channels have so many slots, all else as it is said."""
    transfers = tuple(
        each.model_copy(update={"queue_depth": depth})
        for each, depth in zip(plan.transfers, slots, strict=True)
    )
    return plan.model_copy(update={"transfers": transfers})


def rebuild_with_slots(plan: Plan, slots: Sequence[int]) -> Plan:
    """Return the same with what follows from the slots: sustained period and offsets of buffers.

    Raises
    ------
    VerificationError
        A channel has fewer slots than it needs.
    """
    changed = with_slots(plan, slots)
    tasks, memory_s = program(changed), plan.predicted.memory_s or 0.0
    least_s = max(memory_s, power_limit_s(plan))
    sustained_s = max(float(tasks.graph.period_ps() / PICOSECONDS), least_s)
    co_run, slowed_s = plan.co_run, sustained_s
    if co_run:
        free = co_run.free.model_copy(update={"sustained_period_s": sustained_s})
        co_run = co_run.model_copy(update={"free": free})
        slowed_s = max(sustained_s, sustained_co_run_s(changed, tasks))
    predicted = plan.predicted.model_copy(update={"sustained_period_s": slowed_s})
    changed = changed.model_copy(update={"predicted": predicted, "co_run": co_run})
    if plan.memory is not None:
        network = network_of(changed, with_work=False)
        changed = laid_out(changed, PlanLives(changed, network, plan.memory.system))
    verify_plan(changed)
    return changed
