"""Large constants as external data: those of a segment beside it, those of several in one file.

They are copied piece by piece, so models may be larger than memory and than protobuf's 2 GB; what
is all zeros takes no room on disk where the file system knows holes.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import onnx

from parapipe.graph.data_types import dtype_name
from parapipe.graph.model_source import external_place, is_external

SHARED = "shared.bin"
SMALL_BYTES = 1024  # what is smaller stands in the model file
PAGE_BYTES = 4096  # ONNX wants large tensors at multiples of it, so that they can be mapped
LINE_BYTES = 64
CHUNK_BYTES = 1 << 18  # stays in a core's cache
_ZEROS = bytes(CHUNK_BYTES)

Key = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a tensor's data shall be, and where they are.

    Parameters
    ----------
    name, dtype
        Of the tensor.
    location, offset
        File in the folder, and the place in it.
    size_bytes
        Its bytes.
    source
        The tensor that holds them, or a file of the model's folder and the place in it.
    """

    name: str
    dtype: str
    location: str
    offset: int
    size_bytes: int
    source: onnx.TensorProto | tuple[str, int]


def key_of(name: str, tensor: onnx.TensorProto) -> Key:
    """Return what two tensors with the same data have in common: their place, else their name."""
    if not is_external(tensor):
        return (name,)
    return external_place(tensor)


def size_of(tensor: onnx.TensorProto) -> int:
    """Return the bytes of a tensor's data if they are, or may be, external; else 0."""
    return external_place(tensor)[2] if is_external(tensor) else len(tensor.raw_data)


def is_placed(tensor: onnx.TensorProto) -> bool:
    """Whether a tensor's data go into a file of weights."""
    return is_external(tensor) or len(tensor.raw_data) >= SMALL_BYTES


def assign_places(read_by: Mapping[str, Mapping[Key, onnx.TensorProto]]) -> dict[Key, Place]:
    """Give each tensor its place.

    Parameters
    ----------
    read_by
        Tensors to place that each segment reads, by the segment's id.
    """
    users: dict[Key, list[str]] = {}
    tensors: dict[Key, onnx.TensorProto] = {}
    for segment, read in read_by.items():
        for key, tensor in read.items():
            users.setdefault(key, []).append(segment)
            tensors[key] = tensor
    ends: dict[str, int] = {}
    place_of = {}
    for key, tensor in tensors.items():
        location = SHARED if len(users[key]) > 1 else f"{users[key][0]}.bin"
        size_bytes = size_of(tensor)
        step = PAGE_BYTES if size_bytes >= PAGE_BYTES else LINE_BYTES
        offset = -(-ends.get(location, 0) // step) * step
        ends[location] = offset + size_bytes
        dtype = dtype_name(tensor.data_type) or ""
        name = tensor.name or str(key[0])
        place_of[key] = Place(name, dtype, location, offset, size_bytes, _data_source(tensor))
    return place_of


def refer(tensor: onnx.TensorProto, place: Place) -> None:
    """Make a tensor, whose data are gone, refer to its place."""
    for field in ("raw_data", "external_data"):
        tensor.ClearField(field)
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in (
        ("location", place.location),
        ("offset", str(place.offset)),
        ("length", str(place.size_bytes)),
    ):
        tensor.external_data.add(key=key, value=value)


def write_weights(
    where: Iterable[Place],
    model_folder: Path,
    folder: Path,
    on_chunk: Callable[[Place, bytes], None] = lambda _place, _chunk: None,
) -> dict[str, str]:
    """Write the files of weights; return the SHA-256 of each by its name.

    Parameters
    ----------
    on_chunk
        Called with each tensor's place and data, piece by piece, each of whole numbers.

    Raises
    ------
    OSError
        If a file cannot be read or written.
    """
    by_file: dict[str, list[Place]] = {}
    for place in where:
        by_file.setdefault(place.location, []).append(place)
    digests = {}
    for location, inside in by_file.items():
        digest = hashlib.sha256()
        with (folder / location).open("xb") as file:
            for chunk in _file_content(inside, model_folder, on_chunk):
                digest.update(chunk)
                if chunk == _ZEROS[: len(chunk)]:
                    file.seek(len(chunk), os.SEEK_CUR)
                else:
                    file.write(chunk)
            file.truncate()
            file.flush()
            os.fsync(file.fileno())
        digests[location] = digest.hexdigest()
    return digests


def _file_content(
    inside: Iterable[Place], model_folder: Path, on_chunk: Callable[[Place, bytes], None]
) -> Iterator[bytes]:
    """Yield the bytes of a file of weights, its gaps included."""
    at = 0
    for place in inside:
        yield bytes(place.offset - at)
        for chunk in _chunks(place, model_folder):
            on_chunk(place, chunk)
            yield chunk
        at = place.offset + place.size_bytes


def _chunks(place: Place, model_folder: Path) -> Iterator[bytes]:
    if isinstance(place.source, onnx.TensorProto):
        data = place.source.raw_data
        yield from (data[at : at + CHUNK_BYTES] for at in range(0, len(data), CHUNK_BYTES))
        return
    location, offset = place.source
    with (model_folder / location).open("rb") as file:
        file.seek(offset)
        left = place.size_bytes
        while left:
            chunk = file.read(min(left, CHUNK_BYTES))
            if not chunk:
                raise OSError(None, f"'{location}' ends within a tensor")
            yield chunk
            left -= len(chunk)


def _data_source(tensor: onnx.TensorProto) -> onnx.TensorProto | tuple[str, int]:
    if not is_external(tensor):
        return tensor
    return external_place(tensor)[:2]
