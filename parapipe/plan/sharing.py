"""Which tensors of an operator may share bytes, and which outputs lie in place of inputs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Protocol

from parapipe.parts.elementwise import ANY_AXIS, MICROSOFT
from parapipe.plan.mapped import mapping_view, route_of
from parapipe.plan.schema import Operator, Plan, StageProcessor, Transfer
from parapipe.plan.structure_rules import slots_needed

JOIN, CUT = "Concat", "Slice"
VIEWS = frozenset({"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity"})
_MOVING = VIEWS | {JOIN, CUT}
_OPERANDS = 2  # further ones may be read once the first two are overwritten
_ELEMENTWISE = {"": ANY_AXIS - {"Where"}, "com.microsoft": frozenset(MICROSOFT)}
Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Range:
    """Elements of a whole tensor, one behind the other in memory, that are another tensor."""

    tensor: str
    whole: str
    begin: int
    end: int


class _Operator(Protocol):
    @property
    def domain(self) -> str: ...
    @property
    def type(self) -> str: ...
    @property
    def attributes(self) -> Mapping[str, object]: ...
    @property
    def inputs(self) -> tuple[str, ...]: ...
    @property
    def outputs(self) -> tuple[str, ...]: ...
    @property
    def parts(self) -> Sequence[_Operator]: ...


class _Tensor(Protocol):
    @property
    def shape(self) -> Shape: ...
    @property
    def dtype(self) -> str: ...


def ranges(operator: _Operator, tensors: Mapping[str, _Tensor]) -> Iterator[Range]:
    """Yield what an operator that only joins, cuts or reshapes reads or makes, as ranges.

    A Concat reads ranges of what it makes, and a Slice makes a range of what it reads, if all axes
    before the one that they join or cut have one element. What is reshaped is all of what it was.
    """
    if operator.type not in _MOVING or operator.domain or operator.parts:
        return
    result, operands = operator.outputs[0], [name for name in operator.inputs if name]
    if len(operator.outputs) > 1 or not operands:
        return
    names = (result, *(operands if operator.type == JOIN else operands[:1]))
    if any(name not in tensors for name in names) or len({tensors[n].dtype for n in names}) > 1:
        return  # a constant, or a change of type
    shapes = {name: tensors[name].shape for name in names}
    if operator.type == JOIN:
        yield from _concat_ranges(result, operands, shapes)
    elif (
        operator.type == CUT
        and (begin := _slice_start(operator, shapes[operands[0]], shapes[result])) >= 0
    ):
        yield Range(result, operands[0], begin, begin + prod(shapes[result]))
    elif operator.type in VIEWS and prod(shapes[result]) == prod(shapes[operands[0]]):
        yield Range(result, operands[0], 0, prod(shapes[result]))


def _concat_ranges(
    result: str, operands: Sequence[str], shapes: Mapping[str, Shape]
) -> Iterator[Range]:
    whole, end = shapes[result], 0
    for name in operands:
        axis = _partial_axis(shapes[name], whole)
        if axis is None or any(size != 1 for size in whole[:axis]):
            return
    for name in operands:
        begin, end = end, end + prod(shapes[name])
        yield Range(name, result, begin, end)


def _partial_axis(part: Shape, whole: Shape) -> int | None:
    """Return the one axis along which a part is less than the whole; 0 if it is all of it."""
    axes = [axis for axis, size in enumerate(whole) if part[axis : axis + 1] != (size,)]
    return None if len(part) != len(whole) or len(axes) > 1 else (axes or [0])[0]


def _slice_start(operator: _Operator, whole: Shape, result: Shape) -> int:
    """Return the element at which a cut begins; -1 if it is no range."""
    axis = _partial_axis(result, whole)
    starts, steps = operator.attributes.get("starts"), operator.attributes.get("steps", ())
    axes = operator.attributes.get("axes") or range(len(whole))
    if axis is None or any(size != 1 for size in whole[:axis]):
        return -1
    if not isinstance(starts, tuple) or not isinstance(axes, tuple | range):
        return -1
    if not isinstance(steps, tuple) or any(step != 1 for step in steps):
        return -1
    cut = dict(zip((each % len(whole) for each in axes), starts, strict=False))
    start = int(cut.get(axis, 0))
    start = max(0, start + whole[axis] if start < 0 else start)
    return start * prod(whole[axis + 1 :])


def writes_over(operator: _Operator, name: str, tensors: Mapping[str, _Tensor]) -> bool:
    """Whether an operator may write its result over one of the tensors that it reads.

    It makes each element of those at the same place: it is element-wise, and so is what is fused
    with it, which does not read that tensor again. Of several operands it is one of the first two,
    and none of the others. That elements have equal sizes is for the caller to see to: it depends
    on where they are kept.
    """
    singles = operator.parts or (operator,)
    (first, *later), results = singles, operator.outputs
    return (
        len(results) == 1
        and name in first.inputs[:_OPERANDS]
        and name not in first.inputs[_OPERANDS:]
        and tensors[name].shape == tensors[results[0]].shape
        and all(
            each.type in _ELEMENTWISE.get(each.domain, ()) and len(each.outputs) == 1
            for each in singles
        )
        and not any(name in each.inputs for each in later)
    )


@dataclass(frozen=True, slots=True)
class InPlace:
    """A plan whose operators read what is made, in place of ranges of it.

    Parameters
    ----------
    ranges
        By their names.
    """

    plan: Plan
    ranges: Mapping[str, Range]


def executed_plan(plan: Plan, ran: Collection[str]) -> Plan:
    """Return a plan without joins and cuts that did not run, given the ids of operators that did.

    Its segments are those of the run.
    """
    removed = {
        each.outputs[0]: each
        for each in plan.operators
        if each.id not in ran and each.type in (JOIN, CUT)
    }
    return without_operators(removed, plan).plan if removed else plan


def without_operators(removed: Mapping[str, Operator], plan: Plan) -> InPlace:
    """Return a plan without some operators, in which others read what these do."""
    views = {each.tensor: each for cut in removed.values() for each in ranges(cut, plan.tensors)}
    parts = {name: tensors_in_place_of(name, removed, views) for name in removed}
    operators = tuple(
        each.model_copy(
            update={"inputs": tuple(n for name in each.inputs for n in parts.get(name, (name,)))}
        )
        for each in plan.operators
        if each.outputs[0] not in removed
    )
    ids = {each.id for each in removed.values()}

    def remaining(processor: StageProcessor) -> StageProcessor:
        placed = tuple(at for at in processor.operators if at.operator not in ids)
        return processor.model_copy(update={"operators": placed})

    stages = tuple(
        stage.model_copy(update={"processors": tuple(map(remaining, stage.processors))})
        for stage in plan.stages
    )
    of_all = {"memory": None, "buffers": ()}  # they are of the whole plan
    changed = plan.model_copy(update={"operators": operators, "stages": stages, **of_all})
    return InPlace(changed.model_copy(update={"transfers": tuple(_transfers_of(changed))}), views)


def tensors_in_place_of(
    name: str, removed: Mapping[str, Operator], views: Mapping[str, Range]
) -> tuple[str, ...]:
    """Return the tensors that what a left out operator makes is a view of, or is made of."""
    view = views.get(name)  # of a cut
    whole = view.whole if view else name
    operands = removed[whole].inputs if whole in removed else ()
    return tuple(
        part
        for part in operands
        if not view or (views[part].begin < view.end and view.begin < views[part].end)
    ) or (whole,)


def _transfers_of(plan: Plan) -> Iterator[Transfer]:
    """Yield the transfers of a changed plan: those that are still there, with room, and new ones.

    What a new one takes is not known: what is joined was counted as a whole.
    """
    view, transfers = mapping_view(plan), {route_of(each): each for each in plan.transfers}
    for route, users in view.users.items():
        tensor, source, target = route
        depth = max(slots_needed(view, edge) for edge in users)
        within = all(view.stage(edge.made) == view.stage(edge.read) for edge in users)
        fields = {
            "tensor": tensor,
            "from": source,
            "to": target,
            "kind": "within-stage" if within else "stage",
            "size_bytes": plan.tensors[tensor].size_bytes,
            "time_s": 0.0,
            "queue_depth": depth,
        }
        transfer = transfers.get(route) or Transfer.model_validate(fields)
        yield transfer.model_copy(update={"queue_depth": max(depth, transfer.queue_depth)})
