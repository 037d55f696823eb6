"""Rules on the data types of a plan for a model that is to be converted."""

from __future__ import annotations

from collections.abc import Iterator

from parapipe.cost.precision import CHAINS, cast_operator, narrower, type_there
from parapipe.graph.operator_graph import size_in_bytes
from parapipe.plan.schema import Plan, Processor, Tensor, Transfer


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
            yield f"processor '{processor.name}' works in {_not_of(processor.data_type, plan)}"
    for each in (each for stage in plan.stages for each in stage.processors):
        own = processors[each.name].data_type if each.name in processors else None
        for at in each.operators:
            if at.data_type is None:
                continue
            if at.data_type not in chain:
                yield f"operator '{at.operator}' computes in {_not_of(at.data_type, plan)}"
            elif own not in chain or chain.index(at.data_type) <= chain.index(own):
                yield (
                    f"operator '{at.operator}' computes in {at.data_type}, no wider than {own}, "
                    f"in which '{each.name}' works"
                )
    for transfer in plan.transfers:
        tensor = plan.tensors.get(transfer.tensor)
        ends = processors.get(transfer.source), processors.get(transfer.target)
        if tensor and ends[0] and ends[1]:
            yield from _transfer(transfer, tensor, ends[0], ends[1])


def _not_of(data_type: str, plan: Plan) -> str:
    if plan.precision is None:
        return f"{data_type}, and the plan has no precision"
    return f"{data_type}, which is no type of a plan in {plan.precision}"


def _transfer(
    transfer: Transfer, tensor: Tensor, source: Processor, target: Processor
) -> Iterator[str]:
    called = f"the transfer of tensor '{transfer.tensor}' from '{source.name}' to '{target.name}'"
    made, read = (type_there(tensor.dtype, end.data_type) for end in (source, target))
    chain = CHAINS["int8"]
    if made != read and not {made, read}.issubset(chain):
        return  # said of the processors already
    travels = narrower(made, read)
    size_bytes = size_in_bytes(tensor.shape, travels)
    if size_bytes is not None and transfer.size_bytes != size_bytes:
        yield f"{called} moves {transfer.size_bytes} bytes of {size_bytes}"
    cast = transfer.cast
    if (cast is None) != (made == read):
        given = "has no cast" if cast is None else "has a cast"
        yield f"{called} {given}, and its ends keep it in {made} and {read}"
        return
    if cast is None:
        return
    wanted = (
        made, read, cast_operator(made, read), (target if made == travels else source).name
    )  # fmt: skip
    found = cast.source_type, cast.target_type, cast.operator, cast.processor
    if found != wanted:
        told = [f"{op} from {a} to {b} on '{where}'" for a, b, op, where in (found, wanted)]
        yield f"{called} has a {told[0]}, and should have a {told[1]}"
    if cast.time_s > transfer.time_s:
        yield f"{called} takes {transfer.time_s:.9g} s, and its cast {cast.time_s:.9g} s"
