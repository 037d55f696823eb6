"""Models of one operator each, to be run and timed by themselves.

An operator is taken out of the model with its own nodes, attributes and opsets, and with what was
folded into it, so that ONNX Runtime folds it again. Constants are those of the model. Where a model
of the zoo has no weights, or nodes compute them, they are random numbers of the same shape.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from parapipe.cost.signature import Signature, signature_of
from parapipe.graph.dtypes import element_type
from parapipe.graph.operator_graph import Operator, OperatorGraph
from parapipe.graph.order import reads_of
from parapipe.graph.resolve import Resolved, ResolvedNode
from parapipe.graph.weights import Weights
from parapipe.graph.work import OperatorClass, operator_class

NEWEST_IR = 10
"""ONNX Runtime 1.20, the oldest that is supported, reads models up to this version."""

LARGEST_BYTES = 2_000_000_000
_FLOATS = ("float32", "float64", "float16")
_ZEROS = ("int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8", "bool")


@dataclass(frozen=True, slots=True)
class Unit:
    """A distinct operator: what is timed at one go, and the key that a profile has it under.

    Parameters
    ----------
    operator
        The first of the graph's operators that has this key.
    signature, operator_class
        Of the operator, or of its first part if it is fused.
    then
        ONNX types of the other parts, separated by spaces.
    count
        How many operators of the graph have this key.
    """

    operator: Operator
    signature: Signature
    operator_class: OperatorClass
    then: str
    count: int

    @property
    def macs(self) -> int:
        """Multiply-accumulates of the (first) operator."""
        return self.operator.singles[0].work.macs

    @property
    def size_bytes(self) -> int:
        """Bytes that the (first) operator reads and writes."""
        work = self.operator.singles[0].work
        return work.read_bytes + work.written_bytes


def distinct_units(graph: OperatorGraph) -> tuple[Unit, ...]:
    """Return the distinct operators of a graph, in order of first appearance.

    Views are left out: inside a network they cost nothing.
    """
    found: dict[tuple[Signature, str], list[Operator]] = {}
    for operator in graph.operators:
        first, *others = operator.singles
        if operator_class(first, graph) != "view":
            key = (signature_of(first, graph), " ".join(part.type for part in others))
            found.setdefault(key, []).append(operator)
    return tuple(
        Unit(equal[0], signature, operator_class(equal[0], graph), then, len(equal))
        for (signature, then), equal in found.items()
    )


def single_model(
    unit: Unit,
    graph: OperatorGraph,
    resolved: Resolved,
    opsets: Mapping[str, int],
    own: Weights | None = None,
) -> onnx.ModelProto | str:
    """Return the model of one operator, or why none can be made.

    Parameters
    ----------
    resolved
        The nodes of the model that `graph` was made of.
    opsets
        Version of each domain's operators.
    own
        The model's weights, if it has any.
    """
    nodes = _nodes_of(unit.operator, graph, resolved)
    made = {name for node in nodes for name in node.output if name}
    used = {name: None for node in nodes for name in reads_of(node) if name}
    read = [name for name in used if name not in made]
    weights = [name for name in read if name in resolved.constants]
    inputs = [name for name in read if name not in resolved.constants]
    outputs = [name for name in made if name not in used and name in resolved.tensors]
    obstacle = _obstacle([*inputs, *outputs], weights, resolved)
    if obstacle:
        return obstacle
    made_graph = helper.make_graph(
        nodes,
        "operator",
        [_value_info(name, resolved) for name in inputs],
        [_value_info(name, resolved) for name in sorted(outputs)],
        [numpy_helper.from_array(_values(name, resolved, own), name) for name in weights],
    )
    return helper.make_model(
        made_graph,
        opset_imports=[helper.make_opsetid(domain, version) for domain, version in opsets.items()],
        ir_version=NEWEST_IR,
        producer_name="parapipe",
    )


def opsets_of(model: onnx.ModelProto) -> dict[str, int]:
    """Return the version of each domain's operators."""
    return {each.domain: each.version for each in model.opset_import}


def _nodes_of(
    operator: Operator, graph: OperatorGraph, resolved: Resolved
) -> Sequence[onnx.NodeProto]:
    """Return copies of an operator's nodes, joined where what stood between them was removed."""
    by_name = {item.name: item for item in resolved.nodes}
    kept = {name for each in graph.operators for name in each.members}
    removed = {
        name: item for item in resolved.nodes if item.name not in kept for name in item.writes
    }
    made: set[str] = set()
    nodes = []
    for item in map(by_name.__getitem__, operator.members):
        nodes.append(_joined(item, made, removed))
        made.update(item.writes)
    return nodes


def _joined(
    item: ResolvedNode, made: Iterable[str], removed: Mapping[str, ResolvedNode]
) -> onnx.NodeProto:
    node = onnx.NodeProto()
    node.CopyFrom(item.node)
    for position, name in enumerate(node.input):
        origin = name
        while origin in removed:
            origin = removed[origin].reads[0]
        if origin in made:
            node.input[position] = origin
    return node


def _obstacle(values: Sequence[str], weights: Sequence[str], resolved: Resolved) -> str:
    for name in values:
        tensor = resolved.tensors.get(name)
        dtype = tensor.dtype if tensor else "unknown"
        if dtype not in (*_FLOATS, *_ZEROS):
            return f"its data type {dtype} has no NumPy array"
    constants = [resolved.constants[name] for name in weights]
    for constant in constants:
        if constant.name not in resolved.values and constant.dtype not in (*_FLOATS, *_ZEROS):
            return f"its constants are of type {constant.dtype}"
    if sum(each.size_bytes for each in constants) > LARGEST_BYTES:
        return "its constants exceed 2 GB"
    return ""


def _value_info(name: str, resolved: Resolved) -> onnx.ValueInfoProto:
    tensor = resolved.tensors[name]
    kind = element_type(tensor.dtype)
    assert kind is not None
    return helper.make_tensor_value_info(name, kind, tensor.shape)


def _values(name: str, resolved: Resolved, own: Weights | None) -> NDArray[np.generic]:
    """Return a constant of the model, or positive numbers, which stay finite, in its place."""
    if name in resolved.values:
        return resolved.values[name]
    constant = resolved.constants[name]
    if own is not None and name in own and not constant.nodes:
        return own.read(name)
    if constant.dtype not in _FLOATS:
        return np.zeros(constant.shape, constant.dtype)
    drawn = np.random.default_rng(0).uniform(0.1, 1, constant.shape)
    return drawn.astype(constant.dtype)
