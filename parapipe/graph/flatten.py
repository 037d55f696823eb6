"""Gives a Flatten before a fully connected layer to that layer, which flattens by itself."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from parapipe.graph.operator_graph import Operator, OperatorGraph

_VIEWS = frozenset({"Flatten", "Reshape", "Squeeze"})
_MATRIX_RANK = 2


def absorb_flattens(graph: OperatorGraph) -> OperatorGraph:
    """Drop views `[n, ...] -> [n, rest]` that only a Gemm (or a MatMul with weights) reads.

    The Gemm then reads the unflattened tensor and lists the view's node among its members. ARM
    Compute Library's fully connected layer takes such a tensor as it is, so a runtime that needs
    the flat one adds the view, which costs nothing, again.
    """
    absorbed: dict[str, Operator] = {}
    kept = []
    for operator in graph.operators:
        reader = graph.sole_reader(operator.outputs[0])
        if (
            reader is not None
            and _flattens(operator, graph)
            and _takes_matrix(graph.operators[reader], operator.outputs[0], graph)
        ):
            absorbed[operator.outputs[0]] = operator
        elif view := absorbed.get(next(iter(operator.inputs), "")):
            inputs = (view.inputs[0], *operator.inputs[1:])
            members = (*view.members, *operator.members)
            kept.append(replace(operator, inputs=inputs, members=members))
        else:
            kept.append(operator)
    return replace(graph, operators=tuple(kept))


def _flattens(operator: Operator, graph: OperatorGraph) -> bool:
    if operator.type not in _VIEWS or operator.domain or operator.inputs[0] not in graph.tensors:
        return False
    source = graph.tensors[operator.inputs[0]].shape
    target = graph.tensors[operator.outputs[0]].shape
    return len(source) > _MATRIX_RANK and target == (source[0], prod(source[1:]))


def _takes_matrix(operator: Operator, name: str, graph: OperatorGraph) -> bool:
    if operator.type not in ("Gemm", "MatMul") or operator.domain:
        return False
    left, right = operator.inputs[:2]
    if left != name or right not in graph.constants or operator.inputs.count(name) != 1:
        return False
    if operator.type == "MatMul":
        return len(graph.constants[right].shape) == _MATRIX_RANK
    return not operator.attributes.get("transA", 0)
