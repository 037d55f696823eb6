"""Shapes and types of one node's outputs, and their values where they are small and constant.

A node is put into a model of its own, so that its shapes follow from those already known and
from the values of its shape inputs; large weights enter as typed inputs without data.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import prod
from typing import TypeAlias, TypeVar

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from numpy.typing import NDArray

from parapipe.graph.data_types import shape_of
from parapipe.graph.order import NodeCache

Array: TypeAlias = NDArray[np.generic]
Types: TypeAlias = Mapping[str, onnx.TypeProto]
Elements: TypeAlias = tuple[tuple[int, ...], ...]
_CacheKey: TypeAlias = tuple[object, ...]
_Result = TypeVar("_Result")

# Larger results are not computed: a constant of this size cannot be part of a shape.
MOST_ELEMENTS = 4096
_MOST_SCALES = 16
# Results whose length depends on values, but is never above that of the inputs.
_BOUNDED_BY_INPUTS = frozenset({"NonZero", "Compress", "Unique", "NonMaxSuppression"})
# What a Constant node may hold instead of a tensor.
_CONSTANT_DTYPES: Mapping[str, type[np.generic]] = {
    **dict.fromkeys(("value_float", "value_floats"), np.float32),
    **dict.fromkeys(("value_int", "value_ints"), np.int64),
    **dict.fromkeys(("value_string", "value_strings"), np.object_),
}
# Of these, the elements of an input may be the dimensions of the output.
_TAKE_SHAPES = frozenset(
    {"Expand", "Reshape", "ConstantOfShape", "Tile", "Resize", "Pad", "MaxUnpool", "AffineGrid"}
)
_MOST_DIMENSIONS = 1024
# Where the weights of a convolution stand, `[out, in/group, *kernel]`.
_CONVOLUTIONS = {"Conv": 1, "ConvInteger": 1, "QLinearConv": 3}
_MOST_OUTSIDE = 1_000_000  # elements of an integer list that a body may take for a shape
# Of a one-node model any IR version will do that knows all element types.
_IR_VERSION = 10


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of tensors and sequences, by name; it grows while nodes are visited.

    Parameters
    ----------
    opsets
        Version of the operators of each domain; "" is that of ONNX.
    types
        Of all that exists so far.
    values
        Small constants.
    elements
        Shapes of the elements of sequences whose length is known.
    nodes
        What is known of them by themselves.
    inferred, evaluated
        What has been found of nodes without bodies, by all that it follows from.
    """

    opsets: Mapping[str, int]
    types: dict[str, onnx.TypeProto]
    values: dict[str, Array] = field(default_factory=dict)
    elements: dict[str, Elements] = field(default_factory=dict)
    nodes: NodeCache = field(default_factory=NodeCache)
    inferred: dict[_CacheKey, list[onnx.TypeProto | None]] = field(default_factory=dict)
    evaluated: dict[_CacheKey, list[Array | None]] = field(default_factory=dict)

    def shape(self, name: str) -> tuple[int, ...] | None:
        """Return the shape of a tensor; None if it is not known."""
        return shape_of(self.types.get(name))


def schema_of(op_type: str, version: int, domain: str) -> onnx.defs.OpSchema | None:
    """Return what ONNX says of an operator in a version of its domain; None if nothing."""
    if version and onnx.defs.has(op_type, version, domain):
        return onnx.defs.get_schema(op_type, version, domain)
    return None


def integer(node: onnx.NodeProto, name: str, default: int) -> int:
    """Return an integer attribute."""
    return next((a.i for a in node.attribute if a.name == name), default)


def infer(node: onnx.NodeProto, facts: Facts) -> tuple[dict[str, onnx.TypeProto], str]:
    """Infer the types of a node's outputs, given those of all that it reads.

    Returns
    -------
    Types by output name, without those that cannot be inferred, and what contradicts itself
    (empty if nothing does).
    """
    key = None if facts.nodes.has_body(node) else _cache_key(node, facts, _shape_hints(node, facts))
    if key in facts.inferred:
        return _results_by_name(node, facts.inferred[key]), ""
    types, mistake = _infer_node(node, facts)
    if key and not mistake:
        facts.inferred[key] = [types.get(name) for name in node.output]
    return types, mistake


def _results_by_name(node: onnx.NodeProto, results: Sequence[_Result | None]) -> dict[str, _Result]:
    pairs = zip(node.output, results, strict=True)
    return {name: each for name, each in pairs if name and each is not None}


def _cache_key(node: onnx.NodeProto, facts: Facts, values: Mapping[str, Array]) -> _CacheKey:
    """Return what the results of a node without a body follow from, whatever names it has."""
    return (
        node.op_type,
        node.domain,
        facts.nodes(node).attributes,
        tuple(
            (facts.types[name].SerializeToString(deterministic=True), _value_key(values.get(name)))
            if name
            else None
            for name in node.input
        ),
        tuple(map(bool, node.output)),
    )


def _value_key(value: Array | None) -> object:
    if value is None:
        return None
    data = tuple(value.ravel().tolist()) if value.dtype.hasobject else value.tobytes()
    return (value.dtype.str, value.shape, data)


def _shape_hints(node: onnx.NodeProto, facts: Facts) -> dict[str, Array]:
    """Return the values that shapes may depend on: integers, or a few scales."""
    values = {name: facts.values[name] for name in facts.nodes.reads(node) if name in facts.values}
    return {
        name: value
        for name, value in values.items()
        if value.dtype.kind in "iub" or value.size <= _MOST_SCALES
    }


def _infer_node(node: onnx.NodeProto, facts: Facts) -> tuple[dict[str, onnx.TypeProto], str]:
    version = facts.opsets.get(node.domain, 0)
    form = _form_mistake(node, version) or _group_mistake(node, facts)
    if mistake := form or _size_mistake(node, facts):
        return {}, mistake
    if schema_of(node.op_type, version, node.domain) is None:
        return {}, ""
    try:
        # Bodies need values propagated into them; a node without one has them as initializers.
        inferred = onnx.shape_inference.infer_shapes(
            _node_model(node, facts, _shape_hints(node, facts)),
            strict_mode=True,
            data_prop=facts.nodes.has_body(node),
        )
    except DecodeError:  # protobuf reads 100 messages within each other, three for each subgraph
        return {}, "its subgraphs are nested too deep to infer shapes: export them flatter"
    except (onnx.shape_inference.InferenceError, RuntimeError, ValueError) as error:
        return {}, _error_reason(str(error), node.op_type)
    types = {value.name: value.type for value in inferred.graph.output}
    if mistake := _reshape_mistake(node, facts, types):
        return {}, mistake
    return {name: kind for name, kind in types.items() if kind.WhichOneof("value")}, ""


def _size_mistake(node: onnx.NodeProto, facts: Facts) -> str:
    """Return whether a result would have absurdly many dimensions; empty if none would."""
    # ONNX writes one for each element of a shape, known or not, until memory ends.
    body = facts.nodes.has_body(node)
    if not body and node.op_type not in _TAKE_SHAPES:
        return ""
    limit = _MOST_OUTSIDE if body else _MOST_DIMENSIONS
    for name in facts.nodes.reads(node):
        shape = facts.shape(name)
        if shape is None or len(shape) != 1 or shape[0] <= limit:
            continue
        if facts.types[name].tensor_type.elem_type == onnx.TensorProto.INT64:
            return f"'{name}' is a shape of {shape[0]} dimensions"
    return ""


def _form_mistake(node: onnx.NodeProto, version: int) -> str:
    """Return what is wrong with the number of inputs or outputs; empty if nothing is."""
    if not node.domain and not version:
        return "the model does not say which opset it needs"
    schema = schema_of(node.op_type, version, node.domain)
    if schema is None and onnx.defs.has(node.op_type, node.domain):
        schema = onnx.defs.get_schema(node.op_type, node.domain)
    if schema is None:
        return ""
    for what, count, least, most in (
        ("inputs", len(node.input), schema.min_input, schema.max_input),
        ("outputs", len(node.output), schema.min_output, schema.max_output),
    ):
        if not least <= count <= most:
            return f"it has {count} {what}, which such an operator cannot have"
    return ""


def _group_mistake(node: onnx.NodeProto, facts: Facts) -> str:
    """Return whether a convolution's channels do not fit its groups; empty if they do."""
    at = _CONVOLUTIONS.get(node.op_type)
    if at is None or len(node.input) <= at:
        return ""
    group = integer(node, "group", 1)
    if group < 1:
        return f"its group is {group}, and must be at least 1"
    data, weights = facts.shape(node.input[0]), facts.shape(node.input[at])
    if not data or not weights or min(len(data), len(weights)) < 3:
        return ""
    if data[1] != weights[1] * group or weights[0] % group:
        groups = f"{group} groups of {weights[1]} channels"
        return f"its weights are for {groups} and {weights[0]} results, not for {data[1]} channels"
    return ""


def _reshape_mistake(node: onnx.NodeProto, facts: Facts, types: Types) -> str:
    """Return whether a Reshape would make or lose elements, which ONNX does not look at."""
    if node.op_type != "Reshape" or node.domain:
        return ""
    before, after = facts.shape(node.input[0]), shape_of(types.get(node.output[0]))
    if before is None or after is None or prod(before) == prod(after):
        return ""
    texts = ("x".join(map(str, shape)) or "1" for shape in (before, after))
    return f"it cannot turn {next(texts)} into {next(texts)}"


def evaluate(node: onnx.NodeProto, facts: Facts, inferred: Types) -> dict[str, Array]:
    """Compute a node's outputs from known values; empty if it cannot be or is not worth it."""
    if node.op_type in ("Shape", "Size") and not node.domain:
        return _evaluate_shape(node, facts)
    reads = [name for name in facts.nodes.reads(node) if name]
    if not facts.values.keys() >= set(reads) or not _is_small(node, inferred):
        return {}
    feeds = {name: facts.values[name] for name in reads}
    key = None if facts.nodes.has_body(node) else _cache_key(node, facts, facts.values)
    if key in facts.evaluated:
        return _results_by_name(node, facts.evaluated[key])
    results = _evaluate(node, facts, feeds)
    if key:
        facts.evaluated[key] = [results.get(name) for name in node.output]
    return results


def _evaluate(node: onnx.NodeProto, facts: Facts, feeds: dict[str, Array]) -> dict[str, Array]:
    from onnx.reference import ReferenceEvaluator

    try:
        with np.errstate(all="ignore"):
            results = ReferenceEvaluator(_node_model(node, facts, {})).run(None, feeds)
    except Exception:  # noqa: BLE001 - raises whatever NumPy does; no value is no error
        return {}
    return {
        name: result
        for name, result in zip(filter(None, node.output), results, strict=True)
        if isinstance(result, np.ndarray) and result.size <= MOST_ELEMENTS
    }


def constant_value(
    node: onnx.NodeProto,
) -> onnx.TensorProto | onnx.SparseTensorProto | Array | None:
    """Return what a Constant node holds; None if it holds nothing."""
    for attribute in node.attribute:
        if attribute.ref_attr_name:  # of a function, and this is none
            continue
        value = onnx.helper.get_attribute_value(attribute)
        if isinstance(value, onnx.TensorProto | onnx.SparseTensorProto):
            return value
        if attribute.name in _CONSTANT_DTYPES and value is not None:
            with suppress(TypeError, ValueError):  # a value of another type than its name says
                return np.array(value, _CONSTANT_DTYPES[attribute.name])
    return None


def _node_model(node: onnx.NodeProto, facts: Facts, values: Mapping[str, Array]) -> onnx.ModelProto:
    """Return a model of one node, with the values that its shapes may depend on."""
    opsets = [onnx.OperatorSetIdProto(domain=d, version=v) for d, v in facts.opsets.items()]
    model = onnx.ModelProto(ir_version=_IR_VERSION, opset_import=opsets)
    model.graph.name = "node"
    model.graph.node.append(node)
    for name in filter(None, dict.fromkeys(facts.nodes.reads(node))):
        model.graph.input.add(name=name).type.CopyFrom(facts.types[name])
        if (value := values.get(name)) is not None:
            model.graph.initializer.append(onnx.numpy_helper.from_array(value, name))
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in node.output if name)
    return model


def _evaluate_shape(node: onnx.NodeProto, facts: Facts) -> dict[str, Array]:
    shape = facts.shape(node.input[0])
    if shape is None:
        return {}
    if node.op_type == "Size":
        return {node.output[0]: np.array(prod(shape), np.int64)}
    part = shape[integer(node, "start", 0) : integer(node, "end", len(shape))]
    return {node.output[0]: np.array(part, np.int64)}


def _is_small(node: onnx.NodeProto, inferred: Types) -> bool:
    shapes = [shape_of(inferred.get(name)) for name in node.output if name]
    if any(shape is None for shape in shapes):
        return node.op_type in _BOUNDED_BY_INPUTS
    return all(prod(shape) <= MOST_ELEMENTS for shape in shapes if shape is not None)


def _error_reason(error: str, operator_type: str) -> str:
    """Return why inference failed; empty if it did within the function that defines an operator."""
    if set(re.findall(r"\(op_type:(\w+)", error)) - {operator_type}:
        return ""
    last = error.strip().splitlines()[-1]
    return re.split(r"\[\w*InferenceError\]", last)[-1].strip().rstrip(".") or "no reason given"
