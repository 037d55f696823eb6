"""Operators of split plans that no session has to run: their results lie in memory already.

What joins parts, or cuts a tensor for them, copies nothing where the parts lie one behind the other
in a buffer that is allocated as a whole. Then it is left out: who reads its result waits for what
was to be joined or cut, and is given that memory.
"""

from __future__ import annotations

from collections.abc import Mapping

from parapipe.export.onnxruntime.handed import CONVERTED_TO
from parapipe.export.onnxruntime.network import Network
from parapipe.graph.parts.marks import is_within_buffer
from parapipe.plan.in_place import InPlace, made_of, without
from parapipe.plan.mapped import producers, reads
from parapipe.plan.pieces import NO_PIECES, Pieces
from parapipe.plan.schema import Operator, Plan
from parapipe.plan.segments import segments
from parapipe.plan.sharing import CUT, JOIN


def viewed(
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
        found = without(left, plan)
        taken = _read_where_made(plan, found, left, single=single, pieces=pieces)
        if not taken:
            break
        left = {name: each for name, each in left.items() if name not in taken}
    if not left or not all(p.operators for stage in found.plan.stages for p in stage.processors):
        return InPlace(plan, {})
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
        if each.type == JOIN and apart and all(part in made_by for part in each.inputs):
            found[name] = each
            parts |= set(read)
    cuts = {name: each for name, each in marked.items() if each.type == CUT}
    return found | {name: each for name, each in cuts.items() if each.inputs[0] not in cuts}


def _copies_nothing(operator: Operator, plan: Plan, network: Network) -> bool:
    if operator.type not in (JOIN, CUT) or operator.outputs[0] in plan.outputs:
        return False
    if operator.inputs[0] not in plan.tensors:
        return False
    (node,) = network.nodes[operator.id]
    read, made = (plan.tensors[each[0]].shape for each in (operator.inputs, operator.outputs))
    return is_within_buffer(node, read, made)


def _read_where_made(
    plan: Plan, found: InPlace, left: Mapping[str, Operator], *, single: bool, pieces: Pieces
) -> set[str]:
    """Return what is read in one session with a part of it, or with what it is cut from."""
    before = {each.id: reads(each, plan) for each in plan.operators}
    after = {each.id: set(reads(each, found.plan)) for each in found.plan.operators}
    made_by = producers(found.plan)
    run_of = {
        v: run
        for mine in segments(found.plan, prompt=True, single=single, pieces=pieces).values()
        for run in mine
        for v in run.operators
    }
    return {
        name
        for v, names in before.items()
        if v in after
        for name in names
        if name in left
        for part in made_of(name, left, found.ranges)
        if part in made_by and run_of[made_by[part]] is run_of[v]
    }
