"""Folds batch-norm, scales and biases into the weights of the operator before them."""

from __future__ import annotations

from dataclasses import replace

from parapipe.graph.operator_graph import Operator, OperatorGraph
from parapipe.graph.work import standard_domain

_WEIGHTED = frozenset({"Conv", "ConvTranspose", "Gemm"})
_BATCH_NORM_INPUTS = 5


def fold_scales(graph: OperatorGraph) -> OperatorGraph:
    """Fold constant per-channel arithmetic into convolutions and Gemms with constant weights.

    Folded are BatchNormalization (inference), and Mul and Add with a constant that is a scalar or
    has one element per channel, where nothing else reads the convolution's result. The operator
    takes over the name of the last result and lists in `folded` what vanished; the tensors
    between stay in `tensors`. ONNX Runtime (ConvBNFusion, ConvMulFusion, ConvAddFusion) and ARM
    Compute Library deploy networks this way.
    """
    readers = {name: len(consumers) for name, consumers in graph.consumers.items()}
    kept: list[Operator] = []
    outputs = frozenset(graph.outputs)
    place: dict[str, int] = {}  # position in `kept` by what the operator there makes
    for operator in graph.operators:
        source = _scaled(operator, graph)
        into = place.get(source) if source else None
        if (
            source is not None
            and into is not None
            and readers[source] == 1
            and source not in outputs
            and _has_constant_weights(kept[into], graph)
        ):
            before = kept[into]
            kept[into] = replace(
                before,
                id=operator.outputs[0],
                outputs=operator.outputs,
                members=(*before.members, *operator.members),
                folded=(*before.folded, operator),
            )
            place[operator.outputs[0]] = into
        else:
            place.update(dict.fromkeys(operator.outputs, len(kept)))
            kept.append(operator)
    return replace(graph, operators=tuple(kept))


def _scaled(operator: Operator, graph: OperatorGraph) -> str | None:
    """Return the tensor to which an operator applies constants per channel; None for others."""
    if not standard_domain(operator.domain) or len(operator.outputs) != 1:
        return None
    if operator.type == "BatchNormalization":
        constants = operator.inputs[1:]
        plain = not operator.attributes.get("training_mode", 0)
        spatial = operator.attributes.get("spatial", 1)
        known = all(name in graph.constants for name in constants)
        complete = len(operator.inputs) == _BATCH_NORM_INPUTS
        return operator.inputs[0] if plain and spatial and known and complete else None
    if operator.type in ("Mul", "Add"):
        for source, constant in (operator.inputs, operator.inputs[::-1]):
            if source in graph.tensors and constant in graph.constants:
                target = graph.tensors[operator.outputs[0]].shape
                same = graph.tensors[source].shape == target
                per_channel = _is_per_channel(graph.constants[constant].shape, len(target))
                return source if same and per_channel else None
    return None


def _is_per_channel(shape: tuple[int, ...], rank: int) -> bool:
    aligned = (*(1 for _ in range(rank - len(shape))), *shape)
    return all(size == 1 for axis, size in enumerate(aligned) if axis != 1)


def _has_constant_weights(operator: Operator, graph: OperatorGraph) -> bool:
    return (
        operator.type in _WEIGHTED
        and standard_domain(operator.domain)
        and all(name in graph.constants for name in operator.inputs[1:] if name)
    )
