"""Reads an ONNX file without its weights, by walking protobuf's wire format.

The parser would load every byte; a model of 2 GB has a few hundred kilobytes that matter here.
Source of the field numbers: `onnx.proto`; of the encoding: protobuf's "Encoding" page.
"""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import TYPE_CHECKING

from parapipe.errors import ModelError

if TYPE_CHECKING:
    import onnx

# Tensors of up to 4096 elements of 8 bytes keep their data: shapes are computed from them.
KEPT_BYTES = 4096 * 8

_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5
_FIXED_BYTES = {_FIXED64: 8, _FIXED32: 4}
_TOP_FIELDS = frozenset({1, 2, 3, 4, 5, 6, 7, 8, 14, 20, 25, 26})
_GRAPH_FIELD = 7
_LONGEST_VARINT = 10

# Which fields of which message hold messages that may hold tensors.
_INSIDE: dict[str, dict[int, str]] = {
    "model": {7: "graph", 25: "function"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "function": {7: "node", 11: "attribute"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
}
# float_data, int32_data, string_data, int64_data, raw_data, double_data, uint64_data.
_TENSOR_DATA = frozenset({4, 5, 6, 7, 9, 10, 11})


class _WireError(Exception):
    """The bytes are no protobuf message."""


class _OverrunError(_WireError):
    """A field is longer than the message that holds it."""


def skim(path: Path) -> onnx.ModelProto:
    """Read a model without the data of its large tensors.

    Tensors whose data take more than `KEPT_BYTES` keep name, dims, type and the place of external
    data, and lose the data. External data are not read.

    Raises
    ------
    ModelError
        If the file is missing, unreadable, empty, truncated or no ONNX model.
    """
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
    from onnx import ModelProto

    small = _skimmed_bytes(path)
    model = ModelProto()
    try:
        model.ParseFromString(small)
    except DecodeError:
        raise _no_model(path) from None
    if not model.HasField("graph") or not model.graph.node:
        raise ModelError(f"'{path}' holds no graph with operators: export the model again")
    if not model.opset_import:
        raise ModelError(f"'{path}' does not say which opset it needs: export the model again")
    return model


def _skimmed_bytes(path: Path) -> bytes:
    try:
        if path.is_dir():
            raise ModelError(f"'{path}' is a folder: give the .onnx file in it")
        with path.open("rb") as file:
            if path.stat().st_size == 0:
                raise ModelError(f"'{path}' is empty: copy or export the model again")
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return _skimmed(path, data)
    except FileNotFoundError:
        raise ModelError(f"there is no file '{path}': check the path") from None
    except (OSError, ValueError) as error:
        raise ModelError(f"'{path}' cannot be read ({error}): check the file") from None


def _skimmed(path: Path, data: mmap.mmap) -> bytes:
    if data[:24].startswith(b"version https://git-lfs"):
        raise ModelError(f"'{path}' is a Git LFS pointer, not the model: run `git lfs pull`")
    out = bytearray()
    try:
        field, _, _ = _tag(data, 0, len(data))
        if field not in _TOP_FIELDS or _is_text(data[:256]):
            raise _no_model(path)
        _copy(data, 0, len(data), "model", out)
    except _OverrunError:
        raise ModelError(
            f"'{path}' is truncated: it ends in the middle of its graph, so copy or export it again"
        ) from None
    except (_WireError, RecursionError):
        raise _no_model(path) from None
    return bytes(out)


def _no_model(path: Path) -> ModelError:
    return ModelError(f"'{path}' is no ONNX model: give a file in ONNX's binary format")


def _is_text(start: bytes) -> bool:
    try:
        text = start.decode()
    except UnicodeDecodeError:
        return False
    return all(character.isprintable() or character in "\r\n\t" for character in text)


def _varint(data: mmap.mmap, at: int, end: int) -> tuple[int, int]:
    """Return the number at `at` and the position behind it."""
    value = 0
    for count in range(_LONGEST_VARINT):
        if at + count >= end:
            raise _OverrunError
        byte = data[at + count]
        value |= (byte & 0x7F) << (7 * count)
        if byte < 0x80:
            return value, at + count + 1
    raise _WireError


def _tag(data: mmap.mmap, at: int, end: int) -> tuple[int, int, int]:
    """Return field number, wire type and the position behind the tag at `at`."""
    tag, behind = _varint(data, at, end)
    return tag >> 3, tag & 7, behind


def _field(data: mmap.mmap, at: int, end: int) -> tuple[int, int, int, int]:
    """Return field number, wire type, and where the content of the field at `at` begins and ends.

    The begin is that of the bytes behind a length; the end that of the whole field.
    """
    field, wire, begin = _tag(data, at, end)
    if wire == _VARINT:
        _, stop = _varint(data, begin, end)
    elif wire == _LENGTH:
        length, begin = _varint(data, begin, end)
        stop = begin + length
    elif wire in _FIXED_BYTES:
        stop = begin + _FIXED_BYTES[wire]
    else:
        raise _WireError
    if field == 0:
        raise _WireError
    if stop > end:
        raise _OverrunError
    return field, wire, begin, stop


def _copy(data: mmap.mmap, begin: int, end: int, kind: str, out: bytearray) -> None:
    """Append the message in `begin` to `end` to `out`, without the data of its large tensors."""
    inside = _INSIDE[kind]
    at = begin
    while at < end:
        field, wire, content, stop = _field(data, at, end)
        if wire == _LENGTH and field in inside:
            part = bytearray()
            if inside[field] == "tensor":
                _copy_tensor(data, content, stop, part)
            else:
                _copy(data, content, stop, inside[field], part)
            _write_varint(field << 3 | _LENGTH, out)
            _write_varint(len(part), out)
            out += part
        else:
            out += data[at:stop]
        at = stop


def _copy_tensor(data: mmap.mmap, begin: int, end: int, out: bytearray) -> None:
    if end - begin <= KEPT_BYTES:
        out += data[begin:end]
        return
    fields = []
    at = begin
    while at < end:
        field, _, content, stop = _field(data, at, end)
        fields.append((field, at, content, stop))
        at = stop
    size = sum(stop - content for field, _, content, stop in fields if field in _TENSOR_DATA)
    for field, start, _, stop in fields:
        if size <= KEPT_BYTES or field not in _TENSOR_DATA:
            out += data[start:stop]


def _write_varint(value: int, out: bytearray) -> None:
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
