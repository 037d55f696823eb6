"""Shapes and types of one node's outputs, and their values where they are small and constant.

A node is put into a model of its own, so that its shapes follow from those already known and
from the values of its shape inputs; large weights enter as typed inputs without data.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from math import prod
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import onnx
from numpy.typing import NDArray

from parapipe.graph.dtypes import dtype_name
from parapipe.graph.operator_graph import Tensor
from parapipe.graph.order import reads_of

if TYPE_CHECKING:
    from onnx import NodeProto

Array: TypeAlias = NDArray[np.generic]

# Larger results are not computed: a constant of this size cannot be part of a shape.
MOST_ELEMENTS = 4096
_MOST_SCALES = 16
# Results whose length depends on values, but is never above that of the inputs.
_BOUNDED_BY_INPUTS = frozenset({"NonZero", "Compress", "Unique", "NonMaxSuppression"})
# What a Constant node may hold instead of a tensor.
_CONSTANT_DTYPES: Mapping[str, type[np.generic]] = {
    "value_float": np.float32,
    "value_floats": np.float32,
    "value_int": np.int64,
    "value_ints": np.int64,
    "value_string": np.object_,
    "value_strings": np.object_,
}
# Of these, the elements of an input may be the dimensions of the output.
_TAKE_SHAPES = frozenset(
    {"Expand", "Reshape", "ConstantOfShape", "Tile", "Resize", "Pad", "MaxUnpool", "AffineGrid"}
)
_MOST_DIMENSIONS = 1024
_LARGEST_SIZE = 2**63 - 1
_MOST_OUTSIDE = 1_000_000  # elements of an integer list that a body may take for a shape
# Of a one-node model any IR version will do that knows all element types.
_IR_VERSION = 10


def infer(
    node: NodeProto,
    types: Mapping[str, onnx.TypeProto],
    values: Mapping[str, Array],
    opsets: Iterable[onnx.OperatorSetIdProto],
) -> tuple[dict[str, onnx.TypeProto], str]:
    """Infer the types of a node's outputs.

    Parameters
    ----------
    types
        Of all that the node reads.
    values
        Those that are known.

    Returns
    -------
    Types by output name, without those that cannot be inferred, and what contradicts itself
    (empty if nothing does).
    """
    opsets = list(opsets)
    version = next((opset.version for opset in opsets if opset.domain == node.domain), 0)
    if mistake := _form_mistake(node, version) or _size_mistake(node, types):
        return {}, mistake
    if not version or not onnx.defs.has(node.op_type, version, node.domain):
        return {}, ""
    model = _model(node, types, values, opsets)
    try:
        # Subgraphs need values carried along; a node without one has them as initializers.
        inferred = onnx.shape_inference.infer_shapes(
            model, strict_mode=True, data_prop=any(a.HasField("g") for a in node.attribute)
        )
    except (onnx.shape_inference.InferenceError, RuntimeError, ValueError) as error:
        return {}, "" if _is_about_another(str(error), node.op_type) else _reason(str(error))
    found = {value.name: value.type for value in inferred.graph.output}
    return {name: kind for name, kind in found.items() if kind.WhichOneof("value")}, ""


def _size_mistake(node: NodeProto, types: Mapping[str, onnx.TypeProto]) -> str:
    """Return whether a result would have absurdly many dimensions; empty if none would.

    ONNX writes one for each element of a shape, known or not, until memory ends.
    """
    body = any(attribute.HasField("g") for attribute in node.attribute)
    if not body and node.op_type not in _TAKE_SHAPES:
        return ""
    for name in reads_of(node):
        kind = types.get(name)
        shape = shape_of(kind)
        integers = kind is not None and kind.tensor_type.elem_type == onnx.TensorProto.INT64
        limit = _MOST_OUTSIDE if body else _MOST_DIMENSIONS
        if shape is not None and integers and len(shape) == 1 and shape[0] > limit:
            return f"'{name}' is a shape of {shape[0]} dimensions"
    return ""


def _form_mistake(node: NodeProto, version: int) -> str:
    """Return what is wrong with the number of inputs or outputs; empty if nothing is."""
    if not node.domain and not version:
        return "the model does not say which opset it needs"
    if version and onnx.defs.has(node.op_type, version, node.domain):
        schema = onnx.defs.get_schema(node.op_type, version, node.domain)
    elif onnx.defs.has(node.op_type, node.domain):
        schema = onnx.defs.get_schema(node.op_type, node.domain)
    else:
        return ""
    if not schema.min_input <= len(node.input) <= schema.max_input:
        return f"it has {len(node.input)} inputs, which such an operator cannot have"
    if not schema.min_output <= len(node.output) <= schema.max_output:
        return f"it has {len(node.output)} outputs, which such an operator cannot have"
    return ""


def evaluate(
    node: NodeProto,
    types: Mapping[str, onnx.TypeProto],
    values: Mapping[str, Array],
    opsets: Iterable[onnx.OperatorSetIdProto],
    inferred: Mapping[str, onnx.TypeProto],
) -> dict[str, Array]:
    """Compute a node's outputs from known values; empty if it cannot be or is not worth it."""
    if node.op_type in ("Shape", "Size") and not node.domain:
        return _evaluate_shape(node, types)
    if any(name and name not in values for name in reads_of(node)):
        return {}
    if not _is_small(node, inferred):
        return {}
    from onnx.reference import ReferenceEvaluator

    try:
        with np.errstate(all="ignore"):
            evaluator = ReferenceEvaluator(_model(node, types, {}, opsets))
            feeds = {name: values[name] for name in reads_of(node) if name}
            results = evaluator.run(None, feeds)
    except Exception:  # noqa: BLE001 - raises whatever NumPy does; no value is no error
        return {}
    named = zip((name for name in node.output if name), results, strict=True)
    return {
        name: result
        for name, result in named
        if isinstance(result, np.ndarray) and result.size <= MOST_ELEMENTS
    }


def constant_value(
    node: NodeProto,
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


def tensor_of(name: str, kind: onnx.TypeProto | None) -> Tensor | None:
    """Return a tensor, perhaps an optional one, of known shape and type; None if not known."""
    inner = unwrapped(kind)
    shape = shape_of(inner)
    dtype = dtype_name(inner.tensor_type.elem_type) if inner else None
    if shape is None or dtype is None:
        return None
    return Tensor(name, shape, dtype if inner is kind else f"optional({dtype})")


def unwrapped(kind: onnx.TypeProto | None) -> onnx.TypeProto | None:
    """Return the type that an optional holds; any other type as it is."""
    if kind is not None and kind.HasField("optional_type"):
        inner: onnx.TypeProto = kind.optional_type.elem_type
        return inner
    return kind


def shape_of(kind: onnx.TypeProto | None) -> tuple[int, ...] | None:
    """Return the shape of a dense tensor; None if a dimension or the rank is not known."""
    if kind is None or not kind.HasField("tensor_type"):
        return None
    if not kind.tensor_type.HasField("shape"):
        return None
    dims = kind.tensor_type.shape.dim
    if any(not dim.HasField("dim_value") or dim.dim_value < 0 for dim in dims):
        return None
    return tuple(dim.dim_value for dim in dims)


def tensor_type(element_type: int, shape: Iterable[int]) -> onnx.TypeProto:
    """Return the type of a dense tensor; without a shape where a size is beyond ONNX's 64 bits."""
    sizes = list(shape)
    known = all(size <= _LARGEST_SIZE for size in sizes)
    return onnx.helper.make_tensor_type_proto(element_type, sizes if known else None)


def _model(
    node: NodeProto,
    types: Mapping[str, onnx.TypeProto],
    values: Mapping[str, Array],
    opsets: Iterable[onnx.OperatorSetIdProto],
) -> onnx.ModelProto:
    model = onnx.ModelProto(ir_version=_IR_VERSION, opset_import=opsets)
    model.graph.name = "node"
    model.graph.node.append(node)
    for name in dict.fromkeys(reads_of(node)):
        if not name:
            continue
        model.graph.input.add(name=name).type.CopyFrom(types[name])
        if name in values and _may_shape(values[name]):
            model.graph.initializer.append(onnx.numpy_helper.from_array(values[name], name))
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in node.output if name)
    return model


def _may_shape(value: Array) -> bool:
    """Whether a shape may depend on a value: integers, or a few scales."""
    return value.dtype.kind in "iub" or value.size <= _MOST_SCALES


def _evaluate_shape(node: NodeProto, types: Mapping[str, onnx.TypeProto]) -> dict[str, Array]:
    shape = shape_of(types[node.input[0]])
    if shape is None:
        return {}
    if node.op_type == "Size":
        return {node.output[0]: np.array(prod(shape), np.int64)}
    bounds = {attribute.name: attribute.i for attribute in node.attribute}
    part = shape[bounds.get("start", 0) : bounds.get("end", len(shape))]
    return {node.output[0]: np.array(part, np.int64)}


def _is_small(node: NodeProto, inferred: Mapping[str, onnx.TypeProto]) -> bool:
    shapes = [shape_of(inferred.get(name)) for name in node.output if name]
    if any(shape is None for shape in shapes):
        return node.op_type in _BOUNDED_BY_INPUTS
    return all(prod(shape) <= MOST_ELEMENTS for shape in shapes if shape is not None)


def _is_about_another(error: str, operator_type: str) -> bool:
    """Whether inference failed within the function that ONNX defines an operator by."""
    return bool(set(re.findall(r"\(op_type:(\w+)", error)) - {operator_type})


def _reason(error: str) -> str:
    last = error.strip().splitlines()[-1]
    return re.split(r"\[\w*InferenceError\]", last)[-1].strip().rstrip(".") or "no reason given"
