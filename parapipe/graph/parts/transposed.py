"""ConvTranspose: each element of the input is spread over a window of the output."""

from __future__ import annotations

from collections.abc import Mapping

from parapipe.graph.parts.part import (
    Cut,
    Part,
    Range,
    RangeError,
    Ranges,
    Rule,
    Single,
    WholeError,
    along,
)
from parapipe.graph.parts.windows import Window, explicit_pads

_SPATIAL = 2


def _transposed(single: Single, axis: int) -> Cut:
    if axis == 0:
        return along((0, 0))
    if axis == 1:
        return _channels(single)
    return _rows(single, axis)


def _channels(single: Single) -> Cut:
    groups = single.integer("group", 1)
    read, made = single.shape(1)[0] // groups, single.shape(1)[1]

    def part(begin: int, end: int) -> Part:
        ranges: dict[int, Ranges] = {2: (Range(0, begin, end),)}
        if groups == 1:
            return Part(single.reads({**ranges, 1: (Range(1, begin, end),)}))
        if begin % made or end % made:
            raise RangeError(f"its channels are cut between its {groups} groups only")
        first, last = begin // made, end // made
        ranges |= {0: (Range(1, first * read, last * read),)}
        ranges |= {1: (Range(0, first * read, last * read),)}
        return Part(single.reads(ranges), {"group": last - first})

    return Cut(part, 1 if groups == 1 else made)


def _spread(single: Single) -> tuple[list[Window], list[int]]:
    """Return the window of each axis, and how much is added behind what the windows make.

    A window's padding is what is cut off the output.
    """
    kernel = single.shape(1)[_SPATIAL:]
    count = len(kernel)
    strides = single.integers("strides", (1,) * count)
    dilations = single.integers("dilations", (1,) * count)
    extra = list(single.integers("output_padding", (0,) * count))
    pads = single.integers("pads", (0,) * 2 * count)
    mode = single.text("auto_pad", "NOTSET")
    if mode.startswith("SAME") and any(extra):
        raise WholeError("what auto_pad does with its output_padding is not defined")
    found = []
    for at, (length, stride, dilation) in enumerate(zip(kernel, strides, dilations, strict=True)):
        size, made = single.shape()[_SPATIAL + at], single.output[_SPATIAL + at]
        before, after = pads[at], pads[count + at]
        if single.integers("output_shape") or mode.startswith("SAME"):
            total = (size - 1) * stride + extra[at] + (length - 1) * dilation + 1 - made
            extra[at] += max(0, -total)
            total = max(0, total)
            before = total // 2 if mode == "SAME_UPPER" else total - total // 2
            after = total - before
        found.append(Window(size, length, stride, dilation, before, after))
    return found, extra


def _rows(single: Single, axis: int) -> Cut:
    spread, extra = _spread(single)
    at = axis - _SPATIAL
    window = spread[at]

    def part(begin: int, end: int) -> Part:
        # Places in the output before anything is cut off it.
        start, stop = begin + window.before, end + window.before
        first = min(-(-(start - window.extent + 1) // window.stride), start // window.stride)
        last = max((stop - 1) // window.stride, -(-(stop - window.extent) // window.stride))
        read = Range(axis, min(max(0, first), window.size - 1), min(window.size, last + 1))
        before = start - read.begin * window.stride
        after = (read.end - 1) * window.stride + window.extent - stop
        nothing = read.size <= 0 or before < 0
        if nothing or -after >= max(window.stride, window.dilation):
            raise RangeError("a part would read nothing")
        added = [*extra[:at], max(0, -after), *extra[at + 1 :]]
        changes = explicit_pads(single, spread, at, before, max(0, after))
        if any(added) or "output_padding" in single.attributes:
            changes["output_padding"] = tuple(added)
        if "output_shape" in single.attributes:
            changes["output_shape"] = None
        return Part(single.reads({0: (read,)}), changes)

    return Cut(part)


RULES: Mapping[str, Rule] = {"ConvTranspose": _transposed}
