"""Joins an activation to the operator before it, as runtimes do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from parapipe.graph.operator_graph import Operator, OperatorGraph, Work
from parapipe.graph.quantised import join_quantised

_ACTIVATIONS = frozenset(
    {"Relu", "Clip", "LeakyRelu", "Sigmoid", "Tanh", "HardSwish", "HardSigmoid", "Elu"}
)
_ACTIVATED = frozenset({"Conv", "Gemm", "BatchNormalization", "Add"})
_OPERANDS_OF_ADD = 2


def fuse(graph: OperatorGraph) -> OperatorGraph:
    """Join operators that runtimes run at one go; a graph that is fused already stays as it is.

    An activation (Relu, Clip with constant bounds, LeakyRelu, Sigmoid, Tanh, HardSwish,
    HardSigmoid, Elu) joins the Conv, Gemm, BatchNormalization, Add, Sum of two, or MatMul with
    constant weights before it; an Add of one constant per column joins such a MatMul as its bias.
    The condition is that nothing else reads the tensor between, and that it is no graph output.
    That tensor stays in `tensors`. What a quantised model computes with integers is joined before
    (see `quantised`), and no activation joins it.

    Practice: ARM Compute Library's graph API fuses activations into convolution, depthwise
    convolution, fully connected and batch-norm layers, and, on OpenCL, into element-wise ones
    (`NodeFusionMutator`); ONNX Runtime fuses Conv and Gemm with them (ConvActivationFusion,
    GemmActivationFusion) and MatMul with its bias (MatMulAddFusion). Neither fuses into
    ConvTranspose, so this does not either.
    """
    if graph.granularity == "fused":
        return graph
    graph = join_quantised(graph)
    runs: list[list[Operator]] = []
    run_of: dict[str, list[Operator]] = {}  # by the tensor that its last operator makes
    for index, operator in enumerate(graph.operators):
        reads = graph.reads(operator)
        run = run_of.get(reads[0]) if len(reads) == 1 else None
        if run and graph.sole_reader(reads[0]) == index and _joins(operator, run[-1], graph):
            run.append(operator)
        else:
            run = [operator]
            runs.append(run)
        run_of[operator.outputs[0]] = run
    operators = tuple(run[0] if len(run) == 1 else _fused(run) for run in runs)
    return replace(graph, granularity="fused", operators=operators)


def _joins(operator: Operator, last: Operator, graph: OperatorGraph) -> bool:
    """Whether an operator that alone reads what `last` makes may join it."""
    if operator.domain or last.domain or operator.computes_in or last.computes_in:
        return False
    weights = last.type == "MatMul" and last.inputs[1] in graph.constants
    if operator.type == "Add":
        return weights and _is_bias(operator, graph)
    bounds_known = all(name in graph.constants for name in operator.inputs[1:] if name)
    if operator.type not in _ACTIVATIONS or not bounds_known:
        return False
    if last.type == "Sum":
        return len(last.inputs) == _OPERANDS_OF_ADD
    return weights or last.type in _ACTIVATED


def _is_bias(operator: Operator, graph: OperatorGraph) -> bool:
    """Whether an Add adds one constant per column (last axis), and no more."""
    shapes = [graph.constants[name].shape for name in operator.inputs if name in graph.constants]
    columns = graph.tensors[operator.outputs[0]].shape[-1:]
    return any(shape[-1:] == columns and set(shape[:-1]) <= {1} for shape in shapes)


def _fused(parts: Sequence[Operator]) -> Operator:
    """Join parts that are run one after the other, each reading the one before."""
    inside = {name for part in parts[:-1] for name in part.outputs}
    return replace(
        parts[0],
        id=parts[-1].id,
        inputs=(
            *parts[0].inputs,
            *(name for part in parts[1:] for name in part.inputs if name not in inside and name),
        ),
        outputs=parts[-1].outputs,
        work=Work.total([part.work for part in parts]),
        members=tuple(name for part in parts for name in part.members),
        parts=tuple(parts),
        folded=tuple(folded for part in parts for folded in part.folded),
    )
