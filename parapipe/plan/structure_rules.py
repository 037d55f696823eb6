"""Rules on what a plan says of the network and of its transfers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations
from math import ceil, isfinite

from parapipe.files.mistakes import listed
from parapipe.graph.operator_graph import size_in_bytes
from parapipe.plan.mapped import Edge, MappedPlan, producers, route_of
from parapipe.plan.schema import Constant, Operator, Plan, Transfer

Route = tuple[str, str, str]
LEAST_SLOTS = 2
ROUNDING = 1e-9  # share of a period by which sums of times may be off


def least_depth(producer_lag: int, consumer_lag: int) -> int:
    """Slots that a channel needs so that every stage can keep the pace of the longest one.

    A slot is held from the start of the operator that makes the tensor to the end of the last one
    on the target that reads it. Let the stages keep step, a frame entering every T seconds, T being
    the longest stage. Then frame n's tensor is made from (n + producer lag) T on, and its readers
    have ended by (n + consumer lag + 1) T. So its slot is held for at most
    d = consumer lag - producer lag + 1 periods: when frame n + d is to be made, it is free, and d
    slots are enough. With fewer the producer would have to wait. Between neighbouring stages d = 2:
    one slot is filled while the other is read. For each stage that a tensor skips, one more frame
    is under way. Within a stage d = 1 would do for a period of T, but producer and consumer could
    never work at the same time, as the sustained period supposes: hence two at least. If r
    processors take turns on the readers' stage, these have ended r - 1 periods later: their lag
    then counts so much more.
    """
    return max(LEAST_SLOTS, consumer_lag - producer_lag + 1)


def transfer_violations(view: MappedPlan, tolerance_s: float) -> Iterator[str]:
    """Yield what is wrong with the transfers of a plan.

    The rules: a tensor has one transfer to each other processor that reads it, and no more; the
    transfer says rightly whether it stays within a stage; its queue holds as many frames as the lag
    between maker and readers asks for, two at least.

    Who names what it occupies gives start and end, and nobody else does; that is the sender, the
    receiver, or no processor of the plan; it lasts as long as the transfer takes, within the
    receiving stage; it starts when the tensor is made, or with the stage if an earlier one makes
    it, and ends before it is read; and what one stage needs of a processor or a link follows one
    behind the other. Where a stage works on several frames all this holds modulo the period.
    """
    counts = Counter(map(route_of, view.plan.transfers))
    for route, users in sorted(view.users.items()):
        if route not in counts:
            readers = listed([f"'{view.id(edge.read)}'" for edge in users])
            yield f"{_route_text(route)} has no transfer, and {readers} there reads it"
    for route, count in sorted(counts.items()):
        if count > 1:
            yield f"{_route_text(route)} has {count} transfers"
        if route not in view.users:
            yield f"{_route_text(route)} has a transfer, and nothing there reads it from there"
    for transfer in view.plan.transfers:
        yield from _channel_violations(view, transfer)
    for transfer in view.plan.transfers:
        fields = [
            each is not None for each in (transfer.occupies, transfer.start_s, transfer.end_s)
        ]
        if any(fields) and not all(fields):
            yield f"{_transfer_text(transfer)} gives some of occupies, start_s and end_s, not all"
    busy = list(_busy_times(view))
    for each in busy:
        yield from _busy_violations(view, each, tolerance_s)
    yield from _overlap_violations(view, busy, tolerance_s)


def work_s(view: MappedPlan) -> dict[str, float]:
    """Seconds that each processor and each shared link is busy for a frame, replicas on average."""
    busy_s = dict.fromkeys(view.resources, 0.0)
    for at in view.placements.values():
        turns = len(view.replicas.get(view.name(at), (0,)))
        busy_s[view.name(at)] += (at.end_s - at.start_s) / turns
    for transfer in view.plan.transfers:
        if transfer.occupies is not None:
            busy_s[transfer.occupies] += transfer.time_s
    return busy_s


def serves_several_stages(view: MappedPlan) -> bool:
    """Tell whether a processor or a link is kept busy for more than one stage."""
    served = {view.resources[p]: {stage} for p, stage in view.stage_of.items()}
    for each in _busy_times(view):
        served.setdefault(each.resource, set()).add(each.stage)
    return any(len(stages) > 1 for stages in served.values())


def _route_text(route: Route) -> str:
    return f"tensor '{route[0]}' from '{route[1]}' to '{route[2]}'"


def _transfer_text(transfer: Transfer) -> str:
    return f"the transfer of {_route_text(route_of(transfer))}"


def _channel_violations(view: MappedPlan, transfer: Transfer) -> Iterator[str]:
    label = _transfer_text(transfer)
    users = view.users.get(route_of(transfer))
    if not users:
        return
    within = all(view.stage(edge.made) == view.stage(edge.read) for edge in users)
    kind = "within-stage" if within else "stage"
    if transfer.kind != kind:
        yield f"{label} is of kind '{transfer.kind}' and should be of kind '{kind}'"
    depth = least_slots(view, transfer)
    if transfer.queue_depth < depth:
        yield f"{label} has a queue of {transfer.queue_depth}, and needs {depth}"


def least_slots(view: MappedPlan, transfer: Transfer) -> int:
    """Return the slots that a transfer needs at least, with whatever reads what it brings."""
    return max(slots_needed(view, edge) for edge in view.users[route_of(transfer)])


def slots_needed(view: MappedPlan, edge: Edge) -> int:
    """Slots that a tensor is held in at once; see `least_depth`."""
    producer, reader = edge.made, edge.read
    periods = (reader.end_s - producer.start_s) / view.plan.predicted.period_s - ROUNDING
    if isfinite(periods) and (view.repeats(producer) or view.repeats(reader)):
        return max(LEAST_SLOTS, reader.lag - producer.lag + ceil(periods))
    return least_depth(producer.lag, view.last_lag(reader))


@dataclass(frozen=True, slots=True)
class _Busy:
    """What keeps a resource busy: a transfer, or for comparison an operator, of a stage."""

    resource: str
    stage: int
    start_s: float
    end_s: float
    label: str
    transfer: Transfer | None = None


def _busy_times(view: MappedPlan) -> Iterator[_Busy]:
    stage_of = {view.resources[p]: stage for p, stage in view.stage_of.items()}
    for each in view.plan.transfers:
        if each.occupies and each.target in stage_of:
            times = each.start_s, each.end_s
            if times[0] is not None and times[1] is not None:
                stage = stage_of[each.target]
                yield _Busy(each.occupies, stage, times[0], times[1], _transfer_text(each), each)


def _busy_violations(view: MappedPlan, busy: _Busy, tolerance_s: float) -> Iterator[str]:
    transfer, label = busy.transfer, busy.label
    assert transfer is not None
    third = busy.resource not in (transfer.source, transfer.target)
    if third and busy.resource in {processor.name for processor in view.plan.processors}:
        yield f"{label} occupies '{busy.resource}', which it neither leaves nor reaches"
    if abs(busy.end_s - busy.start_s - transfer.time_s) > tolerance_s:
        lasts_s = busy.end_s - busy.start_s
        yield f"{label} lasts {lasts_s:.9g} s, and takes {transfer.time_s:.9g} s"
    for edge in view.users.get(route_of(transfer), ()):
        yield from _timing_violations(view, busy, transfer, edge, tolerance_s)


def _timing_violations(
    view: MappedPlan, busy: _Busy, transfer: Transfer, edge: Edge, tolerance_s: float
) -> Iterator[str]:
    """Check that a transfer starts when its tensor is made, and ends before it is read."""
    producer, reader, period_s = edge.made, edge.read, view.plan.predicted.period_s
    ready_s, read_s = producer.end_s, reader.start_s
    waits = view.stage(producer) == view.stage(reader)
    if view.repeats(producer) or view.repeats(reader):
        turn = view.turn(transfer)
        ready_s -= (turn - producer.lag) * period_s
        read_s += (reader.lag - turn) * period_s
        waits = True
    if view.repeats(reader):
        if busy.start_s >= period_s:
            yield (
                f"{busy.label} starts at {busy.start_s:.9g} s, and its stage repeats every "
                f"{period_s:.9g} s"
            )
    elif busy.end_s > (stage_s := view.plan.stages[view.stage(reader)].time_s) + tolerance_s:
        yield f"{busy.label} ends at {busy.end_s:.9g} s, and its stage takes {stage_s:.9g} s"
    if waits and busy.start_s < ready_s - tolerance_s:
        yield f"{busy.label} starts at {busy.start_s:.9g} s, and it is made at {ready_s:.9g} s"
    if read_s < busy.end_s - tolerance_s:
        yield (
            f"operator '{view.id(reader)}' starts at {read_s:.9g} s, and {busy.label} ends at "
            f"{busy.end_s:.9g} s"
        )


def _overlap_violations(view: MappedPlan, busy: list[_Busy], tolerance_s: float) -> Iterator[str]:
    work: dict[tuple[str, int], list[_Busy]] = {}
    stage_of = {view.resources[p]: stage for p, stage in view.stage_of.items()}
    for each in busy:
        # A processor that works on several frames takes what other stages ask of it likewise.
        own = stage_of.get(each.resource, each.stage)
        stage = own if own in view.interleaved else each.stage
        work.setdefault((each.resource, stage), []).append(each)
    for (name, stage), moved in work.items():
        run = [
            _Busy(name, stage, at.start_s, at.end_s, f"operator '{operator}'")
            for operator, at in view.placements.items()
            if view.name(at) == name and view.stage(at) == stage
        ]
        period_s = view.plan.predicted.period_s if stage in view.interleaved else 0.0
        for one, other in [*combinations(moved, 2), *((a, b) for a in moved for b in run)]:
            if _overlap_s(one, other, period_s) > tolerance_s:
                yield f"{one.label} and {other.label} keep '{name}' busy at the same time"


def _overlap_s(one: _Busy, other: _Busy, period_s: float) -> float:
    """Return seconds that two have in common, either one also a period later."""
    return max(
        min(one.end_s, other.end_s + shift_s) - max(one.start_s, other.start_s + shift_s)
        for shift_s in {-period_s, 0.0, period_s}
    )


def structure_violations(plan: Plan) -> Iterator[str]:
    """Yield what is wrong with the operators and tensors of a plan.

    The rules: names are unique; tensors have a known type and the bytes of their shape; every
    input of an operator is a tensor, declared and made before it (a graph input always is), or a
    constant, declared by the operator; a constant is the same wherever it is declared; a tensor
    is made once, and graph inputs by no operator; every graph output is made; a fused operator's
    parts make what it makes, from what it reads.
    """
    yield from _name_violations(plan)
    yield from _size_violations(plan)
    yield from _order_violations(plan)
    yield from _boundary_violations(plan)
    for operator in plan.operators:
        yield from _operator_violations(operator, plan)
        yield from _part_violations(operator, plan)
        yield from _folding_violations(operator)
    yield from _constant_violations(plan)


def repetitions(names: Iterable[str]) -> list[str]:
    """Names that stand more than once, sorted."""
    return sorted(name for name, count in Counter(names).items() if count > 1)


def _name_violations(plan: Plan) -> Iterator[str]:
    named = {
        "operators have the id": (operator.id for operator in plan.operators),
        "graph inputs have the name": plan.inputs,
        "graph outputs have the name": plan.outputs,
    }
    for what, names in named.items():
        for name in repetitions(names):
            yield f"two {what} '{name}'"
    outputs = (name for operator in plan.operators for name in operator.outputs if name)
    for name in repetitions(outputs):
        yield f"tensor '{name}' is made twice"


def _size_violations(plan: Plan) -> Iterator[str]:
    for name, tensor in plan.tensors.items():
        size_bytes = size_in_bytes(tensor.shape, tensor.dtype)
        if size_bytes is None:
            yield f"tensor '{name}' is of the unknown type '{tensor.dtype}'"
        elif tensor.size_bytes != size_bytes:
            yield (
                f"tensor '{name}' has {size_bytes} bytes by its shape and type, and the plan says "
                f"{tensor.size_bytes}"
            )


def _order_violations(plan: Plan) -> Iterator[str]:
    """Operators stand in topological order: a runtime may set them up one by one."""
    makers = producers(plan)
    seen = set(plan.inputs)
    for operator in plan.operators:
        for name in dict.fromkeys(operator.inputs):
            if name in plan.tensors and name not in seen:
                why = (
                    f"which only '{makers[name]}' makes"
                    if name in makers
                    else "which nothing makes"
                )
                yield f"operator '{operator.id}' reads '{name}', {why}"
        seen.update(operator.outputs)


def _boundary_violations(plan: Plan) -> Iterator[str]:
    producer_of = producers(plan)
    for name in plan.inputs:
        if name not in plan.tensors:
            yield f"graph input '{name}' is no tensor of the plan"
        if name in producer_of:
            yield f"graph input '{name}' is made by operator '{producer_of[name]}'"
    for name in plan.outputs:
        if name not in plan.tensors:
            yield f"graph output '{name}' is no tensor of the plan"
        elif name not in producer_of and name not in plan.inputs:
            yield f"graph output '{name}' is made by no operator"


def _operator_violations(operator: Operator, plan: Plan) -> Iterator[str]:
    first = next((name for name in operator.outputs if name), None)
    if operator.id != first:
        yield f"operator '{operator.id}' should have its first output, '{first}', for an id"
    for name in operator.outputs:
        if name and name not in plan.tensors:
            yield f"operator '{operator.id}' makes '{name}', which is no tensor of the plan"
    yield from _input_violations(operator, f"'{operator.id}'", plan)


def _input_violations(operator: Operator, label: str, plan: Plan) -> Iterator[str]:
    """Every input is a tensor or a declared constant, not both; no constant is idle."""
    constants = [constant.name for constant in operator.constants]
    for name in repetitions(constants):
        yield f"operator {label} declares constant '{name}' twice"
    for name in dict.fromkeys(constants):
        if name not in operator.inputs:
            yield f"operator {label} declares constant '{name}' and does not read it"
        if name in plan.tensors:
            yield f"operator {label} declares constant '{name}', which is a tensor of the plan"
    for name in dict.fromkeys(operator.inputs):
        if name and name not in plan.tensors and name not in constants:
            yield (
                f"operator {label} reads '{name}', which is neither a tensor of the plan nor a "
                "constant that it declares"
            )


def _part_violations(operator: Operator, plan: Plan) -> Iterator[str]:
    if not operator.parts:
        return
    available = set(operator.inputs)
    for part in operator.parts:
        label = f"'{part.id}' within '{operator.id}'"
        yield from _input_violations(part, label, plan)
        for name in dict.fromkeys(part.inputs):
            if name in plan.tensors and name not in available:
                yield (
                    f"operator {label} reads '{name}', which is neither made by a part before "
                    "it nor read by the whole"
                )
        for name in part.outputs:
            if name and name not in plan.tensors:
                yield f"operator {label} makes '{name}', which is no tensor of the plan"
        available.update(part.outputs)
    results = {name for part in operator.parts for name in part.outputs}
    for name in operator.outputs:
        if name and name not in results:
            yield f"operator '{operator.id}' makes '{name}', which none of its parts makes"


def _folding_violations(operator: Operator) -> Iterator[str]:
    """Only one input of a folded operator may be an activation: all else is known beforehand."""
    for single in (operator, *operator.parts):
        for folded in single.folded:
            declared = {constant.name for constant in folded.constants}
            activations = [name for name in folded.inputs if name and name not in declared]
            if len(activations) > 1:
                names = listed([f"'{name}'" for name in activations])
                yield (
                    f"operator '{folded.id}', folded into '{operator.id}', reads {names}: all but "
                    "one must be constants that it declares"
                )


def _constant_violations(plan: Plan) -> Iterator[str]:
    first: dict[str, Constant] = {}
    for operator in plan.operators:
        for constant in _declared_constants(operator):
            if first.setdefault(constant.name, constant) != constant:
                yield (
                    f"constant '{constant.name}' of operator '{operator.id}' is declared "
                    "differently elsewhere"
                )


def _declared_constants(operator: Operator) -> Iterator[Constant]:
    yield from operator.constants
    for inner in (*operator.parts, *operator.folded):
        yield from _declared_constants(inner)
