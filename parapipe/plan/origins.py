"""Which operator of the model each operator of a plan is, is a part of, or serves."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Mapping

from parapipe.plan.schema import Plan

_PART = re.compile(r"/part\d+$")


def origins(plan: Plan, model: Collection[str]) -> Mapping[str, str]:
    """Return the id of the model's operator for each id of the plan's.

    What cuts a tensor for parts or joins them belongs to the first operator that reads the result,
    or else to the one that makes what it reads.

    Parameters
    ----------
    model
        Ids of the model's operators.
    """
    found = {
        operator.id: own
        for operator in plan.operators
        for own in [operator.id if operator.id in model else _PART.sub("", operator.id)]
        if own in model
    }
    if len(found) == len(plan.operators):
        return found
    maker = {name: each.id for each in plan.operators for name in each.outputs}
    readers: dict[str, list[str]] = defaultdict(list)
    for operator in plan.operators:
        for name in operator.inputs:
            if name in maker:
                readers[maker[name]].append(operator.id)
    for operator in reversed(plan.operators):
        if operator.id not in found:
            near = [found[each] for each in readers[operator.id] if each in found]
            if near:
                found[operator.id] = near[0]
    for operator in plan.operators:
        if operator.id not in found:
            made = (found[maker[name]] for name in operator.inputs if name in maker)
            found[operator.id] = next(made, next(iter(model)))
    return found
