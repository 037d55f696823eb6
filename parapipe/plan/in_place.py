"""A plan without what joins and cuts tensors in place, where nothing has to run for that."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from parapipe.plan.mapped import mapped, route_of
from parapipe.plan.schema import Operator, Plan, Transfer
from parapipe.plan.sharing import CUT, JOIN, Range, ranges
from parapipe.plan.transfers import slots_needed


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


def as_run(plan: Plan, ran: Collection[str]) -> Plan:
    """Return a plan without joins and cuts that did not run, given the ids of operators that did.

    Its segments are those of the run.
    """
    left = {
        each.outputs[0]: each
        for each in plan.operators
        if each.id not in ran and each.type in (JOIN, CUT)
    }
    return without(left, plan).plan if left else plan


def without(left: Mapping[str, Operator], plan: Plan) -> InPlace:
    """Return a plan without some operators, in which others read what these do."""
    views = {each.tensor: each for cut in left.values() for each in ranges(cut, plan.tensors)}
    made = {name: made_of(name, left, views) for name in left}
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
    left_out = {"memory": None, "buffers": ()}  # they are of the whole plan
    changed = plan.model_copy(update={"operators": operators, "stages": stages, **left_out})
    return InPlace(changed.model_copy(update={"transfers": tuple(_transfers(changed))}), views)


def made_of(name: str, left: Mapping[str, Operator], views: Mapping[str, Range]) -> tuple[str, ...]:
    """Return the tensors that what a left out operator makes is a view of, or is made of."""
    view = views.get(name)  # of a cut
    whole = view.whole if view else name
    joined = left[whole].inputs if whole in left else ()
    return tuple(
        part
        for part in joined
        if not view or (views[part].begin < view.end and view.begin < views[part].end)
    ) or (whole,)


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
