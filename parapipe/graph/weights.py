"""Reads a model's constants one at a time, so that large models need little memory."""

from __future__ import annotations

import mmap
from collections.abc import Mapping
from pathlib import Path
from typing import Self

import numpy as np
import onnx
from google.protobuf.message import DecodeError

from parapipe.errors import ModelError
from parapipe.graph.infer import Array, constant_value
from parapipe.graph.model_source import external_bytes, is_external
from parapipe.graph.skim import INSIDE, LENGTH, WireError, fields

# Unsigned type of the same size; bits of the exponent and of the fraction.
_BITS: Mapping[str, tuple[str, int, int]] = {
    "float16": ("<u2", 0x7C00, 0x03FF),
    "bfloat16": ("<u2", 0x7F80, 0x007F),
    "float32": ("<u4", 0x7F800000, 0x007FFFFF),
    "float64": ("<u8", 0x7FF0000000000000, 0x000FFFFFFFFFFFFF),
}


def denormals_in(data: bytes, dtype: str) -> int:
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
