"""Folds operators into a neighbour that does their work: scales into weights, views into a Gemm."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from parapipe.graph.operator_graph import Operator, OperatorGraph

_WEIGHTED = frozenset({"Conv", "ConvTranspose", "Gemm"})
_BATCH_NORM_INPUTS = 5
_VIEWS = frozenset({"Flatten", "Reshape", "Squeeze"})
_MATRIX_RANK = 2


def fold_scales(graph: OperatorGraph) -> OperatorGraph:
    """Fold constant per-channel arithmetic into convolutions and Gemms with constant weights.

    Folded are BatchNormalization (inference), and Mul and Add with a constant that is a scalar or
    has one element per channel, where nothing else reads the convolution's result. The operator
    takes over the name of the last result and lists in `folded` what vanished; the tensors
    between stay in `tensors`. ONNX Runtime (ConvBNFusion, ConvMulFusion, ConvAddFusion) and ARM
    Compute Library deploy networks this way.
    """
    kept: list[Operator] = []
    place: dict[str, int] = {}  # position in `kept` by what the operator there makes
    for index, operator in enumerate(graph.operators):
        source = _scaled(operator, graph)
        into = place.get(source, -1)
        if into < 0 or graph.sole_reader(source) != index or not _takes(kept[into], graph):
            place.update(dict.fromkeys(operator.outputs, len(kept)))
            kept.append(operator)
            continue
        before = kept[into]
        kept[into] = replace(
            before,
            id=operator.outputs[0],
            outputs=operator.outputs,
            members=(*before.members, *operator.members),
            folded=(*before.folded, operator),
        )
        place[operator.outputs[0]] = into
    return replace(graph, operators=tuple(kept)) if len(kept) < len(graph.operators) else graph


def _scaled(operator: Operator, graph: OperatorGraph) -> str:
    """Return the tensor to which an operator applies constants per channel; empty for others."""
    if operator.domain or len(operator.outputs) != 1:
        return ""
    if operator.type == "BatchNormalization":
        plain = not operator.attributes.get("training_mode", 0)
        spatial = operator.attributes.get("spatial", 1)
        known = all(name in graph.constants for name in operator.inputs[1:])
        complete = len(operator.inputs) == _BATCH_NORM_INPUTS
        return operator.inputs[0] if plain and spatial and known and complete else ""
    if operator.type in ("Mul", "Add"):
        for source, constant in (operator.inputs, operator.inputs[::-1]):
            if source in graph.tensors and constant in graph.constants:
                target = graph.tensors[operator.outputs[0]].shape
                same = graph.tensors[source].shape == target
                per_channel = _is_per_channel(graph.constants[constant].shape, len(target))
                return source if same and per_channel else ""
    return ""


def _is_per_channel(shape: tuple[int, ...], rank: int) -> bool:
    return all(size == 1 for axis, size in enumerate(shape, rank - len(shape)) if axis != 1)


def _takes(operator: Operator, graph: OperatorGraph) -> bool:
    """Whether scales can be folded into an operator: its weights are constant."""
    constant = all(name in graph.constants for name in operator.inputs[1:] if name)
    return constant and operator.type in _WEIGHTED and not operator.domain


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
    return replace(graph, operators=tuple(kept)) if absorbed else graph


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
