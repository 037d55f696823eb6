"""The bytes of a model's file, its weights made one at a time: no memory holds them all.

Protobuf writes fields by ascending numbers, and what has a length as tag, length and content.
Sources: protobuf's "Encoding" page, and `onnx.proto` for the numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import sha256
from math import prod

import onnx

from parapipe.zoo.emitter import Made

_GRAPH, _INITIALIZER, _RAW_DATA = 7, 5, 9
_LENGTH = 2  # wire type
_ITEM_BYTES = 4


def pieces(model: onnx.ModelProto, left_out: Mapping[str, Made]) -> Iterator[bytes]:
    """Yield a file piece by piece.

    Parameters
    ----------
    model
        One of `Emitter`, without the numbers of its weights.
    left_out
        What makes them, by name.
    """
    graph = model.graph
    nodes = _content(onnx.GraphProto(node=graph.node, name=graph.name))
    ends = _content(onnx.GraphProto(input=graph.input, output=graph.output))
    tensors: list[tuple[bytes, Made | None]] = []
    length = len(nodes) + len(ends)
    for tensor in graph.initializer:
        content, made = _content(tensor), left_out.get(tensor.name)
        count = _ITEM_BYTES * prod(tensor.dims) if made else 0
        if made:
            content += _head(_RAW_DATA, count)
        content = _head(_INITIALIZER, len(content) + count) + content
        tensors.append((content, made))
        length += len(content) + count
    yield _content(onnx.ModelProto(ir_version=model.ir_version, producer_name=model.producer_name))
    yield _head(_GRAPH, length) + nodes
    for content, made in tensors:
        yield content
        if made:
            yield made().tobytes()
    yield ends
    yield _content(onnx.ModelProto(opset_import=model.opset_import))


def digest(model: onnx.ModelProto, left_out: Mapping[str, Made]) -> str:
    """Return the SHA-256 of the file whose `pieces` are given likewise."""
    found = sha256()
    for piece in pieces(model, left_out):
        found.update(piece)
    return found.hexdigest()


def _content(message: onnx.GraphProto | onnx.ModelProto | onnx.TensorProto) -> bytes:
    content: bytes = message.SerializeToString(deterministic=True)
    return content


def _head(field: int, length: int) -> bytes:
    """Return tag and length of a field, as numbers of seven bits a byte, the lowest first."""
    written = bytearray([field << 3 | _LENGTH])
    while length >= 0x80:
        written.append(length & 0x7F | 0x80)
        length >>= 7
    written.append(length)
    return bytes(written)
