"""Models of one operator each, or of some, to be timed or compiled by themselves.

An operator is taken out of the model with its own nodes, attributes and opsets, and with what was
folded into it, so that ONNX Runtime folds it again. Shapes and constants are those of the model;
weights that cannot be read are random numbers of the same shape. Weights stored as integers stay
so, with the DequantizeLinear behind them, so that ONNX Runtime finds its kernel for integers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from parapipe.cost.signature import Signature, signature_of
from parapipe.graph.data_types import element_type, tensor_of
from parapipe.graph.operator_graph import Constant, Operator, OperatorGraph, Tensor
from parapipe.graph.order import reads_of
from parapipe.graph.quantised import DEQUANTISES
from parapipe.graph.resolve import Resolved, ResolvedNode
from parapipe.graph.work import OperatorClass, operator_class

NEWEST_IR = 10
"""ONNX Runtime 1.20, the oldest that is supported, reads models up to this version."""

LARGEST_BYTES = 2_000_000_000
UnitKey = tuple[Signature, str]
Read = Callable[[str], NDArray[np.generic] | None]
"""Returns a constant's values by its name, None where they cannot be read."""

_LARGEST_WEIGHT = 100
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
    def key(self) -> UnitKey:
        """What a profile has it under, beside the processor."""
        return self.signature, self.then

    @property
    def macs(self) -> int:
        """Multiply-accumulates of the (first) operator."""
        return self.operator.singles[0].work.macs

    @property
    def size_bytes(self) -> int:
        """Bytes that the (first) operator reads and writes."""
        work = self.operator.singles[0].work
        return work.read_bytes + work.written_bytes


@dataclass(frozen=True, slots=True)
class SingleModel:
    """The model of one operator.

    Parameters
    ----------
    random
        Names of its constants that cannot be read: random numbers stand in their place.
    weighted
        Whether it has constants at all.
    """

    proto: onnx.ModelProto
    random: tuple[str, ...]
    weighted: bool

    @property
    def weights(self) -> str:
        """Whose weights it has: `own`, `random`, or empty where it has none."""
        return ("random" if self.random else "own") if self.weighted else ""


def distinct_units(graph: OperatorGraph) -> tuple[Unit, ...]:
    """Return the distinct operators of a graph, in order of first appearance.

    Views are left out: inside a network they cost nothing.
    """
    operators_of: dict[UnitKey, list[Operator]] = {}
    for operator in graph.operators:
        if operator_class(operator.singles[0], graph) != "view":
            operators_of.setdefault(unit_key(operator, graph), []).append(operator)
    return tuple(
        Unit(equal[0], signature, operator_class(equal[0], graph), then, len(equal))
        for (signature, then), equal in operators_of.items()
    )


def unit_key(operator: Operator, graph: OperatorGraph) -> UnitKey:
    """Return the key of the distinct operator that an operator is."""
    first, *others = operator.singles
    return signature_of(first, graph), " ".join(part.type for part in others)


def single_model(
    unit: Unit, graph: OperatorGraph, resolved: Resolved, opsets: Mapping[str, int], read: Read
) -> SingleModel | str:
    """Return the model of one operator, or why none can be made; as `joint_model` otherwise."""
    return joint_model((unit.operator,), graph, resolved, opsets, read)


def joint_model(
    operators: Sequence[Operator],
    graph: OperatorGraph,
    resolved: Resolved,
    opsets: Mapping[str, int],
    read: Read,
) -> SingleModel | str:
    """Return the model of some operators, or why none can be made.

    Parameters
    ----------
    operators
        In the order of the graph. What they do not make themselves is an input of the model, what
        nobody or others read is an output.
    resolved
        The nodes of the model that `graph` was made of.
    opsets
        Version of each domain's operators.
    read
        Takes large constants out of the model, one at a time.
    """
    nodes = _with_dequantisers(_nodes_of(operators, graph, resolved), resolved)
    results = {name for node in nodes for name in node.output if name}
    operands = {name: None for node in nodes for name in reads_of(node) if name}
    outside = [name for name in operands if name not in results]
    weights = [name for name in outside if name in resolved.origins]
    inputs = [name for name in outside if name not in resolved.origins]
    inner = operands.keys() - _read_by_others(operators, graph, resolved)
    outputs = [name for name in results if name not in inner and name in resolved.tensors]
    integers = {node.input[0] for node in nodes if node.op_type == DEQUANTISES}
    integers.update(name for each in operators if each.computes_in for name in each.inputs)
    obstacle = _obstacle([*inputs, *outputs], weights, resolved)
    if obstacle:
        return obstacle
    values = {name: _own_values(name, resolved, read) for name in weights}
    random = tuple(name for name, value in values.items() if value is None)
    onnx_graph = helper.make_graph(
        nodes,
        "operator",
        [_value_info(name, resolved) for name in inputs],
        [_value_info(name, resolved) for name in sorted(outputs)],
        [
            numpy_helper.from_array(
                _random_values(name, resolved, name in integers) if value is None else value, name
            )
            for name, value in values.items()
        ],
    )
    model = helper.make_model(
        onnx_graph,
        opset_imports=[helper.make_opsetid(domain, version) for domain, version in opsets.items()],
        ir_version=NEWEST_IR,
        producer_name="parapipe",
    )
    return SingleModel(model, random, bool(weights))


def opsets_of(model: onnx.ModelProto) -> dict[str, int]:
    """Return the version of each domain's operators."""
    return {each.domain: each.version for each in model.opset_import}


def _read_by_others(
    operators: Sequence[Operator], graph: OperatorGraph, resolved: Resolved
) -> set[str]:
    """Return the tensors that leave the graph, or that other operators read.

    What stood between two operators and was removed passes on what it reads.
    """
    own = {name for each in operators for name in each.members}
    removed = _removed_nodes(graph, resolved)
    gone = {item.name for item in removed.values()}
    others = (item for item in resolved.nodes if item.name not in own and item.name not in gone)
    names = {*graph.outputs, *(name for item in others for name in reads_of(item.node))}
    return {_origin_of(name, removed) for name in names}


def _removed_nodes(graph: OperatorGraph, resolved: Resolved) -> dict[str, ResolvedNode]:
    """Return the nodes of which no operator was made, by the tensors that they write."""
    remaining = {name for each in graph.operators for name in each.members}
    return {
        name: item for item in resolved.nodes if item.name not in remaining for name in item.writes
    }


def _origin_of(name: str, removed: Mapping[str, ResolvedNode]) -> str:
    """Return the tensor that removed nodes pass on under a name; the name itself if none do."""
    while name in removed and removed[name].reads:
        name = removed[name].reads[0]
    return name


def _nodes_of(
    operators: Sequence[Operator], graph: OperatorGraph, resolved: Resolved
) -> Sequence[onnx.NodeProto]:
    """Return copies of operators' nodes, joined where what stood between them was removed."""
    by_name = {item.name: item for item in resolved.nodes}
    removed = _removed_nodes(graph, resolved)
    results: set[str] = set()
    nodes = []
    for item in (by_name[name] for each in operators for name in each.members):
        nodes.append(_join_node(item, results, removed))
        results.update(item.writes)
    return nodes


def _join_node(
    item: ResolvedNode, results: Iterable[str], removed: Mapping[str, ResolvedNode]
) -> onnx.NodeProto:
    node = onnx.NodeProto()
    node.CopyFrom(item.node)
    for position, name in enumerate(node.input):
        origin = _origin_of(name, removed)
        if origin in results:
            node.input[position] = origin
    return node


def _obstacle(values: Sequence[str], weights: Sequence[str], resolved: Resolved) -> str:
    for name in values:
        tensor = resolved.tensors.get(name)
        dtype = tensor.dtype if tensor else "unknown"
        if dtype not in (*_FLOATS, *_ZEROS):
            return f"its data type {dtype} has no NumPy array"
    constants = [_constant(name, resolved) for name in weights]
    for constant in constants:
        if constant.name not in resolved.values and constant.dtype not in (*_FLOATS, *_ZEROS):
            return f"its constants are of type {constant.dtype}"
    if sum(each.size_bytes for each in constants) > LARGEST_BYTES:
        return "its constants exceed 2 GB"
    return ""


def _with_dequantisers(
    nodes: Sequence[onnx.NodeProto], resolved: Resolved
) -> Sequence[onnx.NodeProto]:
    """Put what makes floating point of weights stored as integers before the nodes."""
    producers: dict[str, onnx.NodeProto] = {}
    waiting = [name for node in nodes for name in node.input if _is_stored(name, resolved)]
    for name in waiting:
        origin = resolved.origins[name]
        if isinstance(origin, onnx.NodeProto) and name not in producers:
            producers[name] = origin
            if origin.op_type != DEQUANTISES:
                waiting.append(origin.input[0])
    return [*reversed(producers.values()), *nodes]


def _is_stored(name: str, resolved: Resolved) -> bool:
    return name in resolved.constants and bool(resolved.constants[name].stored)


def _constant(name: str, resolved: Resolved) -> Constant | Tensor:
    """Return the shape and the type of a constant."""
    constant = resolved.constants.get(name) or tensor_of(name, resolved.types[name])
    assert constant is not None
    return constant


def _value_info(name: str, resolved: Resolved) -> onnx.ValueInfoProto:
    tensor = resolved.tensors[name]
    kind = element_type(tensor.dtype)
    assert kind is not None
    return helper.make_tensor_value_info(name, kind, tensor.shape)


def _own_values(name: str, resolved: Resolved, read: Read) -> NDArray[np.generic] | None:
    """Return a constant's values as they are, denormal numbers too; None if they cannot be read."""
    if name in resolved.values:
        return resolved.values[name]
    constant, values = _constant(name, resolved), read(name)
    if values is None or (values.shape, str(values.dtype)) != (constant.shape, constant.dtype):
        return None
    return values


def _random_values(name: str, resolved: Resolved, weights: bool) -> NDArray[np.generic]:
    """Return positive numbers in the place of a constant's, which stay finite.

    Integers are zeros, for they may be indices, unless they are weights.
    """
    constant, generator = _constant(name, resolved), np.random.default_rng(0)
    if constant.dtype in _FLOATS:
        return generator.uniform(0.1, 1, constant.shape).astype(constant.dtype)
    if weights:
        return generator.integers(0, _LARGEST_WEIGHT, constant.shape).astype(constant.dtype)
    return np.zeros(constant.shape, constant.dtype)
