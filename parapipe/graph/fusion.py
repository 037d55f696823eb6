"""Joins an activation to the operator before it, as runtimes do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from parapipe.graph.operator_graph import Operator, OperatorGraph, Work
from parapipe.graph.work import standard_domain

_ACTIVATIONS = frozenset(
    {"Relu", "Clip", "LeakyRelu", "Sigmoid", "Tanh", "HardSwish", "HardSigmoid", "Elu"}
)
_ACTIVATED = frozenset({"Conv", "Gemm", "MatMul", "BatchNormalization", "Add", "Sum"})
_OPERANDS_OF_ADD = 2


def fuse(graph: OperatorGraph) -> OperatorGraph:
    """Join operators that runtimes run at one go; a graph that is fused already stays as it is.

    An activation (Relu, Clip with constant bounds, LeakyRelu, Sigmoid, Tanh, HardSwish,
    HardSigmoid, Elu) joins the Conv, Gemm, BatchNormalization, Add, Sum of two, or MatMul with
    constant weights before it; an Add of one constant per column joins such a MatMul as its bias.
    The condition is that nothing else reads the tensor between, and that it is no graph output.
    That tensor stays in `tensors`.

    Practice: ARM Compute Library's graph API fuses activations into convolution, depthwise
    convolution, fully connected and batch-norm layers, and, on OpenCL, into element-wise ones
    (`NodeFusionMutator`); ONNX Runtime fuses Conv and Gemm with them (ConvActivationFusion,
    GemmActivationFusion) and MatMul with its bias (MatMulAddFusion). Neither fuses into
    ConvTranspose, so this does not either.
    """
    if graph.granularity == "fused":
        return graph
    groups: list[list[Operator]] = []
    outputs = frozenset(graph.outputs)
    group_of: dict[str, int] = {}
    for operator in graph.operators:
        into = next((group_of[name] for name in graph.reads(operator) if name in group_of), None)
        if (
            into is not None
            and groups[into][-1].outputs[0] not in outputs
            and _joins(operator, groups[into], graph)
        ):
            groups[into].append(operator)
        else:
            into = len(groups)
            groups.append([operator])
        group_of.update(dict.fromkeys(operator.outputs, into))
    operators = tuple(group[0] if len(group) == 1 else _fused(group) for group in groups)
    return replace(graph, granularity="fused", operators=operators)


def _joins(operator: Operator, group: Sequence[Operator], graph: OperatorGraph) -> bool:
    last = group[-1]
    between = last.outputs[0]
    if (
        graph.reads(operator) != (between,)
        or graph.consumers[between] != (graph.producer[operator.outputs[0]],)
        or not all(standard_domain(part.domain) for part in (*group, operator))
    ):
        return False
    if operator.type in _ACTIVATIONS:
        return _is_activated(last, graph) and _bounds_known(operator, graph)
    return (
        operator.type == "Add" and _has_constant_weights(last, graph) and _is_bias(operator, graph)
    )


def _is_activated(operator: Operator, graph: OperatorGraph) -> bool:
    if operator.type == "MatMul":
        return _has_constant_weights(operator, graph)
    if operator.type == "Sum":
        return len(operator.inputs) == _OPERANDS_OF_ADD
    return operator.type in _ACTIVATED


def _has_constant_weights(operator: Operator, graph: OperatorGraph) -> bool:
    return operator.type == "MatMul" and operator.inputs[1] in graph.constants


def _bounds_known(operator: Operator, graph: OperatorGraph) -> bool:
    return all(name in graph.constants for name in operator.inputs[1:] if name)


def _is_bias(operator: Operator, graph: OperatorGraph) -> bool:
    """Whether an Add adds one constant per column (last axis), and no more."""
    shapes: Mapping[str, tuple[int, ...]] = {
        name: graph.constants[name].shape for name in operator.inputs if name in graph.constants
    }
    columns = graph.tensors[operator.outputs[0]].shape[-1:]
    return any(shape[-1:] == columns and set(shape[:-1]) <= {1} for shape in shapes.values())


def _fused(parts: Sequence[Operator]) -> Operator:
    """Join parts that are run one after the other, each reading the one before."""
    inside = {name for part in parts[:-1] for name in part.outputs}
    works = [part.work for part in parts]
    return replace(
        parts[0],
        id=parts[-1].id,
        inputs=(
            *parts[0].inputs,
            *(name for part in parts[1:] for name in part.inputs if name not in inside and name),
        ),
        outputs=parts[-1].outputs,
        work=Work(
            sum(work.macs for work in works),
            sum(work.read_bytes for work in works),
            sum(work.written_bytes for work in works),
            modelled=all(work.modelled for work in works),
            rule=next((work.rule for work in works if work.rule), ""),
        ),
        members=tuple(name for part in parts for name in part.members),
        parts=tuple(parts),
        folded=tuple(folded for part in parts for folded in part.folded),
    )
