"""ONNX's types and attributes as the operator graph writes them, and graphs of another data type.

Constant inputs that an earlier opset had as attributes are attributes here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from math import ceil

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import AttributeProto

from parapipe.graph.operator_graph import (
    ITEM_BYTES,
    AttributeValue,
    NamedTensors,
    Operator,
    OperatorGraph,
    Tensor,
    Work,
)
from parapipe.graph.work import work_of

_LARGEST_SIZE = 2**63 - 1
_NAMES: dict[str, str] = {
    "DOUBLE": "float64", "FLOAT": "float32", "FLOAT16": "float16", "BFLOAT16": "bfloat16",
    **{name.upper(): name for name in ("int64", "int32", "int16", "int8", "int4")},
    **{name.upper(): name for name in ("uint64", "uint32", "uint16", "uint8", "uint4")},
    **{name.upper(): name for name in ("bool", "string", "complex64", "complex128")},
    **{f"FLOAT8{form}": "float8" for form in ("E4M3FN", "E4M3FNUZ", "E5M2", "E5M2FNUZ", "E8M0")},
    "FLOAT4E2M1": "float4", "INT2": "int2", "UINT2": "uint2",
}  # fmt: skip
# Older releases of ONNX do not have all types.
_NUMBERS: dict[str, int] = dict(onnx.TensorProto.DataType.items())
_DTYPES = {_NUMBERS[name]: dtype for name, dtype in _NAMES.items() if name in _NUMBERS}


def dtype_name(element_type: int) -> str | None:
    """Return the name of an ONNX element type; None if the operator graph knows none."""
    return _DTYPES.get(element_type)


def dtype_names() -> tuple[str, ...]:
    """Return the names of all element types, each once."""
    return tuple(dict.fromkeys(_DTYPES.values()))


def element_type(dtype: str) -> int | None:
    """Return an ONNX element type of that name, the first of several; None if there is none."""
    return next((number for number, name in _DTYPES.items() if name == dtype), None)


def element_type_of(kind: onnx.TypeProto | None) -> int:
    """Return the element type of a dense tensor, whatever its shape; UNDEFINED if not known."""
    return kind.tensor_type.elem_type if kind is not None else 0


def shape_of(kind: onnx.TypeProto | None) -> tuple[int, ...] | None:
    """Return the shape of a dense tensor; None if a dimension or the rank is not known."""
    return None if kind is None else _parse_shape(kind.SerializeToString())


@lru_cache(maxsize=4096)  # of a network, few types differ, and fields are looked up slowly
def _parse_shape(kind_bytes: bytes) -> tuple[int, ...] | None:
    kind = onnx.TypeProto.FromString(kind_bytes)
    if not kind.HasField("tensor_type"):
        return None
    if not kind.tensor_type.HasField("shape"):
        return None
    dims = kind.tensor_type.shape.dim
    if any(not dim.HasField("dim_value") or dim.dim_value < 0 for dim in dims):
        return None
    return tuple(dim.dim_value for dim in dims)


def unwrap(kind: onnx.TypeProto) -> onnx.TypeProto:
    """Return the type that an optional holds; any other type as it is."""
    inner: onnx.TypeProto = kind.optional_type.elem_type
    return inner if kind.HasField("optional_type") else kind


def tensor_of(name: str, kind: onnx.TypeProto | None) -> Tensor | None:
    """Return a tensor, perhaps an optional one, of known shape and type; None if not known."""
    if kind is None:
        return None
    shape, dtype = _parse_tensor(kind.SerializeToString())
    return None if shape is None else Tensor(name, shape, dtype)


@lru_cache(maxsize=4096)
def _parse_tensor(kind_bytes: bytes) -> tuple[tuple[int, ...] | None, str]:
    """Return the shape and the data type of a tensor, perhaps an optional one."""
    kind = onnx.TypeProto.FromString(kind_bytes)
    inner = unwrap(kind)
    shape, dtype = shape_of(inner), dtype_name(inner.tensor_type.elem_type)
    if shape is None or dtype is None:
        return None, ""
    return shape, dtype if inner is kind else f"optional({dtype})"


def tensor_type(element_type: int, shape: Iterable[int]) -> onnx.TypeProto:
    """Return the type of a dense tensor; without a shape where a size is beyond ONNX's 64 bits."""
    return _make_tensor_type(element_type, tuple(shape))


@lru_cache(maxsize=4096)
def _make_tensor_type(element_type: int, sizes: tuple[int, ...]) -> onnx.TypeProto:
    fits = all(size <= _LARGEST_SIZE for size in sizes)
    return onnx.helper.make_tensor_type_proto(element_type, sizes if fits else None)


CONVERTIBLE_TYPES = ("float16", "bfloat16", "float32")
"""Data types of tensors that a conversion concerns, the narrowest first."""


def convert_graph(graph: OperatorGraph, dtype: str) -> OperatorGraph:
    """Return a graph whose floating-point tensors and constants are of a data type.

    float64 stays, and so do sequences, optional tensors and quantised operators. Operators multiply
    as much as before, and move as many elements.
    """
    tensors = {
        name: replace(tensor, dtype=dtype) if tensor.dtype in CONVERTIBLE_TYPES else tensor
        for name, tensor in graph.tensors.items()
    }
    constants = {
        name: replace(constant, dtype=dtype) if constant.dtype in CONVERTIBLE_TYPES else constant
        for name, constant in graph.constants.items()
    }
    before: NamedTensors = {**graph.constants, **graph.tensors}
    after: NamedTensors = {**constants, **tensors}
    return replace(
        graph,
        operators=tuple(_convert_operator(each, before, after) for each in graph.operators),
        tensors=tensors,
        constants=constants,
    )


def _convert_operator(operator: Operator, before: NamedTensors, after: NamedTensors) -> Operator:
    if operator.computes_in:
        return operator
    folded = tuple(_convert_operator(each, before, after) for each in operator.folded)
    if operator.singles == (operator,):
        return replace(operator, work=_converted_work(operator, before, after), folded=folded)
    parts = tuple(_convert_operator(part, before, after) for part in operator.parts)
    work = replace(
        operator.work,
        read_bytes=sum(part.work.read_bytes for part in parts),
        written_bytes=sum(part.work.written_bytes for part in parts),
    )
    return replace(operator, parts=parts, work=work, folded=folded)


def _converted_work(operator: Operator, before: NamedTensors, after: NamedTensors) -> Work:
    """Return what an operator moves then; in proportion where rules or folding gave its bytes."""
    names = [name for name in (*operator.inputs, *operator.outputs) if name in before]
    changed = [name for name in names if before[name].dtype != after[name].dtype]
    if not changed:
        return operator.work
    own = operator.work.read_bytes, operator.work.written_bytes
    if all(name in before for name in operator.outputs if name):
        then, now = (
            work_of(
                operator.domain,
                operator.type,
                operator.attributes,
                operator.inputs,
                operator.outputs,
                known=tensors,
            )
            for tensors in (before, after)
        )
        if (then.read_bytes, then.written_bytes) == own:
            return replace(
                operator.work, read_bytes=now.read_bytes, written_bytes=now.written_bytes
            )
    first = changed[0]
    ratio = ITEM_BYTES[after[first].dtype] / ITEM_BYTES[before[first].dtype]
    read, written = (ceil(size * ratio) for size in own)
    return replace(operator.work, read_bytes=read, written_bytes=written)


_Values = Mapping[str, NDArray[np.generic]]

# Inputs that an earlier opset had as attributes, under the name that it had there.
_FORMER: Mapping[str, Mapping[int, str]] = {
    "Clip": {1: "min", 2: "max"},
    "Expand": {1: "shape"},
    "Pad": {1: "pads"},
    "Reshape": {1: "shape"},
    "Resize": {2: "scales", 3: "sizes"},
    "Slice": {1: "starts", 2: "ends", 3: "axes", 4: "steps"},
    "Split": {1: "split"},
    "Squeeze": {1: "axes"},
    "Tile": {1: "repeats"},
    "TopK": {1: "k"},
    "Unsqueeze": {1: "axes"},
    "Upsample": {1: "scales"},
    **{
        f"Reduce{kind}": {1: "axes"}
        for kind in [
            "Mean",
            "Sum",
            "Max",
            "Min",
            "Prod",
            "L1",
            "L2",
            "LogSum",
            "LogSumExp",
            "SumSquare",
        ]
    },
}
# Inputs that say how much of a cache is filled; no opset has them as attributes.
_FILLED: Mapping[tuple[str, str], Mapping[int, str]] = {
    ("", "Attention"): {6: "nonpad_kv_seqlen"},
    ("com.microsoft", "Attention"): {6: "past_sequence_length"},
    ("com.microsoft", "MultiHeadAttention"): {8: "past_sequence_length"},
    ("com.microsoft", "GroupQueryAttention"): {6: "total_sequence_length"},
}
_SCALARS = frozenset({"min", "max", "k", "past_sequence_length", "total_sequence_length"})
# A bound that bounds nothing is as good as none.
_NO_BOUND = (("min", -math.inf), ("max", math.inf))


def attributes_of(node: onnx.NodeProto, values: _Values) -> dict[str, AttributeValue]:
    """Return the attributes of a node by name, sorted.

    Numbers, texts and lists of them are given; tensors and subgraphs are not. Inputs with known
    `values` that an earlier opset had as attributes (Clip's `min` and `max`, `axes`, `pads`, ...)
    are given too, so that a reader need not know the opset, and so are the lengths of what a cache
    contains. A number that is not finite is given
    as the text "inf", "-inf" or "nan", which JSON can hold; a list with such a number, as texts.
    """
    result = {
        attribute.name: value
        for attribute in node.attribute
        if (value := _attribute_value(attribute)) is not None
    }
    result.update(_attributes_from_inputs(node, values))
    if node.op_type == "Clip" and not node.domain:
        result = {name: at for name, at in result.items() if (name, at) not in _NO_BOUND}
    return {name: _without_infinities(result[name]) for name in sorted(result)}


def input_of(operator_type: str, name: str) -> int | None:
    """Return the position of the input that an earlier opset had as an attribute of that name."""
    former = _FORMER.get(operator_type, {})
    return next((position for position, each in former.items() if each == name), None)


def _without_infinities(value: AttributeValue) -> AttributeValue:
    numbers = value if isinstance(value, tuple) else (value,)
    if all(not isinstance(item, float) or math.isfinite(item) for item in numbers):
        return value
    return tuple(map(str, numbers)) if isinstance(value, tuple) else str(value)


def _attributes_from_inputs(node: onnx.NodeProto, values: _Values) -> dict[str, AttributeValue]:
    filled = _FILLED.get((node.domain, node.op_type), {})
    former = filled if node.domain or filled else _FORMER.get(node.op_type, {})
    if node.op_type == "Resize" and len(node.input) == 2:  # as in opset 10
        former = {1: "scales"}
    attributes: dict[str, AttributeValue] = {}
    for position, name in former.items():
        array = values.get(node.input[position]) if position < len(node.input) else None
        if array is None or array.size == 0:
            continue
        flat = [number(item) for item in array.reshape(-1)]
        attributes[name] = flat[0] if name in _SCALARS else tuple(flat)
    return attributes


def number(item: np.generic) -> int | float:
    """Return a NumPy number as Python's; of a float32, the shortest that is the same float32."""
    if np.issubdtype(item.dtype, np.integer) or item.dtype == np.bool_:
        return int(item)
    return float(str(item))


def _attribute_value(attribute: onnx.AttributeProto) -> AttributeValue | None:
    match attribute.type:
        case AttributeProto.INT:
            return int(attribute.i)
        case AttributeProto.FLOAT:
            return number(np.float32(attribute.f))
        case AttributeProto.STRING:
            return attribute.s.decode(errors="replace")
        case AttributeProto.INTS:
            return tuple(int(item) for item in attribute.ints)
        case AttributeProto.FLOATS:
            return tuple(float(number(np.float32(item))) for item in attribute.floats)
        case AttributeProto.STRINGS:
            return tuple(item.decode(errors="replace") for item in attribute.strings)
    return None
