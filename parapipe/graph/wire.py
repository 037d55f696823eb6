"""Protobuf's wire format, walked field by field, so that large fields need not be read.

Source of the encoding: protobuf's "Encoding" page.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from typing import NamedTuple

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
_FIXED_BYTES = {FIXED64: 8, FIXED32: 4}
_LONGEST_VARINT = 10


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
        key, content = varint(data, at, end)
        number, wire = key >> 3, key & 7
        if number == 0 or wire not in (VARINT, LENGTH, *_FIXED_BYTES):
            raise WireError
        stop = content + _FIXED_BYTES.get(wire, 0)
        if wire == VARINT:
            _, stop = varint(data, content, end)
        elif wire == LENGTH:
            length, content = varint(data, content, end)
            stop = content + length
        if stop > end:
            raise OverrunError
        yield Field(number, wire, at, content, stop)
        at = stop


def varint(data: mmap.mmap, at: int, end: int) -> tuple[int, int]:
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


def write_varint(value: int, out: bytearray) -> None:
    """Append a number."""
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
