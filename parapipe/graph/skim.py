"""Reads ONNX files by protobuf's wire format: a model without its weights, or weights one by one.

The parser would load every byte; a model of 2 GB has a few hundred kilobytes that matter here.
Sources: protobuf's "Encoding" page, and `onnx.proto` for the field numbers.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
import onnx
from google.protobuf.message import DecodeError

from parapipe.errors import ModelError
from parapipe.files.shipped import require_regular
from parapipe.graph.infer import Array, constant_value
from parapipe.graph.model_source import external_bytes, is_external

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
_FIXED_BYTES = {FIXED64: 8, FIXED32: 4}
_LONGEST_VARINT = 10
# Tensors of up to 4096 elements of 8 bytes keep their data: shapes are computed from them.
KEPT_BYTES = 4096 * 8

_TOP_FIELDS = frozenset({1, 2, 3, 4, 5, 6, 7, 8, 14, 20, 25, 26})
# Which fields of which message hold messages that may hold tensors.
INSIDE: dict[str, dict[int, str]] = {
    "model": {7: "graph", 25: "function"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "function": {7: "node", 11: "attribute"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
}
# float_data, int32_data, string_data, int64_data, raw_data, double_data, uint64_data.
_TENSOR_DATA = frozenset({4, 5, 6, 7, 9, 10, 11})


class WireError(Exception):
    """The bytes are no protobuf message."""


class OverrunError(WireError):
    """A field is longer than the message that holds it."""


class Field(NamedTuple):
    """A field of a message.

    Parameters
    ----------
    number
        Its number in the `.proto` file; at least 1.
    wire
        Its wire type.
    start
        Where its tag begins.
    content
        Where its value begins; for a field with a length, behind the length.
    stop
        Where it ends.
    """

    number: int
    wire: int
    start: int
    content: int
    stop: int


def fields(data: mmap.mmap, begin: int, end: int) -> Iterator[Field]:
    """Yield the fields of the message in `begin` to `end`.

    Raises
    ------
    OverrunError
        If a field is longer than the message.
    WireError
        If the bytes are no message.
    """
    at = begin
    while at < end:
        key, content = _varint(data, at, end)
        number, wire = key >> 3, key & 7
        if number == 0 or wire not in (VARINT, LENGTH, *_FIXED_BYTES):
            raise WireError
        stop = content + _FIXED_BYTES.get(wire, 0)
        if wire == VARINT:
            _, stop = _varint(data, content, end)
        elif wire == LENGTH:
            length, content = _varint(data, content, end)
            stop = content + length
        if stop > end:
            raise OverrunError
        yield Field(number, wire, at, content, stop)
        at = stop


def _varint(data: mmap.mmap, at: int, end: int) -> tuple[int, int]:
    """Return the number at `at` and the position behind it; errors as `fields` has them."""
    value = 0
    for count in range(_LONGEST_VARINT):
        if at + count >= end:
            raise OverrunError
        byte = data[at + count]
        value |= (byte & 0x7F) << (7 * count)
        if byte < 0x80:
            return value, at + count + 1
    raise WireError


def _write_varint(value: int, out: bytearray) -> None:
    """Append a number."""
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def skim(path: Path) -> onnx.ModelProto:
    """Read a model without the data of its large tensors.

    Tensors whose data take more than `KEPT_BYTES` keep name, dims, type and the place of external
    data, and lose the data. External data are not read.

    Raises
    ------
    ModelError
        If the file is missing, unreadable, empty, truncated or no ONNX model.
    """
    small = _skim_file(path)
    model = onnx.ModelProto()
    try:
        model.ParseFromString(small)
    except DecodeError:
        raise _too_deep_error(path) from None
    if not model.HasField("graph") or not model.graph.node:
        raise ModelError(f"'{path}' holds no graph with operators: export the model again")
    if not model.opset_import:
        raise ModelError(f"'{path}' does not say which opset it needs: export the model again")
    return model


def _skim_file(path: Path) -> bytes:
    try:
        if path.is_dir():
            raise ModelError(f"'{path}' is a folder: give the .onnx file in it")
        require_regular(path)
        with path.open("rb") as file:
            if path.stat().st_size == 0:
                raise ModelError(f"'{path}' is empty: copy or export the model again")
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return _skim_bytes(path, data)
    except FileNotFoundError:
        raise ModelError(f"there is no file '{path}': check the path") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ModelError(f"'{path}' cannot be read ({reason}): check the file") from None


def _skim_bytes(path: Path, data: mmap.mmap) -> bytes:
    if data[:24].startswith(b"version https://git-lfs"):
        raise ModelError(f"'{path}' is a Git LFS pointer, not the model: run `git lfs pull`")
    out = bytearray()
    try:
        key, _ = _varint(data, 0, len(data))
        if key >> 3 not in _TOP_FIELDS or _is_text(data[:256]):
            raise _no_model_error(path)
        _copy_message(data, 0, len(data), "model", out)
    except OverrunError:
        raise ModelError(
            f"'{path}' is truncated: it ends in the middle of its graph, so copy or export it again"
        ) from None
    except WireError:
        raise _no_model_error(path) from None
    except RecursionError:
        raise _too_deep_error(path) from None
    return bytes(out)


def _no_model_error(path: Path) -> ModelError:
    return ModelError(f"'{path}' is no ONNX model: give a file in ONNX's binary format")


def _too_deep_error(path: Path) -> ModelError:
    return ModelError(
        f"'{path}' is no ONNX model, or its subgraphs are nested more than 30 deep: give a file in "
        "ONNX's binary format, or export its subgraphs flatter"
    )


def _is_text(start: bytes) -> bool:
    try:
        text = start.decode()
    except UnicodeDecodeError:
        return False
    return all(character.isprintable() or character in "\r\n\t" for character in text)


def _copy_message(data: mmap.mmap, begin: int, end: int, kind: str, out: bytearray) -> None:
    """Append the message in `begin` to `end` to `out`, without the data of its large tensors."""
    for field in fields(data, begin, end):
        inside = INSIDE[kind].get(field.number) if field.wire == LENGTH else None
        if inside is None or field.stop - field.content <= KEPT_BYTES:  # too short to lose data
            out += data[field.start : field.stop]
            continue
        part = bytearray()
        if inside == "tensor":
            _copy_tensor(data, field.content, field.stop, part)
        else:
            _copy_message(data, field.content, field.stop, inside, part)
        _write_varint(field.number << 3 | LENGTH, out)
        _write_varint(len(part), out)
        out += part


def _copy_tensor(data: mmap.mmap, begin: int, end: int, out: bytearray) -> None:
    parts = tuple(fields(data, begin, end))
    size = sum(part.stop - part.content for part in parts if part.number in _TENSOR_DATA)
    for part in parts:
        if size <= KEPT_BYTES or part.number not in _TENSOR_DATA:
            out += data[part.start : part.stop]


# Unsigned type of the same size; bits of the exponent and of the fraction.
_BITS: Mapping[str, tuple[str, int, int]] = {
    "float16": ("<u2", 0x7C00, 0x03FF),
    "bfloat16": ("<u2", 0x7F80, 0x007F),
    "float32": ("<u4", 0x7F800000, 0x007FFFFF),
    "float64": ("<u8", 0x7FF0000000000000, 0x000FFFFFFFFFFFFF),
}


def count_denormals(data: bytes, dtype: str) -> int:
    """Return how many of the numbers are denormal; 0 for types that know none.

    Parameters
    ----------
    data
        Whole numbers of this type, little-endian.
    """
    if dtype not in _BITS:
        return 0
    unsigned, exponent, fraction = _BITS[dtype]
    bits = np.frombuffer(data, unsigned)
    return int(np.count_nonzero(((bits & exponent) == 0) & ((bits & fraction) != 0)))


_TENSOR_NAME = 8
_NODE_OUTPUT, _NODE_OP_TYPE = 2, 4


class Weights:
    """The initializers and Constant nodes of a model file, those of its subgraphs included.

    It keeps the file open; use it in a `with` statement. Of two constants of one name, the outer
    one counts. External data are read from the files that `model_source` has checked.

    Parameters
    ----------
    path
        An ONNX file that `skim` can read.

    Raises
    ------
    ModelError
        If the file cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._places: dict[str, tuple[int, int, str]] = {}  # begin, end, kind of message
        try:
            with path.open("rb") as file:
                self._data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            self._index_message(0, len(self._data), "model")
        except (OSError, ValueError, WireError) as error:
            raise ModelError(f"'{path}' cannot be read ({error}): check the file") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_raised: object) -> None:
        self._data.close()

    def __contains__(self, name: str) -> bool:
        return name in self._places

    def read(self, name: str) -> Array:
        """Return a constant's values.

        Raises
        ------
        KeyError
            If there is no constant of that name.
        ModelError
            If it is sparse, or its data are missing or damaged.
        """
        begin, end, kind = self._places[name]
        content = self._data[begin:end]
        value = (
            constant_value(onnx.NodeProto.FromString(content))
            if kind == "node"
            else onnx.TensorProto.FromString(content)
        )
        if isinstance(value, onnx.TensorProto):
            return self._read_tensor(name, value)
        if value is None or isinstance(value, onnx.SparseTensorProto):
            raise ModelError(
                f"constant '{name}' of '{self._path}' is sparse or empty: store it as a dense "
                "tensor"
            )
        return value

    def _read_tensor(self, name: str, tensor: onnx.TensorProto) -> Array:
        try:
            if is_external(tensor):
                tensor.raw_data = external_bytes(tensor, self._path.parent)
                tensor.ClearField("external_data")
                tensor.data_location = onnx.TensorProto.DEFAULT
            return onnx.numpy_helper.to_array(tensor)
        except (OSError, ValueError, TypeError, DecodeError, onnx.checker.ValidationError) as error:
            raise ModelError(
                f"constant '{name}' of '{self._path}' cannot be read ({error}): export the model "
                "again"
            ) from None

    def _index_message(self, begin: int, end: int, kind: str) -> None:
        """Note where the constants of a message are; outer ones first."""
        nested: list[tuple[int, int, str]] = []
        for field in fields(self._data, begin, end):
            inside = INSIDE[kind].get(field.number, "") if field.wire == LENGTH else ""
            place = (field.content, field.stop, inside)
            if inside == "node" and self._text_field(_NODE_OP_TYPE, place) == b"Constant":
                name = self._text_field(_NODE_OUTPUT, place)
            elif inside == "tensor" and kind == "graph":
                name = self._text_field(_TENSOR_NAME, place)
            else:
                name = b""
                nested += [place] if inside in ("graph", "node", "attribute") else []
            if name:
                self._places.setdefault(name.decode(errors="replace"), place)
        for part in nested:
            self._index_message(*part)

    def _text_field(self, number: int, place: tuple[int, int, str]) -> bytes:
        """Return the first text field of that number in a message; empty if there is none."""
        matches = (each for each in fields(self._data, *place[:2]) if each.number == number)
        return next((self._data[at.content : at.stop] for at in matches if at.wire == LENGTH), b"")
