"""The independent verifier: checks a plan by itself, knowing nothing of how it was made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import ulp

from parapipe.cost.precision import CHAINS, cast_operator, narrower, type_there
from parapipe.errors import VerificationError
from parapipe.graph.operator_graph import size_in_bytes
from parapipe.plan.co_run_rules import co_run_violations
from parapipe.plan.launch_rules import launch_violations
from parapipe.plan.mapped import MappedPlan, mapping_view, producers
from parapipe.plan.memory_rules import memory_violations
from parapipe.plan.memory_traffic import traffic_violations
from parapipe.plan.model_rules import model_violations
from parapipe.plan.placement_rules import placement_violations
from parapipe.plan.plan_lives import PlanLives
from parapipe.plan.power_rules import power_limit_s, power_violations
from parapipe.plan.schema import Operator, Plan, Processor, Tensor, Transfer
from parapipe.plan.state_rules import loop_s, loop_work_s, state_violations
from parapipe.plan.structure_rules import (
    serves_several_stages,
    structure_violations,
    transfer_violations,
    work_s,
)


def cover_violations(plan: Plan) -> Iterator[str]:
    """Yield what is wrong with the parts of a plan's split operators.

    The rules: a part has the size that the plan's rule for its operator gives it, or is cut to it,
    and the size of the whole result is the sum of all; what joins parts of a result takes them in
    their order, each once and none left out between, and makes as many elements as they have; the
    whole result is joined from the first part to the last.
    """
    if plan.model.split is None:
        return
    for rule in plan.model.split.rules:
        yield from _part_size_violations(rule, plan)
    operators = {operator.id: operator for operator in plan.operators}
    producer_of = {name: operators[v] for name, v in producers(plan).items() if v in operators}
    for operator in plan.operators:
        if operator.type == "Concat":
            yield from _join_violations(
                operator, [_part_of(name, producer_of) for name in operator.inputs], plan
            )


def _part_size_violations(rule: str, plan: Plan) -> Iterator[str]:
    """Check the parts of a rule `FIRST..LAST:AXIS=SIZES`, as `map` writes them, AXIS a number."""
    selector, _, shares = rule.rpartition("=")
    run, _, axis = selector.rpartition(":")
    *_, whole = run.rpartition("..")
    numbers = [axis, *shares.split(",")]
    if ".." not in run or "," not in shares or not all(map(str.isdecimal, numbers)):
        return
    sizes = [int(share) for share in shares.split(",")]
    part_sizes = {f"{whole}/part{number}": size for number, size in enumerate(sizes)}
    cuts = [each for each in plan.operators if each.type == "Slice"]
    for name, size in {**part_sizes, whole: sum(sizes)}.items():
        cut = (each.outputs[0] for each in cuts if each.inputs[0] == name != whole)
        shapes = [plan.tensors[each].shape for each in (name, *cut) if each in plan.tensors]
        extents = [sum(shape[int(axis) : int(axis) + 1]) for shape in shapes]
        if extents and size not in extents:
            yield (
                f"'{name}' has {extents[0]} elements along axis {axis}, and rule '{rule}' gives "
                f"it {size}"
            )


def _part_of(name: str, producer_of: Mapping[str, Operator]) -> tuple[str, int] | None:
    """Return the result that a tensor is a part of, or is cut from one, and the part's number."""
    producer = producer_of.get(name)
    for source in (name, *(producer.inputs[:1] if producer and producer.type == "Slice" else ())):
        whole, _, number = source.rpartition("/part")
        if whole and number.isdecimal():
            return whole, int(number)
    return None


def _join_violations(
    operator: Operator, parts: Sequence[tuple[str, int] | None], plan: Plan
) -> Iterator[str]:
    wholes = {part[0] for part in parts if part}
    if None in parts or len(wholes) != 1:
        return  # it joins other things than parts of one result
    (whole,) = wholes
    result = operator.outputs[0]
    if result != whole and not result.startswith(f"{whole}/"):
        return
    numbers = [part[1] for part in parts if part]
    if numbers != [*range(numbers[0], numbers[0] + len(numbers))]:
        yield f"operator '{operator.id}' joins the parts {numbers} of '{whole}'"
    axis = operator.attributes.get("axis", 0)
    shapes = {n: plan.tensors[n].shape for n in (*operator.inputs, result) if n in plan.tensors}
    if not isinstance(axis, int) or any(not -len(s) <= axis < len(s) for s in shapes.values()):
        yield f"operator '{operator.id}' joins parts along axis {axis}, which they do not have"
        return
    joined, whole_size = (
        sum(shapes[name][axis] for name in names if name in shapes)
        for names in (operator.inputs, operator.outputs)
    )
    if joined != whole_size:
        yield (
            f"operator '{operator.id}' joins {joined} elements along axis {axis}, and its result "
            f"has {whole_size}"
        )


def type_violations(plan: Plan) -> Iterator[str]:
    """Yield what is wrong with the data types of a plan.

    The rules: only a plan with a precision gives types, those of the precision's chain, and to an
    operator only one that is wider than its processor's; a transfer moves the bytes of the narrower
    of the types that both ends keep its tensor in; where these differ, and only there, it has a
    cast, from the sender's type to the receiver's, on the processor with the wider one, which takes
    no longer than the transfer.
    """
    chain = CHAINS[plan.precision or "model"]
    processors = {processor.name: processor for processor in plan.processors}
    for processor in plan.processors:
        if processor.data_type and processor.data_type not in chain:
            types = _foreign_type(processor.data_type, plan)
            yield f"processor '{processor.name}' works in {types}"
    for each in (each for stage in plan.stages for each in stage.processors):
        own = processors[each.name].data_type if each.name in processors else None
        for at in each.operators:
            if at.data_type is None:
                continue
            if at.data_type not in chain:
                yield f"operator '{at.operator}' computes in {_foreign_type(at.data_type, plan)}"
            elif own not in chain or chain.index(at.data_type) <= chain.index(own):
                yield (
                    f"operator '{at.operator}' computes in {at.data_type}, no wider than {own}, "
                    f"in which '{each.name}' works"
                )
    for transfer in plan.transfers:
        tensor = plan.tensors.get(transfer.tensor)
        ends = processors.get(transfer.source), processors.get(transfer.target)
        if tensor and ends[0] and ends[1]:
            yield from _cast_violations(transfer, tensor, ends[0], ends[1])


def _foreign_type(data_type: str, plan: Plan) -> str:
    if plan.precision is None:
        return f"{data_type}, and the plan has no precision"
    return f"{data_type}, which is no type of a plan in {plan.precision}"


def _cast_violations(
    transfer: Transfer, tensor: Tensor, source: Processor, target: Processor
) -> Iterator[str]:
    label = f"the transfer of tensor '{transfer.tensor}' from '{source.name}' to '{target.name}'"
    sent, received = (type_there(tensor.dtype, end.data_type) for end in (source, target))
    chain = CHAINS["int8"]
    if sent != received and not {sent, received}.issubset(chain):
        return  # said of the processors already
    travels = narrower(sent, received)
    size_bytes = size_in_bytes(tensor.shape, travels)
    if size_bytes is not None and transfer.size_bytes != size_bytes:
        yield f"{label} moves {transfer.size_bytes} bytes of {size_bytes}"
    cast = transfer.cast
    if (cast is None) != (sent == received):
        state = "has no cast" if cast is None else "has a cast"
        yield f"{label} {state}, and its ends keep it in {sent} and {received}"
        return
    if cast is None:
        return
    expected = (
        sent, received, cast_operator(sent, received), (target if sent == travels else source).name
    )  # fmt: skip
    actual = cast.source_type, cast.target_type, cast.operator, cast.processor
    if actual != expected:
        texts = [f"{op} from {a} to {b} on '{where}'" for a, b, op, where in (actual, expected)]
        yield f"{label} has a {texts[0]}, and should have a {texts[1]}"
    if cast.time_s > transfer.time_s:
        yield f"{label} takes {transfer.time_s:.9g} s, and its cast {cast.time_s:.9g} s"


# The sustained period is exact for times rounded to picoseconds (parapipe.mappings.event_graph).
PICOSECOND_S = 1e-12
# What a quotient or a sum of a thousand doubles may be off by, with room to spare.
RELATIVE = 1e-12


def verify_plan(plan: Plan, like: Plan | None = None, lives: PlanLives | None = None) -> None:
    """Check every rule that a runtime relies on; return if all hold.

    The rules stand with the functions that check them: `structure_violations` (operators and
    tensors), `cover_violations` (parts of split operators), `placement_violations` (stages and
    times), `launch_violations` (captured graphs), `transfer_violations` (transfers),
    `type_violations` (data types, and the bytes that they make), `model_violations` (frames of
    several models), `co_run_violations` (latency and periods where processors slow each other
    down), `memory_violations` (offsets; only where all else holds), and here the predictions, which
    are then those without: the period is the longest stage, one that r processors take turns on
    counting 1 / r, and the throughput its reciprocal; the latency is the sum of the stages, or
    where a stage works on several frames, the time from a frame's first start to its last end; both
    are no less than what the memory needs for a frame (`traffic_violations`), the period no less
    than the loop of a state shared among the sequences that take turns (`state_violations`); so is
    the sustained period, which lies between the work of the busiest processor or link and the
    longest stage, beyond which it goes only if several stages need the same processor or link; the
    board takes at least the energy of the processors; shares of coverage add up to one.

    Times are sums of doubles, and different orders of summation round differently: comparisons
    of times allow one unit in the last place of the largest for each operator.

    Parameters
    ----------
    like
        A plan that keeps the rules; those on the network hold for every plan of the same one.
    lives
        Of the plan's tensors, if they are at hand, with its mapping; they know nothing of offsets.

    Raises
    ------
    VerificationError
        If a rule is broken; `violations` lists every one, and tracebacks show them as notes.
    """
    view = lives.view if lives else mapping_view(plan)
    times = [at.end_s for at in view.placements.values()]
    tolerance_s = (len(plan.operators) + 2) * ulp(max(0.0, *times, plan.predicted.latency_s))
    violations = [
        *network_violations(plan, like),
        *cover_violations(plan),
        *placement_violations(view, tolerance_s),
        *launch_violations(view, tolerance_s),
        *transfer_violations(view, tolerance_s),
        *type_violations(plan),
        *model_violations(view),
        *traffic_violations(plan, tolerance_s),
        *power_violations(plan),
        *state_violations(view, tolerance_s),
        *_prediction_violations(view, tolerance_s),
        *co_run_violations(view),
    ] or [*memory_violations(plan, lives)]  # lives follow from a right schedule only
    if violations:
        count = "a rule" if len(violations) == 1 else f"{len(violations)} rules"
        error = VerificationError(
            f"the plan of '{plan.model.name}' for '{plan.platform}' breaks {count} that runtimes "
            "rely on; write it again with `parapipe map`",
            violations,
        )
        for violation in violations:
            error.add_note(violation)
        raise error


def network_violations(plan: Plan, like: Plan | None = None) -> Iterator[str]:
    """Yield breaches of the rules on the network; `like` keeps them, as do plans with the same."""
    if like is None or _network_of(like) != _network_of(plan):
        yield from structure_violations(plan)


def _network_of(plan: Plan) -> tuple[object, ...]:
    """Return what `structure_violations` looks at."""
    return plan.inputs, plan.outputs, plan.tensors, plan.operators


def _prediction_violations(view: MappedPlan, tolerance_s: float) -> Iterator[str]:
    plan, predicted = view.plan, view.plan.predicted
    # with processors that slow each other down, the times of stages are those without
    free = plan.co_run.free if plan.co_run else predicted
    longest_s = max(
        stage.time_s / (1 + len(stage.processors[0].replicas or ())) for stage in plan.stages
    )
    memory_s, sequences = predicted.memory_s or 0.0, plan.sequences or 1
    looped_s = loop_s(view) / sequences
    least_s = max(memory_s, looped_s, power_limit_s(plan))
    served = f", and the memory needs {memory_s:.9g} s for a frame" if memory_s else ""
    served += f", and a state needs {looped_s:.9g} s until the next step" if looped_s else ""
    if not (view.interleaved and plan.co_run) and (
        abs(free.period_s - max(longest_s, least_s)) > tolerance_s
    ):
        yield (
            f"the period is {free.period_s:.9g} s, and the longest stage {longest_s:.9g} s{served}"
        )
    latency_s = sum(stage.time_s for stage in plan.stages)
    if view.interleaved:
        latency_s = replace(view.mapping, period_s=free.period_s).elapsed_s
    if abs(free.latency_s - max(latency_s, memory_s)) > tolerance_s:
        yield (
            f"the latency is {free.latency_s:.9g} s, and the stages take {latency_s:.9g} s{served}"
        )
    if abs(predicted.throughput_fps * predicted.period_s - 1) > RELATIVE:
        yield (
            f"the throughput is {predicted.throughput_fps:.9g} frames per second, and the period "
            f"{predicted.period_s:.9g} s"
        )
    yield from _sustained_violations(
        view, free.sustained_period_s, max(longest_s, least_s), tolerance_s
    )
    if predicted.board_energy_j < predicted.energy_j * (1 - RELATIVE):
        yield (
            f"the board takes {predicted.board_energy_j:.9g} J, less than its processors' "
            f"{predicted.energy_j:.9g} J"
        )
    if predicted.coverage is not None:
        shares = predicted.coverage
        of_the_operator = shares.measured + (shares.stated or 0.0) + (shares.compiled or 0.0)
        total = of_the_operator + shares.fitted + shares.nominal
        if abs(total - 1) > RELATIVE:
            yield f"the shares of coverage add up to {total:.9g}, not to 1"


def _sustained_violations(
    view: MappedPlan, sustained_s: float, longest_s: float, tolerance_s: float
) -> Iterator[str]:
    margin_s = tolerance_s + len(view.plan.operators) * PICOSECOND_S
    if sustained_s > longest_s + margin_s and not serves_several_stages(view):
        yield (
            f"the sustained period is {sustained_s:.9g} s, and the longest stage takes "
            f"{longest_s:.9g} s"
        )
    if sustained_s < (memory_s := view.plan.predicted.memory_s or 0.0) - margin_s:
        yield (
            f"the sustained period is {sustained_s:.9g} s, and the memory needs {memory_s:.9g} s "
            "for a frame"
        )
    looped_s = loop_work_s(view) / (view.plan.sequences or 1)
    if sustained_s < looped_s - margin_s:
        yield (
            f"the sustained period is {sustained_s:.9g} s, and a state needs {looped_s:.9g} s "
            "until the next step"
        )
    processors = {processor.name for processor in view.plan.processors}
    for name, busy_s in work_s(view).items():
        if sustained_s < busy_s - margin_s:
            what = "processor" if name in processors else "link"
            yield (
                f"the sustained period is {sustained_s:.9g} s, and {what} '{name}' is busy for "
                f"{busy_s:.9g} s a frame"
            )
