"""A convolution and the sum behind it become one step, where a back end computes both at one go.

The result is neither written nor read again in between, and its activation is applied on the way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from parapipe.mappings.mapping import Placement
from parapipe.plan.mapped import mapping_view
from parapipe.plan.schema import Plan
from parapipe.targets.native.backends import BACKENDS, BackendName
from parapipe.targets.native.library_plan import Operator
from parapipe.targets.native.steps import Steps, stored

_BIAS, _RESIDUAL = 2, 3  # positions among the inputs of a Conv


def merge_residuals(plan: Plan, into: Steps, backends: Mapping[str, BackendName]) -> None:
    """Let each Conv add what the Add behind it would, if nobody else has to wait longer for that.

    The step stands at the Add's turn. Nobody else reads what the Conv makes; both are on one
    processor, in the same round; and from the Conv's turn to the Add's, nothing is read from
    another processor or made for one, so that the order of all that is waited for stays as it is.

    Parameters
    ----------
    into
        Steps of all operators of the plan.
    backends
        Back end of each processor, by its name.
    """
    turns = _Turns.of(plan, backends)
    made = {step.outputs[0]: step for step in into.steps}
    count = Counter(step.source or step.id for step in into.steps)
    read = Counter(name for step in into.steps for name in step.inputs)
    read.update(plan.outputs)
    merged: dict[str, Operator] = {}
    gone: set[str] = set()
    for step in into.steps:
        last: tuple[int, Operator, str] | None = None
        if step.type != "Add" or not _of_one_shape(step, into):
            continue
        for name, residual in (step.inputs, step.inputs[::-1]):
            conv = made.get(name)
            if conv is None or read[name] > 1 or not _is_bare(conv) or conv.id in gone:
                continue
            first, then = (each.source or each.id for each in (conv, step))
            if count[first] == 1 and turns.may_merge(first, then, residual):
                last = max(last or (-1, conv, residual), (turns.position(first), conv, residual))
        if last is not None:
            _, conv, residual = last
            gone.add(conv.id)
            merged[step.id] = made[step.outputs[0]] = _merge(conv, step, residual)
    into.steps[:] = [merged.get(step.id, step) for step in into.steps if step.id not in gone]
    for name in gone:
        del into.shapes[name]


def _of_one_shape(step: Operator, into: Steps) -> bool:
    """Whether both summands are activations with the shape of the sum."""
    names = (*step.inputs, *step.outputs)
    activations = not any(name in into.weights for name in names)
    return activations and len({stored(into.shape(name)) for name in names}) == 1


def _is_bare(step: Operator) -> bool:
    return step.type == "Conv" and step.activation is None and len(step.inputs) <= _RESIDUAL


def _merge(conv: Operator, add: Operator, residual: str) -> Operator:
    bias = conv.inputs[_BIAS] if len(conv.inputs) > _BIAS else ""
    return add.model_copy(
        update={
            "type": "Conv",
            "inputs": (*conv.inputs[:_BIAS], bias, residual),
            "attributes": conv.attributes,
            "includes": (conv.source or conv.id,),
        }
    )


@dataclass(frozen=True, slots=True)
class _Turns:
    """When operators of a plan are taken, by their ids.

    Parameters
    ----------
    orders
        Operators of each processor whose back end can merge, by its number.
    arriving
        Tensors that come from another processor, with the number of that which reads them.
    handing_over
        Operators that read such a tensor, or make one.
    """

    placements: Mapping[str, Placement]
    orders: Mapping[int, tuple[str, ...]]
    arriving: frozenset[tuple[str, int]]
    handing_over: frozenset[str]

    @classmethod
    def of(cls, plan: Plan, backends: Mapping[str, BackendName]) -> _Turns:
        view = mapping_view(plan)
        number = {name: p for p, name in enumerate(view.resources)}
        arriving = frozenset((each.tensor, number[each.target]) for each in plan.transfers)
        leaving = {tensor for tensor, _ in arriving}
        at = {operator: placement.processor for operator, placement in view.placements.items()}
        return cls(
            view.placements,
            {
                p: tuple(view.id(at) for at in order)
                for p, order in view.orders.items()
                if BACKENDS[backends[view.resources[p]]].residual
            },
            arriving,
            frozenset(
                each.id
                for each in plan.operators
                if leaving.intersection(each.outputs)
                or any((name, at[each.id]) in arriving for name in each.inputs)
            ),
        )

    def position(self, operator: str) -> int:
        return self.orders[self.placements[operator].processor].index(operator)

    def may_merge(self, first: str, then: str, residual: str) -> bool:
        """Whether an operator may wait for the turn of the one that reads what it makes."""
        at, later = self.placements[first], self.placements[then]
        together = (at.processor, at.lag) == (later.processor, later.lag)
        if not together or at.processor not in self.orders:
            return False
        between = self.orders[at.processor][self.position(first) + 1 : self.position(then)]
        waits = (residual, at.processor) in self.arriving
        return not waits and self.handing_over.isdisjoint(between)
