"""A plan and its model become the steps of an exported folder, or a list of what has no form."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from math import prod

from parapipe.cost.signature import signature_of
from parapipe.errors import ExportError
from parapipe.export.constants import Constants, Network
from parapipe.files.mistakes import listed, listed_sentences
from parapipe.graph.work import operator_class
from parapipe.plan import schema
from parapipe.plan.mapped import mapping_view, network_of
from parapipe.plan.plan_lives import PlanLives
from parapipe.plan.records import MemoryLayout, PlacedBuffer, PredictedTimes
from parapipe.plan.schema import Operator, Plan, Processor, StageProcessor
from parapipe.targets.native import (
    convolution,
    functions,
    layout,
    library_plan,
    loops,
    product,
    windows,
)
from parapipe.targets.native.backends import BACKENDS, BackendName, backends_of
from parapipe.targets.native.functions import own_form
from parapipe.targets.native.library_plan import (
    ACTIVATIONS,
    MOST_DIMENSIONS,
    Arena,
    Memory,
    Place,
    ProfileRow,
)
from parapipe.targets.native.residuals import merge_residuals
from parapipe.targets.native.steps import NotExportable, Rule, Steps, require, stored

ITEM_BYTES = 4
"""Of float32."""
ELEMENT_BY_ELEMENT = frozenset(
    {"Add", "Sub", "Mul", "Div", "Max", "Min", "PRelu", "Exp", "Log", "Neg", *ACTIVATIONS}
)
"""Steps that may write over one of their operands."""


def arena_of(plan: Plan, into: Steps) -> Arena | None:
    """Return the places of those tensors that stand in the steps as they do in the plan.

    What steps make among themselves has none, and neither has what the plan copies to another
    memory: the runner copies at another time.
    """
    if plan.memory is None:
        return None
    network = network_of(plan, with_work=False)
    lives = PlanLives(plan, network, plan.memory.system)
    number = {operator.id: v for v, operator in enumerate(network.operators)}
    return Arena(
        points=lives.period,
        memories=tuple(
            Memory(name=each.name, size_bytes=each.size_bytes) for each in plan.memory.arenas
        ),
        places=tuple(_places(plan, plan.memory, into, number, lives)),
        spans={step.id: lives.turns[number[step.source or step.id]] for step in into.steps},
    )


def _places(
    plan: Plan, layout: MemoryLayout, into: Steps, number: Mapping[str, int], lives: PlanLives
) -> Iterator[Place]:
    users = _tensor_users(into, number, lives)
    inputs = {name: plan.tensors[name].shape for name in plan.inputs}
    shapes = inputs | into.shapes
    steps_of = _steps_of_operators(into)
    maker = {name: operator.id for operator in plan.operators for name in operator.outputs}
    for each in plan.buffers:
        there = [p for p in each.processors if p in users.get(each.tensor, ())]
        arena = next(a for a in layout.arenas if each.processors[0] in a.processors)
        keeps_place = (
            each.content != "copy"
            and there[:1] == [each.processors[0]]
            and _fits_buffer(each, prod(shapes[each.tensor]) * ITEM_BYTES, arena.alignment_bytes)
            and (each.over is None or _writes_over(steps_of[maker[each.tensor]]))
        )
        if keeps_place:
            yield Place(
                tensor=each.tensor,
                processors=tuple(there),
                memory=arena.name,
                offset_bytes=each.offset_bytes,
            )


def _tensor_users(into: Steps, number: Mapping[str, int], lives: PlanLives) -> dict[str, set[str]]:
    """Return the processors whose steps read or make each tensor."""
    names, at = lives.view.resources, lives.view.mapping.at
    users: dict[str, set[str]] = {}
    for step in into.steps:
        processor = names[at[number[step.source or step.id]].processor]
        for name in (*step.inputs, *step.outputs):
            users.setdefault(name, set()).add(processor)
    return users


def _fits_buffer(buffer: PlacedBuffer, size_bytes: int, alignment_bytes: int) -> bool:
    aligned = -(-size_bytes // alignment_bytes) * alignment_bytes
    return aligned == buffer.size_bytes and not any(at % ITEM_BYTES for at in buffer.offset_bytes)


def _writes_over(steps: Sequence[library_plan.Operator]) -> bool:
    return len(steps) == 1 and steps[0].type in ELEMENT_BY_ELEMENT


RULES: dict[str, Rule] = {
    **convolution.RULES,
    **windows.RULES,
    **product.RULES,
    **functions.RULES,
    **layout.RULES,
}


_FLOATS_ONLY = "and only float32 is exported"


_INTEGERS = frozenset({"int64", "int32", "uint8", "int8", "bool"})


def lower_plan(
    plan: Plan, constants: Constants, backends: Mapping[str, BackendName] | None = None
) -> Steps:
    """Return what the operators of a plan become.

    Parameters
    ----------
    backends
        Back end of each processor, by its name; those that the processors name if not given.

    Raises
    ------
    ExportError
        If operators or processors have no form in the library; it names all of them and says why.
    """
    backends = backends_of(plan) if backends is None else backends
    into = Steps(plan, constants, _backends_of_operators(plan, backends))
    obstacles = [*_plan_obstacles(plan, backends)]
    offenders = list(unexportable(plan, into))
    if offenders:
        count = "1 operator" if len(offenders) == 1 else f"{len(offenders)} operators"
        named = [
            f"'{v.name}' ({'.'.join(filter(None, (v.domain, v.type)))}): {why}"
            for v, why in offenders
        ]
        obstacles.append(f"{count} cannot be exported: {listed_sentences(named)}")
    if obstacles:
        raise ExportError(
            f"{plan.model.name}: {'; '.join(obstacles)}; change the model there, or export to "
            "onnxruntime",
            [operator.id for operator, _ in offenders],
        )
    merge_residuals(plan, into, backends)
    into.keep_used()
    return into


def _backends_of_operators(
    plan: Plan, backends: Mapping[str, BackendName]
) -> dict[str, BackendName]:
    view = mapping_view(plan)
    return {
        operator: backends[name]
        for operator, at in view.placements.items()
        if (name := view.name(at)) in backends
    }


def unexportable(network: Network, into: Steps) -> Iterator[tuple[Operator, str]]:
    """Add the steps of all operators; yield those that have no form in the library, and why."""
    for operator in network.operators:
        try:
            into.begin(operator)
            _lower_operator(operator, into)
        except NotExportable as reason:
            yield operator, str(reason)


def _plan_obstacles(plan: Plan, backends: Mapping[str, BackendName]) -> Iterator[str]:
    odd = [f"'{p.name}' ({p.kind})" for p in plan.processors if p.name not in backends]
    if odd:
        yield f"the library runs on CPUs and GPUs, and the plan uses {listed(odd)}"
    gpus = {name for name, each in backends.items() if each == "opencl"}
    if any(p.stream and p.name in gpus for p in plan.processors):
        yield "ARM Compute Library drives a GPU by one queue, and the plan has streams of it"
    taking_turns = (p for stage in plan.stages for p in stage.processors if p.replicas)
    if odd := sorted(p.name for p in taking_turns if p.name in gpus):
        yield (
            "ARM Compute Library drives one GPU, and others take turns with "
            f"{listed([repr(name) for name in odd])}"
        )
    if plan.states:
        yield "the runner hands nothing on from frame to frame, and the plan has states"
    placed = (at for stage in plan.stages for p in stage.processors for at in p.operators)
    if (lag := max(at.lag for at in placed)) > library_plan.MOST_LAG:
        yield (
            f"an operator lags {lag} periods behind the frame's entry, and the runner takes "
            f"{library_plan.MOST_LAG} at most"
        )


def rules_for(into: Steps) -> Mapping[str, Rule]:
    """Return the rules of the back end of the operator that was begun."""
    return RULES | loops.RULES if into.complete else RULES


def _lower_operator(operator: Operator, into: Steps) -> None:
    """Add the steps of an operator; activations of a fused one go to the step before."""
    require(not operator.computes_in, f"it computes in {operator.computes_in}, {_FLOATS_ONLY}")
    for position, part in enumerate(operator.parts or (operator,)):
        try:
            _refuse_unsupported(part, into)
            form = own_form(part, into) if position else None
            if form and into.activate(part.inputs[0], part.outputs[0], form[0], **form[1]):
                continue
            rules_for(into)[part.type].lower(part, into)
        except NotExportable as reason:
            raise NotExportable(
                f"{part.type} in it: {reason}" if operator.parts else reason
            ) from None


def _refuse_unsupported(operator: Operator, into: Steps) -> None:
    """Refuse what no rule takes."""
    require(not operator.domain, "the library knows no operators of this domain")
    require(operator.opaque is None, "the library has no control flow")
    rules = rules_for(into)
    require(operator.type in rules, "the library has no such function")
    rule = rules[operator.type]
    tensors = [
        name
        for name in (*operator.inputs, *operator.outputs)
        if name and not into.is_constant(name)
    ]
    taken = {"float32", *(_INTEGERS if rule.integers else ())}
    odd = sorted({dtype for name in tensors if (dtype := into.dtype(name)) not in taken})
    require(not odd, f"it is of type {', '.join(odd)}, {_FLOATS_ONLY}")
    shapes = [into.shape(name) for name in tensors]
    require(all(all(shape) for shape in shapes), "it has a tensor without elements")
    many = max((len(shape) for shape in shapes), default=0)
    require(
        rule.dimensions or many <= MOST_DIMENSIONS,
        f"it has {many} dimensions, and the library has {MOST_DIMENSIONS}",
    )


def library_plan_of(
    plan: Plan,
    into: Steps,
    file: library_plan.WeightsFile,
    offsets: dict[str, int],
    backends: Mapping[str, BackendName],
) -> library_plan.LibraryPlan:
    """Return the `plan.json` of an exported folder.

    Parameters
    ----------
    offsets
        Where each constant starts in the weights file, in bytes.
    backends
        Back end of each processor, by its name.
    """
    channels_last = any(BACKENDS[name].channels_last for name in backends.values())
    inputs = {name: stored(plan.tensors[name].shape) for name in plan.inputs}
    weights = {name: weight.shape for name, weight in into.weights.items()}
    return library_plan.LibraryPlan(
        schema=library_plan.SCHEMA,
        model=schema.ModelFile(name=plan.model.name, sha256=plan.model.sha256),
        platform=plan.platform,
        weights=file,
        inputs=plan.inputs,
        outputs=plan.outputs,
        tensors={
            name: library_plan.Tensor(shape=shape, dtype="float32", offset=offsets.get(name))
            for name, shape in (inputs | into.shapes | weights).items()
        },
        operators=tuple(into.steps),
        processors=tuple(_processor(each, backends[each.name]) for each in plan.processors),
        stages=tuple(_stages(plan, into)),
        transfers=tuple(_transfers(plan, into)),
        predicted=PredictedTimes(
            **plan.predicted.model_dump(include=set(PredictedTimes.model_fields))
        ),
        profile={name: row for name, row in profile_rows(plan) if name not in _merged(into.steps)},
        arena=None if channels_last or mapping_view(plan).replicas else arena_of(plan, into),
    )


def _merged(steps: Sequence[library_plan.Operator]) -> frozenset[str]:
    """Return those operators of the plan that have no time of their own."""
    return frozenset(
        name
        for step in steps
        if step.includes is not None
        for name in (step.source or step.id, *step.includes)
    )


def _processor(processor: Processor, backend: BackendName) -> library_plan.Processor:
    gpu = processor.kind == "gpu"
    return library_plan.Processor(
        name=processor.name,
        backend=backend,
        cores=processor.cores,
        threads=1 if gpu else processor.threads,
        frequency_hz=processor.operating_point.frequency_hz,
    )


def _stages(plan: Plan, into: Steps) -> Iterator[library_plan.Stage]:
    steps_of = _steps_of_operators(into)
    for stage in plan.stages:
        yield library_plan.Stage(
            index=stage.index,
            processors=tuple(_stage_processor(each, steps_of) for each in stage.processors),
        )


def _steps_of_operators(into: Steps) -> dict[str, list[library_plan.Operator]]:
    """Return the steps that stand for each operator of the plan, by its id."""
    steps_of: dict[str, list[library_plan.Operator]] = {}
    for step in into.steps:
        steps_of.setdefault(step.source or step.id, []).append(step)
    return steps_of


def _stage_processor(
    processor: StageProcessor, steps_of: Mapping[str, Sequence[library_plan.Operator]]
) -> library_plan.StageProcessor:
    turns = [
        (step.id, at.lag) for at in processor.operators for step in steps_of.get(at.operator, ())
    ]
    lags = tuple(lag for _, lag in turns)
    return library_plan.StageProcessor(
        name=processor.name,
        replicas=processor.replicas,
        operators=tuple(step for step, _ in turns),
        lags=lags if len(set(lags)) > 1 else None,
    )


def _transfers(plan: Plan, into: Steps) -> Iterator[library_plan.Transfer]:
    """Yield the plan's transfers, but for what no step reads there: a size that is known by now."""
    view = mapping_view(plan)
    place = {operator: view.name(at) for operator, at in view.placements.items()}
    read = {(name, place[step.source or step.id]) for step in into.steps for name in step.inputs}
    for transfer in plan.transfers:
        if (transfer.tensor, transfer.target) in read:
            fields = transfer.model_dump(
                by_alias=True, include=set(library_plan.Transfer.model_fields)
            )
            yield library_plan.Transfer.model_validate(fields)


def profile_rows(plan: Plan) -> Iterator[tuple[str, ProfileRow]]:
    """Yield operators' ids and their rows; views, which take no time, have none."""
    graph = network_of(plan)
    for operator in graph.operators:
        first, *others = operator.singles
        kind = operator_class(first, graph)
        if kind != "view":
            row = {
                **asdict(signature_of(first, graph)),
                "class": kind,
                "macs": first.work.macs,
                "size_bytes": first.work.read_bytes + first.work.written_bytes,
                "then": " ".join(part.type for part in others),
            }
            yield operator.id, ProfileRow.model_validate(row)
