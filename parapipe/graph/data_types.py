"""ONNX's types as the operator graph writes them, and a graph after conversion to another type."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from math import ceil

import onnx

from parapipe.graph.operator_graph import (
    ITEM_BYTES,
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


CONVERTED = ("float16", "bfloat16", "float32")
"""Data types of tensors that a conversion concerns, the narrowest first."""


def converted(graph: OperatorGraph, dtype: str) -> OperatorGraph:
    """Return a graph whose floating-point tensors and constants are of a data type.

    float64 stays, and so do sequences, optional tensors and quantised operators. Operators multiply
    as much as before, and move as many elements.
    """
    tensors = {
        name: replace(tensor, dtype=dtype) if tensor.dtype in CONVERTED else tensor
        for name, tensor in graph.tensors.items()
    }
    constants = {
        name: replace(constant, dtype=dtype) if constant.dtype in CONVERTED else constant
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
