"""Operators of split plans that no session has to run: their results lie in memory already.

What joins parts, or cuts a tensor for them, copies nothing where the parts lie one behind the other
in a buffer that is allocated as a whole. Then it is left out: who reads its result waits for what
was to be joined or cut, and is given that memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod

from parapipe.export.onnxruntime.handed import CONVERTED_TO
from parapipe.export.onnxruntime.network import Network
from parapipe.graph.parts.marks import is_within_buffer
from parapipe.plan.mapped import mapped, producers, reads, route_of
from parapipe.plan.schema import Operator, Plan, Transfer
from parapipe.plan.segments import segments
from parapipe.plan.transfers import slots_needed
from parapipe.runtime.document import View

_JOIN, _CUT = "Concat", "Slice"


@dataclass(frozen=True, slots=True)
class Viewed:
    """A plan whose operators read what is made, in place of views of it.

    Parameters
    ----------
    views
        Ranges of tensors, by their names.
    """

    plan: Plan
    views: Mapping[str, View]


def viewed(plan: Plan, network: Network) -> Viewed:
    """Leave out what copies nothing.

    A join or a cut stays where its result leaves the model, where a reader runs in one session with
    who makes what is joined or cut, and where a part is joined elsewhere already.
    """
    left = {} if plan.precision == CONVERTED_TO else _candidates(plan, network)
    while left:
        found = _without(left, plan)
        taken = _read_where_made(plan, found, left)
        if not taken:
            break
        left = {name: each for name, each in left.items() if name not in taken}
    if not left or not all(p.operators for stage in found.plan.stages for p in stage.processors):
        return Viewed(plan, {})
    return found


def _candidates(plan: Plan, network: Network) -> dict[str, Operator]:
    """Return operators that copy nothing, by their results."""
    made_by = producers(plan)
    marked = {
        each.outputs[0]: each
        for each in plan.operators
        if len(each.members) == 1 and _copies_nothing(each, plan, network)
    }
    found: dict[str, Operator] = {}
    parts: set[str] = set()
    for name, each in marked.items():
        read = reads(each, plan)
        apart = set(read).isdisjoint({*marked, *parts, *plan.outputs})
        if each.type == _JOIN and apart and all(part in made_by for part in each.inputs):
            found[name] = each
            parts |= set(read)
    cuts = {name: each for name, each in marked.items() if each.type == _CUT}
    return found | {name: each for name, each in cuts.items() if each.inputs[0] not in cuts}


def _copies_nothing(operator: Operator, plan: Plan, network: Network) -> bool:
    if operator.type not in (_JOIN, _CUT) or operator.outputs[0] in plan.outputs:
        return False
    if operator.inputs[0] not in plan.tensors:
        return False
    (node,) = network.nodes[operator.id]
    read, made = (plan.tensors[each[0]].shape for each in (operator.inputs, operator.outputs))
    return is_within_buffer(node, read, made)


def _ranges(left: Mapping[str, Operator], plan: Plan) -> Iterator[View]:
    """Yield which range a part is of the whole, and a cut of what it is cut from."""
    for name, each in left.items():
        if each.type == _JOIN:
            end = 0
            for part in each.inputs:
                begin, end = end, end + prod(plan.tensors[part].shape)
                yield View(part, name, begin, end)
        else:
            source, shape = each.inputs[0], plan.tensors[name].shape
            whole, starts = plan.tensors[source].shape, each.attributes["starts"]
            axis = next(at for at, size in enumerate(shape) if size != whole[at])
            assert isinstance(starts, tuple)  # the one axis that it cuts
            begin = int(starts[0]) * prod(shape[axis + 1 :])
            yield View(name, source, begin, begin + prod(shape))


def _made_of(name: str, left: Mapping[str, Operator], views: Mapping[str, View]) -> tuple[str, ...]:
    """Return the tensors that what a left out operator makes is a view of, or is made of."""
    view = views.get(name)  # of a cut
    whole = view.whole if view else name
    joined = left[whole].inputs if whole in left else ()
    return tuple(
        part
        for part in joined
        if not view or (views[part].begin < view.end and view.begin < views[part].end)
    ) or (whole,)


def _without(left: Mapping[str, Operator], plan: Plan) -> Viewed:
    """Return a plan without some operators, in which others read what these do."""
    views = {each.tensor: each for each in _ranges(left, plan)}
    made = {name: _made_of(name, left, views) for name in left}
    operators = tuple(
        each.model_copy(
            update={"inputs": tuple(n for name in each.inputs for n in made.get(name, (name,)))}
        )
        for each in plan.operators
        if each.outputs[0] not in left
    )
    gone = {each.id for each in left.values()}
    stages = tuple(
        stage.model_copy(
            update={
                "processors": tuple(
                    p.model_copy(
                        update={
                            "operators": tuple(at for at in p.operators if at.operator not in gone)
                        }
                    )
                    for p in stage.processors
                )
            }
        )
        for stage in plan.stages
    )
    changed = plan.model_copy(update={"operators": operators, "stages": stages})
    return Viewed(changed.model_copy(update={"transfers": tuple(_transfers(changed))}), views)


def _transfers(plan: Plan) -> Iterator[Transfer]:
    """Yield the transfers of a changed plan: those that are still there, with room, and new ones.

    What a new one takes is not known: what is joined was counted as a whole.
    """
    view, known = mapped(plan), {route_of(each): each for each in plan.transfers}
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
        there = known.get(route) or Transfer.model_validate(fields)
        yield there.model_copy(update={"queue_depth": max(depth, there.queue_depth)})


def _read_where_made(plan: Plan, found: Viewed, left: Mapping[str, Operator]) -> set[str]:
    """Return what is read in one session with a part of it, or with what it is cut from."""
    before = {each.id: reads(each, plan) for each in plan.operators}
    after = {each.id: set(reads(each, found.plan)) for each in found.plan.operators}
    made_by = producers(found.plan)
    run_of = {
        v: run
        for mine in segments(found.plan, prompt=True).values()
        for run in mine
        for v in run.operators
    }
    return {
        name
        for v, names in before.items()
        if v in after
        for name in names
        if name in left
        for part in _made_of(name, left, found.views)
        if part in made_by and run_of[made_by[part]] is run_of[v]
    }
