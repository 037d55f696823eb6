"""Names of ONNX's element types, as the operator graph writes them."""

from __future__ import annotations

import onnx

_NAMES: dict[int, str] = {
    onnx.TensorProto.DOUBLE: "float64",
    onnx.TensorProto.FLOAT: "float32",
    onnx.TensorProto.FLOAT16: "float16",
    onnx.TensorProto.BFLOAT16: "bfloat16",
    onnx.TensorProto.INT64: "int64",
    onnx.TensorProto.INT32: "int32",
    onnx.TensorProto.INT16: "int16",
    onnx.TensorProto.INT8: "int8",
    onnx.TensorProto.INT4: "int4",
    onnx.TensorProto.UINT64: "uint64",
    onnx.TensorProto.UINT32: "uint32",
    onnx.TensorProto.UINT16: "uint16",
    onnx.TensorProto.UINT8: "uint8",
    onnx.TensorProto.UINT4: "uint4",
    onnx.TensorProto.BOOL: "bool",
    onnx.TensorProto.STRING: "string",
    onnx.TensorProto.COMPLEX64: "complex64",
    onnx.TensorProto.COMPLEX128: "complex128",
    onnx.TensorProto.FLOAT8E4M3FN: "float8",
    onnx.TensorProto.FLOAT8E4M3FNUZ: "float8",
    onnx.TensorProto.FLOAT8E5M2: "float8",
    onnx.TensorProto.FLOAT8E5M2FNUZ: "float8",
}
# Types that older releases of ONNX do not have.
_NEWER = {"FLOAT4E2M1": "float4", "FLOAT8E8M0": "float8", "INT2": "int2", "UINT2": "uint2"}
_NAMES |= {
    onnx.TensorProto.DataType.Value(name): dtype
    for name, dtype in _NEWER.items()
    if name in set(onnx.TensorProto.DataType.keys())
}


def dtype_name(element_type: int) -> str | None:
    """Return the name of an ONNX element type; None if the operator graph knows none."""
    return _NAMES.get(element_type)


def dtype_names() -> tuple[str, ...]:
    """Return the names of all element types, each once."""
    return tuple(dict.fromkeys(_NAMES.values()))


def element_type(dtype: str) -> int | None:
    """Return an ONNX element type of that name, the first of several; None if there is none."""
    return next((number for number, name in _NAMES.items() if name == dtype), None)
