"""The network of a plan as an operator graph again, with the work of every operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from parapipe.graph import operator_graph
from parapipe.graph.operator_graph import Constant, ModelSource, OperatorGraph, Tensor, Work
from parapipe.graph.work import work_of
from parapipe.plan.schema import Operator, Plan

COPIED = ("id", "name", "domain", "type", "attributes", "inputs", "outputs", "members")
"""What an operator says of itself in a plan as in a graph."""


def network_of(plan: Plan, *, with_work: bool = True) -> OperatorGraph:
    """Return the operators of a plan, fused ones by their parts; what was folded is left out.

    Parameters
    ----------
    with_work
        Whether operators get their work, and constants are told: else it takes far less time.
    """
    constants = {
        each.name: Constant(each.name, each.shape, each.dtype, stored=each.stored or "")
        for operator in plan.operators
        for single in ((operator, *operator.parts) if with_work else ())
        for each in single.constants
    }
    tensors = {name: Tensor(name, each.shape, each.dtype) for name, each in plan.tensors.items()}
    known: dict[str, Tensor | Constant] = {**constants, **tensors}
    operators = tuple(_operator(each, known if with_work else None) for each in plan.operators)
    source = ModelSource(plan.model.name, plan.model.sha256)
    return OperatorGraph(source, "fused", operators, tensors, constants, plan.inputs, plan.outputs)


def _operator(
    operator: Operator, known: Mapping[str, Tensor | Constant] | None
) -> operator_graph.Operator:
    parts = tuple(_operator(part, known) for part in operator.parts)
    same = {field: getattr(operator, field) for field in COPIED}
    return operator_graph.Operator(
        **same,
        work=_work(operator, parts, known),
        parts=parts,
        computes_in=operator.computes_in or "",
    )


def _work(
    operator: Operator,
    parts: Sequence[operator_graph.Operator],
    known: Mapping[str, Tensor | Constant] | None,
) -> Work:
    if known is None:
        return Work(0, 0, 0, modelled=False)
    if parts and not operator.computes_in:
        return Work(
            macs=sum(part.work.macs for part in parts),
            read_bytes=sum(part.work.read_bytes for part in parts),
            written_bytes=sum(part.work.written_bytes for part in parts),
        )
    names = operator.inputs, operator.outputs
    return work_of(operator.domain, operator.type, operator.attributes, *names, known=known)
