"""Gives a Flatten before a fully connected layer to that layer, which flattens by itself."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from parapipe.graph.operator_graph import Operator, OperatorGraph
from parapipe.graph.work import standard_domain

_VIEWS = frozenset({"Flatten", "Reshape", "Squeeze"})
_MATRIX_RANK = 2


def absorb_flattens(graph: OperatorGraph) -> OperatorGraph:
    """Drop views `[n, ...] -> [n, rest]` that only a Gemm (or a MatMul with weights) reads.

    The Gemm then reads the unflattened tensor and lists the view's node among its members. ARM
    Compute Library's fully connected layer takes such a tensor as it is, so a runtime that needs
    the flat one adds the view, which costs nothing, again.
    """
    absorbed: dict[str, Operator] = {}
    outputs = frozenset(graph.outputs)
    for operator in graph.operators:
        readers = graph.consumers.get(operator.outputs[0], ())
        if (
            _flattens(operator, graph)
            and len(readers) == 1
            and operator.outputs[0] not in outputs
            and _takes_matrix(graph.operators[readers[0]], operator.outputs[0], graph)
        ):
            absorbed[operator.outputs[0]] = operator
    kept = []
    for operator in graph.operators:
        view = absorbed.get(operator.inputs[0]) if operator.inputs else None
        if view:
            kept.append(
                replace(
                    operator,
                    inputs=(view.inputs[0], *operator.inputs[1:]),
                    members=(*view.members, *operator.members),
                )
            )
        elif operator.outputs[0] not in absorbed:
            kept.append(operator)
    return replace(graph, operators=tuple(kept))


def _flattens(operator: Operator, graph: OperatorGraph) -> bool:
    if operator.type not in _VIEWS or not standard_domain(operator.domain):
        return False
    if operator.inputs[0] not in graph.tensors:
        return False
    source = graph.tensors[operator.inputs[0]].shape
    target = graph.tensors[operator.outputs[0]].shape
    return (
        len(target) == _MATRIX_RANK
        and len(source) > _MATRIX_RANK
        and source[0] == target[0]
        and prod(source[1:]) == target[1]
    )


def _takes_matrix(operator: Operator, name: str, graph: OperatorGraph) -> bool:
    if operator.type not in ("Gemm", "MatMul") or not standard_domain(operator.domain):
        return False
    left, right = operator.inputs[:2]
    if left != name or right not in graph.constants or operator.inputs.count(name) != 1:
        return False
    if operator.type == "MatMul":
        return len(graph.constants[right].shape) == _MATRIX_RANK
    return not operator.attributes.get("transA", 0)
