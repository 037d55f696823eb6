"""A model's files and tensors: what must hold of them, their digests, and data in other files.

Digests are streamed. Checked before anything is read are opsets, names and tensors.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from io import BufferedReader
from math import prod
from pathlib import Path

import onnx
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from parapipe.errors import ModelError
from parapipe.files.mistakes import listed
from parapipe.graph.data_types import dtype_name
from parapipe.graph.operator_graph import ITEM_BYTES, ModelSource, size_in_bytes

# Types of attributes that hold neither tensors nor graphs.
PLAIN = frozenset(
    {onnx.AttributeProto.INT, onnx.AttributeProto.FLOAT, onnx.AttributeProto.STRING}
    | {onnx.AttributeProto.INTS, onnx.AttributeProto.FLOATS, onnx.AttributeProto.STRINGS}
)

_INDICES = frozenset({onnx.TensorProto.INT32, onnx.TensorProto.INT64})
_MOST_INDEX_BYTES = 1 << 20
_MOST_DIGITS = 19
_LONGEST_NAME = 100  # characters


def model_source(
    path: Path, model: onnx.ModelProto, *, digests: bool = True, weights: bool = True
) -> ModelSource:
    """Check the external data files that a model's tensors name, and digest them and the model.

    External data are hashed in chunks and never kept. Without `digests` no byte of them is read,
    and the source has none. Without `weights` external data have empty digests, see
    `with_external_digests`.

    Raises
    ------
    ModelError
        If an external file is missing or shorter than a tensor needs, or if its location leaves
        the model's folder, itself or through a symbolic link.
    """
    folder = path.parent
    sizes: dict[str, int] = {}
    mistakes: list[str] = []
    for tensor in tensors_of(model):
        if is_external(tensor):
            location = external_entries(tensor).get("location", "")
            sizes[location] = max(sizes.get(location, 0), _required_bytes(tensor, mistakes))
    mistakes += (why for location in sorted(sizes) if (why := _location_mistake(folder, location)))
    if mistakes:
        raise ModelError(f"'{path}' has external data that cannot be used: {listed(mistakes)}")
    short = [
        f"'{location}' has {(folder / location).stat().st_size} bytes of {size}"
        for location, size in sorted(sizes.items())
        if (folder / location).stat().st_size < size
    ]
    if short:
        raise ModelError(
            f"'{path}' has truncated external data ({listed(short)}): copy the files again"
        )
    if not digests:
        return ModelSource(str(path), "")
    for location in sizes:  # what cannot be read is found now, not once there is a front
        with _open_readable(folder / location):
            pass
    source = ModelSource(str(path), _sha256(path), dict.fromkeys(sorted(sizes), ""))
    return with_external_digests(source) if weights else source


def with_external_digests(source: ModelSource) -> ModelSource:
    """Return a source with the digests of all its external data: that takes seconds per gigabyte.

    Raises
    ------
    ModelError
        A file cannot be read.
    """
    folder = Path(source.name).parent
    return replace(
        source,
        external={at: digest or _sha256(folder / at) for at, digest in source.external.items()},
    )


def is_external(tensor: onnx.TensorProto) -> bool:
    """Whether a tensor's data stand in another file."""
    return tensor.data_location == onnx.TensorProto.EXTERNAL


def external_entries(tensor: onnx.TensorProto) -> dict[str, str]:
    """Return what is said of the place of a tensor's external data."""
    return {entry.key: entry.value for entry in tensor.external_data}


def external_place(tensor: onnx.TensorProto) -> tuple[str, int, int]:
    """Return the file of external data that `model_source` has checked, its offset and its size."""
    entries = external_entries(tensor)
    return entries["location"], int(entries.get("offset", "0")), _size_bytes(tensor)


def external_bytes(tensor: onnx.TensorProto, folder: Path) -> bytes:
    """Read external data; a file may have several names (hard links), unlike in ONNX's own reader.

    Raises
    ------
    OSError
        If they cannot be read, or end too early.
    """
    location, offset, size_bytes = external_place(tensor)
    with (folder / location).open("rb") as file:
        file.seek(offset)
        data = file.read(size_bytes)
    if len(data) < size_bytes:
        raise OSError(f"'{location}' ends within the tensor")
    return data


def embed_indices(model: onnx.ModelProto, folder: Path) -> None:
    """Bring the data of small constants of whole numbers from other files into a model.

    Runtimes infer shapes from indices and sizes when they load a model, and some refuse it where
    those stand in other files.

    Raises
    ------
    OSError
        As of `external_bytes`.
    """
    for tensor in tensors_of(model):
        small = tensor.data_type in _INDICES and is_external(tensor)
        if small and external_place(tensor)[2] <= _MOST_INDEX_BYTES:
            tensor.raw_data = external_bytes(tensor, folder)
            tensor.ClearField("external_data")
            tensor.data_location = onnx.TensorProto.DEFAULT


def tensors_of(model: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    """Yield every tensor of a model: initializers and attributes, those of subgraphs included."""
    yield from _tensors_of_graph(model.graph)
    for function in model.functions:
        yield from tensors_of_nodes(function.node)


def _tensors_of_graph(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield sparse.values
        yield sparse.indices
    yield from tensors_of_nodes(graph.node)


def tensors_of_nodes(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.TensorProto]:
    """Yield every tensor in the attributes of nodes, those of subgraphs included."""
    for node in nodes:
        for attribute in node.attribute:
            if attribute.type in PLAIN:
                continue
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors
            if attribute.HasField("g"):
                yield from _tensors_of_graph(attribute.g)
            for graph in attribute.graphs:
                yield from _tensors_of_graph(graph)


def _required_bytes(tensor: onnx.TensorProto, mistakes: list[str]) -> int:
    """Return how many bytes the external file must have."""
    entries, size_bytes = external_entries(tensor), _size_bytes(tensor)
    numbers = {}
    for key in ("offset", "length"):
        number = entries.get(key, "0")
        if number.isascii() and number.isdigit() and len(number) <= _MOST_DIGITS:
            numbers[key] = int(number)
        else:
            mistakes.append(f"a tensor's {key} is '{number[:_MOST_DIGITS]}': export it again")
    length = numbers.get("length", size_bytes) or size_bytes
    if length != size_bytes:
        mistakes.append(
            f"'{tensor.name}' states {length} bytes, and its shape needs {size_bytes}: export it "
            "again"
        )
    return numbers.get("offset", 0) + size_bytes


def _size_bytes(tensor: onnx.TensorProto) -> int:
    """Return the bytes that a tensor's shape needs; 0 of a type that has none."""
    four = size_in_bytes((4, *tensor.dims), dtype_name(tensor.data_type) or "") or 0
    return -(-four // 4)  # four of it, for items may be parts of a byte


def _location_mistake(folder: Path, location: str) -> str:
    """Return what is wrong with an external location; empty if nothing is."""
    if not location or "\0" in location:
        return "a tensor names no file: export the model again"
    path = Path(location)
    shown = location if len(location) <= _LONGEST_NAME else f"{location[:_LONGEST_NAME]}…"
    try:
        inside = (folder / path).resolve().is_relative_to(folder.resolve())
        if path.is_absolute() or not inside:
            return f"'{shown}' lies outside the model's folder: put the file next to the model"
        if not (folder / path).is_file():
            return f"'{shown}' is missing: copy it next to the model"
    except (OSError, RuntimeError):  # a name that is too long, or links in a circle
        return f"'{shown}' cannot be found: put the file next to the model"
    return ""


def _sha256(path: Path) -> str:
    with _open_readable(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def _open_readable(path: Path) -> Iterator[BufferedReader]:
    """Open a file; whatever cannot be read of it is a ModelError."""
    try:
        with path.open("rb") as file:
            yield file
    except OSError as error:
        raise ModelError(f"'{path}' cannot be read ({error.strerror}): check the file") from None


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
