"""What segments hand to each other, and what lies in memory already.

A tensor in the model's own type bears its own name; in another type it is another tensor, with the
type behind the name. A plan in int8 says what a quantised model would take: its segments, as those
of any other plan, are of the model's types.

What joins parts, or cuts a tensor for them, copies nothing where the parts lie one behind the other
in a buffer that is allocated as a whole. Then it is left out: who reads its result waits for what
was to be joined or cut, and is given that memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from parapipe.cost.precision import CHAINS, narrower, type_there
from parapipe.export.onnxruntime.network import Network
from parapipe.graph.operator_graph import size_in_bytes
from parapipe.graph.part_marks import is_within_buffer
from parapipe.plan.mapped import operands_of, producers
from parapipe.plan.schema import Operator, Plan, Tensor, Transfer
from parapipe.plan.segments import NO_PIECES, Pieces, segments
from parapipe.plan.sharing import CUT, JOIN, InPlace, tensors_in_place_of, without_operators
from parapipe.runtime.document import Segment

CONVERTED_TO: Final = "float16"
"""The precision whose plans are written in converted segments."""


def conversion_notes(plan: Plan) -> list[str]:
    """Return a sentence if segments are not of the types that a plan is for."""
    if plan.precision in (None, CONVERTED_TO):
        return []
    sentence = (
        f"the plan's times are for {plan.precision}, but these segments compute in the model's own "
        f"data types; for {plan.precision}, quantise the model (QDQ), map it, and export that plan"
    )
    return [sentence]


@dataclass(frozen=True)
class Handovers:
    """Names and types of the tensors between a plan's segments.

    Parameters
    ----------
    maker
        Processor that makes each tensor, by the tensor's name; graph inputs have none.
    """

    plan: Plan
    maker: Mapping[str, str]

    @classmethod
    def of(cls, plan: Plan) -> Handovers:
        """Return what a plan's segments hand to each other."""
        where = {
            at.operator: processor.name
            for stage in plan.stages
            for processor in stage.processors
            for at in processor.operators
        }
        return cls(plan, {name: where[v] for name, v in producers(plan).items()})

    @cached_property
    def working(self) -> Mapping[str, str | None]:
        """Type that each processor keeps converted tensors in; None for the model's own."""
        converts = self.plan.precision == CONVERTED_TO
        return {p.name: p.data_type if converts else None for p in self.plan.processors}

    @cached_property
    def tensor_and_type(self) -> Mapping[str, tuple[str, str]]:
        """Tensor of the plan and type, by the name that the tensor has in that type."""
        types = CHAINS[CONVERTED_TO] if self.plan.precision == CONVERTED_TO else ()
        return {
            self.name(name, dtype): (name, dtype)
            for name, tensor in self.plan.tensors.items()
            for dtype in {tensor.dtype, *types}
        }

    @cached_property
    def _type_separator(self) -> str:
        """What stands between a name and a type, so that no tensor has the whole for its name."""
        names = {*self.plan.tensors, *_constant_names(self.plan)}
        mark = "."
        while any(f"{mark}{dtype}" in name for name in names for dtype in CHAINS[CONVERTED_TO]):
            mark += "_"
        return mark

    def name(self, name: str, dtype: str) -> str:
        """Return what a tensor or constant of the model is called in a type."""
        own = self.plan.tensors.get(name)
        return name if own and own.dtype == dtype else f"{name}{self._type_separator}{dtype}"

    def tensor(self, handover: str) -> Tensor:
        """Return a tensor by the name that it has in its type."""
        name, dtype = self.tensor_and_type[handover]
        shape = self.plan.tensors[name].shape
        return Tensor(shape=shape, dtype=dtype, size_bytes=size_in_bytes(shape, dtype) or 0)

    def read(self, name: str, processor: str) -> str:
        """Return the name under which a processor gets a tensor: the narrower type of both ends."""
        dtype = self.plan.tensors[name].dtype
        if name not in self.maker:
            return name
        ends = (type_there(dtype, self.working[p]) for p in (self.maker[name], processor))
        return self.name(name, narrower(*ends))

    def moved(self, transfer: Transfer) -> str:
        """Return the name under which a transfer brings its tensor."""
        return self.read(transfer.tensor, transfer.target)

    def segments(self, listed: Sequence[Segment]) -> Iterator[Segment]:
        """Yield segments with these names in place of the plan's."""
        readers: dict[str, dict[str, None]] = {}
        for each in listed:
            for name in each.inputs:
                readers.setdefault(name, {})[self.read(name, each.processor)] = None
        for each in listed:
            outputs = [
                handover
                for name in each.outputs
                for handover in {
                    **({name: None} if name in self.plan.outputs else {}),
                    **readers.get(name, {}),
                }
            ]
            read = tuple(self.read(name, each.processor) for name in each.inputs)
            yield replace(each, inputs=read, outputs=tuple(outputs))


def _constant_names(plan: Plan) -> Iterator[str]:
    for operator in plan.operators:
        for single in (operator, *operator.parts):
            yield from (constant.name for constant in single.constants)


def drop_copies(
    plan: Plan, network: Network, *, single: bool = False, pieces: Pieces = NO_PIECES
) -> InPlace:
    """Leave out what copies nothing.

    A join or a cut stays where its result leaves the model, where a reader runs in one session with
    who makes what is joined or cut, and where a part is joined elsewhere already.

    Parameters
    ----------
    single, pieces
        As of `segments`.
    """
    left = {} if plan.precision == CONVERTED_TO else _candidates(plan, network)
    while left:
        in_place = without_operators(left, plan)
        blocked = _read_in_making_session(plan, in_place, left, single=single, pieces=pieces)
        if not blocked:
            break
        left = {name: each for name, each in left.items() if name not in blocked}
    if not left or not all(p.operators for stage in in_place.plan.stages for p in stage.processors):
        return InPlace(plan, {})
    return in_place


def _candidates(plan: Plan, network: Network) -> dict[str, Operator]:
    """Return operators that copy nothing, by their results."""
    producer_of = producers(plan)
    marked = {
        each.outputs[0]: each
        for each in plan.operators
        if len(each.members) == 1 and _copies_nothing(each, plan, network)
    }
    candidates: dict[str, Operator] = {}
    parts: set[str] = set()
    for name, each in marked.items():
        read = operands_of(each, plan)
        disjoint = set(read).isdisjoint({*marked, *parts, *plan.outputs})
        if each.type == JOIN and disjoint and all(part in producer_of for part in each.inputs):
            candidates[name] = each
            parts |= set(read)
    cuts = {name: each for name, each in marked.items() if each.type == CUT}
    return candidates | {name: each for name, each in cuts.items() if each.inputs[0] not in cuts}


def _copies_nothing(operator: Operator, plan: Plan, network: Network) -> bool:
    if operator.type not in (JOIN, CUT) or operator.outputs[0] in plan.outputs:
        return False
    if operator.inputs[0] not in plan.tensors:
        return False
    (node,) = network.nodes[operator.id]
    read, written = (plan.tensors[each[0]].shape for each in (operator.inputs, operator.outputs))
    return is_within_buffer(node, read, written)


def _read_in_making_session(
    plan: Plan, in_place: InPlace, left: Mapping[str, Operator], *, single: bool, pieces: Pieces
) -> set[str]:
    """Return what is read in one session with a part of it, or with what it is cut from."""
    before = {each.id: operands_of(each, plan) for each in plan.operators}
    after = {each.id: set(operands_of(each, in_place.plan)) for each in in_place.plan.operators}
    producer_of = producers(in_place.plan)
    run_of = {
        v: run
        for mine in segments(in_place.plan, prompt=True, single=single, pieces=pieces).values()
        for run in mine
        for v in run.operators
    }
    return {
        name
        for v, names in before.items()
        if v in after
        for name in names
        if name in left
        for part in tensors_in_place_of(name, left, in_place.ranges)
        if part in producer_of and run_of[producer_of[part]] is run_of[v]
    }
