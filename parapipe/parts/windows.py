"""Convolutions, pools and ConvTranspose: a range of rows, and the rows that its windows read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from parapipe.graph.operator_graph import AttributeValue
from parapipe.parts.part import (
    Cut,
    NotCuttableError,
    Part,
    Range,
    RangeError,
    Ranges,
    Rule,
    Single,
    along,
)

_SPATIAL = 2  # axes before the first one of a window


@dataclass(frozen=True, slots=True)
class Window:
    """A window that moves along one axis.

    Parameters
    ----------
    size
        Elements of the input along the axis.
    kernel
        Elements of the window.
    dilation
        Distance of two of them.
    before, after
        Padding.
    """

    size: int
    kernel: int
    stride: int
    dilation: int
    before: int
    after: int

    @property
    def extent(self) -> int:
        """Elements from the first to the last that the window covers."""
        return (self.kernel - 1) * self.dilation + 1

    def padded(self, total: int, *, upper: bool) -> Window:
        """Return it with a padding of `total`; `upper` puts the smaller half before."""
        before = total // 2 if upper else total - total // 2
        return replace(self, before=before, after=total - before)


def convolution(weights: int = 1, per_channel: Sequence[int] = (2,)) -> Rule:
    """Return the rule of a convolution.

    Parameters
    ----------
    weights
        Position of the weights, `[out, in/group, *kernel]`.
    per_channel
        Positions of inputs that may have one element per output channel.
    """

    def rule(single: Single, axis: int) -> Cut:
        if axis == 0:
            return along((0, 0))
        if axis == 1:
            return _cut_channels(single, weights, per_channel)
        return Cut(partial(_rows, single, list(windows(single, single.shape(weights)[2:])), axis))

    return rule


def _cut_channels(single: Single, weights: int, per_channel: Sequence[int]) -> Cut:
    groups = single.integer("group", 1)
    outputs, read = single.shape(weights)[0] // groups, single.shape(weights)[1]

    def part(begin: int, end: int) -> Part:
        requested = Range(0, begin, end)
        ranges: dict[int, Ranges] = {
            at: (requested,) for at in per_channel if single.shape(at) == (groups * outputs,)
        }
        ranges[weights] = (requested,)
        if groups == 1:
            return Part(single.reads(ranges))
        first, last = begin // outputs, -(-end // outputs)
        if last - first > 1 and (begin % outputs or end % outputs):
            raise RangeError(f"its channels are cut between its {groups} groups only")
        ranges[0] = (Range(1, first * read, last * read),)
        return Part(single.reads(ranges), {"group": last - first})

    return Cut(part, 1 if groups == 1 else outputs)


def windows(single: Single, kernel: Sequence[int]) -> Iterator[Window]:
    """Yield the window of each axis after the second, its padding as numbers."""
    mode = single.text("auto_pad", "NOTSET")
    for window, output_size in _stated_windows(single, kernel):
        if mode == "VALID":
            yield replace(window, before=0, after=0)
        elif mode.startswith("SAME"):
            total = (output_size - 1) * window.stride + window.extent - window.size
            if total < 0 and "Conv" not in single.type:
                # ONNX would cut something off; runtimes do so in different ways.
                raise NotCuttableError("with auto_pad, its strides are larger than its windows")
            yield window.padded(max(0, total), upper=mode == "SAME_UPPER")
        else:
            yield window


def _stated_windows(single: Single, kernel: Sequence[int]) -> Iterator[tuple[Window, int]]:
    """Yield the window of each axis after the second as attributes state it, and the result's size.

    What they do not state of the padding is 0.
    """
    count = len(kernel)
    strides = single.integers("strides", (1,) * count)
    dilations = single.integers("dilations", (1,) * count)
    pads = single.integers("pads", (0,) * 2 * count)
    for at, (length, stride, dilation) in enumerate(zip(kernel, strides, dilations, strict=True)):
        size, output_size = single.shape()[_SPATIAL + at], single.output[_SPATIAL + at]
        yield Window(size, length, stride, dilation, pads[at], pads[count + at]), output_size


def _rows(single: Single, along_axes: Sequence[Window], axis: int, begin: int, end: int) -> Part:
    window = along_axes[axis - _SPATIAL]
    start = begin * window.stride - window.before
    stop = (end - 1) * window.stride - window.before + window.extent
    read = Range(axis, max(0, start), min(window.size, stop))
    if read.size <= 0:
        raise RangeError("a part would read nothing but padding")
    # Windows that ceil_mode adds go beyond the padding; an average does not count what is there.
    after = min(window.after, max(0, stop - window.size))
    changes = explicit_pads(single, along_axes, axis - _SPATIAL, read.begin - start, after)
    return Part(single.reads({0: (read,)}), changes)


def explicit_pads(
    single: Single, along_axes: Sequence[Window], at: int, before: int, after: int
) -> dict[str, AttributeValue | None]:
    """Return the attributes that say a part's padding, other than the whole's along one axis."""
    pads = [(each.before, each.after) for each in along_axes]
    pads[at] = before, after
    changes: dict[str, AttributeValue | None] = {
        "pads": (*(first for first, _ in pads), *(last for _, last in pads))
    }
    if "auto_pad" in single.attributes:
        changes["auto_pad"] = None
    return changes


def _pool(single: Single, axis: int) -> Cut:
    if len(single.outputs) > 1:
        raise NotCuttableError(
            "its second result counts elements from the first of the whole input"
        )
    if axis < _SPATIAL:
        return along((0, axis))
    return Cut(partial(_rows, single, list(windows(single, single.integers("kernel_shape"))), axis))


def _global_pool(_single: Single, axis: int) -> Cut:
    if axis < _SPATIAL:
        return along((0, axis))
    raise NotCuttableError("each of its results takes all rows and columns")


RULES: Mapping[str, Rule] = {
    "Conv": convolution(),
    "ConvInteger": convolution(per_channel=(3,)),
    "QLinearConv": convolution(weights=3, per_channel=(4, 5, 8)),
    **dict.fromkeys(("MaxPool", "AveragePool", "LpPool"), _pool),
    **dict.fromkeys(("GlobalMaxPool", "GlobalAveragePool", "GlobalLpPool"), _global_pool),
}


def _cut_transposed(single: Single, axis: int) -> Cut:
    if axis == 0:
        return along((0, 0))
    if axis == 1:
        return _cut_transposed_channels(single)
    return _cut_transposed_rows(single, axis)


def _cut_transposed_channels(single: Single) -> Cut:
    groups = single.integer("group", 1)
    read, outputs = single.shape(1)[0] // groups, single.shape(1)[1]

    def part(begin: int, end: int) -> Part:
        ranges: dict[int, Ranges] = {2: (Range(0, begin, end),)}
        if groups == 1:
            return Part(single.reads({**ranges, 1: (Range(1, begin, end),)}))
        if begin % outputs or end % outputs:
            raise RangeError(f"its channels are cut between its {groups} groups only")
        first, last = begin // outputs, end // outputs
        ranges |= {0: (Range(1, first * read, last * read),)}
        ranges |= {1: (Range(0, first * read, last * read),)}
        return Part(single.reads(ranges), {"group": last - first})

    return Cut(part, 1 if groups == 1 else outputs)


def _transposed_windows(single: Single) -> tuple[list[Window], list[int]]:
    """Return the window of each axis, and how much is added behind what the windows make.

    A window's padding is what is cut off the output.
    """
    kernel = single.shape(1)[_SPATIAL:]
    extra = list(single.integers("output_padding", (0,) * len(kernel)))
    mode = single.text("auto_pad", "NOTSET")
    if mode.startswith("SAME") and any(extra):
        raise NotCuttableError("what auto_pad does with its output_padding is not defined")
    result = []
    for at, (window, output_size) in enumerate(_stated_windows(single, kernel)):
        if single.integers("output_shape") or mode.startswith("SAME"):
            total = (window.size - 1) * window.stride + extra[at] + window.extent - output_size
            extra[at] += max(0, -total)
            result.append(window.padded(max(0, total), upper=mode == "SAME_UPPER"))
        else:
            result.append(window)
    return result, extra


def _cut_transposed_rows(single: Single, axis: int) -> Cut:
    spread, extra = _transposed_windows(single)
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


TRANSPOSED_RULES: Mapping[str, Rule] = {"ConvTranspose": _cut_transposed}
