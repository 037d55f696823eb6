"""What must hold of a model before anything is read from it: opsets and tensors that make sense."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from math import prod

import onnx
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from parapipe.errors import ModelError
from parapipe.files.mistakes import listed
from parapipe.graph.data_types import dtype_name
from parapipe.graph.model_source import PLAIN, is_external, tensors_of
from parapipe.graph.operator_graph import ITEM_BYTES

_DATA_FIELDS = (
    "raw_data", "float_data", "int32_data", "string_data", "int64_data", "double_data",
    "uint64_data",
)  # fmt: skip
# Fields of messages in which nobody looks for names.
_NO_NAMES = frozenset(
    {"doc_string", "producer_name", "producer_version", "metadata_props", "denotation"}
    | {"training_info", "quantization_annotation", "device_configurations", "configuration"}
    | {"onnx.GraphProto.name"}
)
_TEXT_OR_MESSAGE = (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_MESSAGE)
_TEXT = frozenset({str})
_LARGEST_VERSION = 2**31 - 1
_LONGEST_TYPE = 200
_COMPLEX = 2  # numbers per element in a typed field


def check_sound(model: onnx.ModelProto, model_name: str) -> None:
    """Check opset versions, and of all tensors the type, the shape and the amount of data.

    Raises
    ------
    ModelError
        Names all opsets or tensors that are wrong.
    """
    types = [node.op_type for node in model.graph.node if len(node.op_type) > _LONGEST_TYPE]
    if types:
        raise ModelError(
            f"'{model_name}' has operator types of more than {_LONGEST_TYPE} characters "
            f"({listed(types)}): export it again"
        )
    if wrong := [mistake for opset in model.opset_import for mistake in _opset_mistakes(opset)]:
        raise ModelError(f"'{model_name}' needs {listed(wrong)}: update onnx or export it again")
    damaged = [
        f"'{tensor.name}' {mistake}"
        for tensor in tensors_of(model)
        if (mistake := _tensor_mistake(tensor))
    ]
    if damaged:
        raise ModelError(
            f"'{model_name}' has damaged tensors ({listed(damaged)}): copy or export it again"
        )


def check_texts(model: onnx.ModelProto, model_name: str) -> None:
    """Check that all names are text; ModelError if one is not."""
    if not _is_text(model):
        raise ModelError(
            f"'{model_name}' has names that are no text in UTF-8: copy or export it again"
        )


def has_data(tensor: onnx.TensorProto) -> bool:
    """Whether a tensor's data stand in the model, and were not left out on reading."""
    if is_external(tensor):
        return False
    return (
        bool(tensor.raw_data)
        or prod(tensor.dims) == 0
        or any(len(getattr(tensor, name)) for name in _DATA_FIELDS)
    )


def _is_text(message: Message) -> bool:
    """Tell whether all names are text; of those that are no UTF-8, protobuf gives the bytes."""
    # Most of all messages are these; to list their fields takes several times as long.
    if isinstance(message, onnx.NodeProto):
        names = [message.name, message.op_type, message.domain, message.overload]
        names += message.input
        names += message.output
        rich = []
        for attribute in message.attribute:
            names += attribute.name, attribute.ref_attr_name
            if attribute.type not in PLAIN:
                rich.append(attribute)
        return {*map(type, names)} <= _TEXT and all(map(_is_text, rich))
    if isinstance(message, onnx.TensorProto):
        return type(message.name) is str and all(map(_is_text, message.external_data))
    for field, value in message.ListFields():
        kind = _message_or_text_type(field)
        if kind is None or isinstance(value, str):
            continue
        several = (value,) if isinstance(value, bytes | Message) else value
        if kind == FieldDescriptor.TYPE_STRING:
            if bytes in map(type, several):
                return False
        elif not all(map(_is_text, several)):
            return False
    return True


@cache
def _message_or_text_type(field: FieldDescriptor) -> int | None:
    """Return whether a field holds names or messages; None if neither."""
    if {field.name, field.full_name} & _NO_NAMES or field.type not in _TEXT_OR_MESSAGE:
        return None
    return int(field.type)


def _opset_mistakes(opset: onnx.OperatorSetIdProto) -> Iterator[str]:
    domain = opset.domain or "ai.onnx"
    newest = onnx.defs.onnx_opset_version() if domain == "ai.onnx" else _LARGEST_VERSION
    if opset.version < 1:
        yield f"version {opset.version} of the operators '{domain}', which does not exist"
    elif opset.version > newest:
        yield (
            f"version {opset.version} of the operators '{domain}', of which the installed onnx "
            f"{onnx.__version__} knows {newest}"
        )


def _tensor_mistake(tensor: onnx.TensorProto) -> str:
    """Return what is wrong with a tensor; empty if nothing is."""
    dtype = dtype_name(tensor.data_type)
    if dtype is None:
        return f"is of type {tensor.data_type}, which does not exist"
    if any(size < 0 for size in tensor.dims):
        return f"has the shape {'x'.join(map(str, tensor.dims))}"
    if not has_data(tensor):
        return ""
    if tensor.HasField("segment"):
        return "comes in segments, which nobody reads"
    have, want, unit = _data_amounts(tensor, dtype)
    return "" if have == want else f"has {have} of {want} {unit}"


def _data_amounts(tensor: onnx.TensorProto, dtype: str) -> tuple[int, int, str]:
    """Return how much data a tensor has, how much its shape asks for, and in what unit."""
    count = prod(tensor.dims)
    # In quarters of bytes, since four elements of 2 bits share one.
    size_bytes = -(-count * int(4 * ITEM_BYTES[dtype]) // 4)
    if dtype == "string":
        return len(tensor.string_data), count, "texts"
    if tensor.HasField("raw_data"):
        return len(tensor.raw_data), size_bytes, "bytes"
    have = len(getattr(tensor, onnx.helper.tensor_dtype_to_field(tensor.data_type)))
    if ITEM_BYTES[dtype] < 1:
        return have, size_bytes, "numbers"
    return have, count * (_COMPLEX if "complex" in dtype else 1), "numbers"
