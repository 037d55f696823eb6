"""Views, permutations, cuts, joins and frames: elements that move and do not change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from math import isfinite, prod

import numpy as np

from parapipe.plan.schema import Operator
from parapipe.targets.native.library_plan import MOST_DIMENSIONS
from parapipe.targets.native.steps import (
    Rule,
    Shape,
    Steps,
    axis_of,
    integer,
    integers,
    number,
    require,
    text,
)


def view(operator: Operator, into: Steps) -> None:
    """Add the same elements in another shape."""
    source, output = operator.inputs[0], operator.outputs[0]
    shape = into.shape(output)
    require(prod(shape) == prod(into.shape(source)), "it repeats elements")
    into.reshape(source, shape, output=output)


def transpose(operator: Operator, into: Steps) -> None:
    """Add a permutation of axes."""
    source, output = operator.inputs[0], operator.outputs[0]
    shape = into.shape(source)
    perm = integers(operator, "perm", range(len(shape))[::-1])
    permute(into, source, shape, perm, written=into.shape(output), output=output)


def permute(
    into: Steps,
    source: str,
    shape: Shape,
    perm: Sequence[int],
    *,
    written: Shape,
    output: str | None,
) -> str:
    """Permute axes in as few transpositions of at most four dimensions as its steps allow.

    Axes that stay next to each other move as one, those of extent 1 need not move. Where more than
    four are left, they are put in place one after the other.

    Parameters
    ----------
    written
        Shape that the result shall have.
    output
        Its name, where it is a tensor of the plan; else a new one is made up.

    Returns
    -------
    str
        Its name.
    """
    extents, order = _merge_axes(shape, perm)
    if len(shape) <= MOST_DIMENSIONS and len(order) > 1:
        extents, order = tuple(shape), tuple(perm)
    current = source
    while len(extents) > MOST_DIMENSIONS:
        # Bring the axis that should stand first where the order differs there, past those before.
        first = next(at for at, axis in enumerate(order) if at != axis)
        axis = order[first]
        blocks = (
            prod(extents[:first]),
            prod(extents[first:axis]),
            extents[axis],
            prod(extents[axis + 1 :]),
        )
        current = _add_transpose(into, current, blocks, (0, 2, 1, 3))
        moved = [*range(first), axis, *range(first, axis), *range(axis + 1, len(extents))]
        place = {axis: at for at, axis in enumerate(moved)}
        extents, order = _merge_axes([extents[axis] for axis in moved], [place[a] for a in order])
    if len(order) <= 1:
        return into.reshape(current, written, output=output)
    turned = _add_transpose(into, current, extents, order, output)
    return turned if output else into.reshape(turned, written)


def _add_transpose(
    into: Steps, source: str, extents: Shape, perm: Shape, output: str | None = None
) -> str:
    read = into.reshape(source, extents)
    shape = tuple(extents[axis] for axis in perm)
    return into.add("Transpose", (read,), shape, output=output, perm=perm)


def _merge_axes(shape: Sequence[int], perm: Sequence[int]) -> tuple[Shape, Shape]:
    """Drop axes of extent 1 and join those that stay next to each other."""
    moving = [axis for axis in perm if shape[axis] != 1]
    rank = {axis: at for at, axis in enumerate(sorted(moving))}
    extent = [shape[axis] for axis in sorted(moving)]
    runs: list[list[int]] = []
    for axis in (rank[axis] for axis in moving):
        if runs and runs[-1][-1] + 1 == axis:
            runs[-1].append(axis)
        else:
            runs.append([axis])
    starts = sorted(run[0] for run in runs)
    lengths = {run[0]: prod(extent[axis] for axis in run) for run in runs}
    return (tuple(lengths[start] for start in starts), tuple(starts.index(run[0]) for run in runs))


def regroup(operator: Operator, into: Steps) -> None:
    """Make channels of the blocks of an image (SpaceToDepth), or the other way round."""
    source, output = operator.inputs[0], operator.outputs[0]
    batch, channels, height, width = into.shape(source)
    block = integer(operator, "blocksize", 1)
    depth = channels // block**2
    if operator.type == "SpaceToDepth":
        blocks = (batch, channels, height // block, block, width // block, block)
        perm = (0, 3, 5, 1, 2, 4)
    elif text(operator, "mode", "DCR") == "DCR":
        blocks, perm = (batch, block, block, depth, height, width), (0, 3, 4, 1, 5, 2)
    else:
        blocks, perm = (batch, depth, block, block, height, width), (0, 1, 4, 2, 5, 3)
    permute(into, source, blocks, perm, written=into.shape(output), output=output)


_VIEWS = ("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Dropout", "Expand")


def concat(operator: Operator, into: Steps) -> None:
    """Add a tensor of tensors next to each other."""
    output = operator.outputs[0]
    constant = any(map(into.is_constant, operator.inputs))
    require(into.complete or not constant, "one of its inputs is constant")
    shape = into.shape(output)
    axis = axis_of(operator, 1, len(shape))
    if len(operator.inputs) == 1:
        into.reshape(operator.inputs[0], shape, output=output)
    else:
        inputs = [into.weight(v) if into.is_constant(v) else v for v in operator.inputs]
        into.add("Concat", inputs, shape, output=output, axis=axis)


def slice_(operator: Operator, into: Steps) -> None:
    """Add a part of a tensor, in steps."""
    source, output = operator.inputs[0], operator.outputs[0]
    shape = into.shape(source)
    starts, ends = (integers(operator, name, ()) for name in ("starts", "ends"))
    require(bool(starts) and len(starts) == len(ends), "its bounds are not constant")
    constant = all(into.is_constant(name) for name in operator.inputs[1:] if name)
    require(constant, "its bounds are not constant")
    axes = integers(operator, "axes", range(len(starts)))
    steps = integers(operator, "steps", (1,) * len(starts))
    require(min(steps) > 0, "it runs backwards")
    ranges = [range(extent) for extent in shape]
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        ranges[axis] = ranges[axis][slice(start, end, step)]
    _keep_ranges(into, source, ranges, output)


def _keep_ranges(into: Steps, source: str, ranges: list[range], output: str | None) -> str:
    """Add a step that keeps a range of each axis."""
    return into.add(
        "Slice",
        (source,),
        tuple(map(len, ranges)),
        output=output,
        starts=tuple(each.start for each in ranges),
        ends=tuple(each[-1] + 1 for each in ranges),
        steps=tuple(each.step for each in ranges),
    )


def split(operator: Operator, into: Steps) -> None:
    """Add parts next to each other along an axis, but for those that nobody reads."""
    source = operator.inputs[0]
    shape = into.shape(source)
    axis = axis_of(operator, 0, len(shape))
    extents = [into.shape(name)[axis] for name in operator.outputs]
    stops = accumulate(extents)
    for name, extent, stop in zip(operator.outputs, extents, stops, strict=True):
        if name in into.wanted:
            ranges = [range(size) for size in shape]
            ranges[axis] = range(stop - extent, stop)
            _keep_ranges(into, source, ranges, name)


def gather(operator: Operator, into: Steps) -> None:
    """Add what constant indices at equal distances along an axis pick: a slice."""
    source, picked = operator.inputs[:2]
    require(into.is_constant(picked), "its indices are not constant")
    require(not into.is_constant(source), "it picks from a constant")
    shape, output = into.shape(source), operator.outputs[0]
    axis = axis_of(operator, 0, len(shape))
    indices = (into.values(picked).astype(np.int64).reshape(-1) % shape[axis]).tolist()
    step = indices[1] - indices[0] if len(indices) > 1 else 1
    evenly = range(indices[0], indices[0] + step * len(indices), step) if step > 0 else range(0)
    require(list(evenly) == indices, "its indices do not rise in equal steps")
    ranges = [range(size) for size in shape]
    ranges[axis] = evenly
    _keep_ranges(into, source, ranges, output)


def pad(operator: Operator, into: Steps) -> None:
    """Add a frame around a tensor; where it is negative, the tensor is cut."""
    source, output = operator.inputs[0], operator.outputs[0]
    shape = into.shape(source)
    mode = text(operator, "mode", "constant")
    require(mode in ("constant", "reflect"), f"its mode is '{mode}'")
    befores, afters = _padding_of_axes(operator, into, shape)
    inner = [
        range(max(-before, 0), extent - max(-after, 0))
        for extent, before, after in zip(shape, befores, afters, strict=True)
    ]
    if tuple(map(len, inner)) != shape:
        require(mode == "constant", "its padding is negative, and it reflects")
        source = _keep_ranges(into, source, inner, None)
    pads = tuple(max(extent, 0) for extent in (*befores, *afters))
    value = number(operator, "value", 0.0) if mode == "constant" else 0.0
    if mode == "constant" and len(operator.inputs) > 2 and operator.inputs[2]:
        value = float(into.values(operator.inputs[2]).reshape(-1)[0])
    require(isfinite(value), f"it pads with {value:g}, and the runner with finite numbers")
    shape = into.shape(output)
    into.add("Pad", (source,), shape, output=output, mode=mode, pads=pads, value=value)


def _padding_of_axes(operator: Operator, into: Steps, shape: Shape) -> tuple[Shape, Shape]:
    """Return how much is added before and after each axis."""
    pads = integers(operator, "pads", integers(operator, "paddings", ()))
    constant = all(into.is_constant(name) for name in operator.inputs[1:] if name)
    require(bool(pads) and constant, "its padding is not constant")
    rank = len(shape)
    axes = tuple(range(rank))
    if len(operator.inputs) > 3 and operator.inputs[3]:
        axes = tuple(int(axis) % rank for axis in into.values(operator.inputs[3]).reshape(-1))
    before, after = [0] * rank, [0] * rank
    for axis, start, end in zip(axes, pads[: len(axes)], pads[len(axes) :], strict=True):
        before[axis], after[axis] = start, end
    return tuple(before), tuple(after)


RULES: Mapping[str, Rule] = {
    **{
        kind: Rule(
            view,
            "Reshape; nothing where another operator takes the tensor as it is",
            "to as many elements as it has" if kind == "Expand" else "",
            dimensions=True,
        )
        for kind in _VIEWS
    },
    "Transpose": Rule(
        transpose,
        "Transpose, several of more than 4 dimensions; Reshape around it",
        dimensions=True,
    ),
    **dict.fromkeys(("SpaceToDepth", "DepthToSpace"), Rule(regroup, "Reshape, Transpose, Reshape")),
    "Concat": Rule(concat, "Concat", "no constant among its inputs"),
    "Slice": Rule(slice_, "Slice", "constant bounds, forwards"),
    "Split": Rule(split, "Slice, one for each output"),
    "Gather": Rule(gather, "Slice, Reshape", "constant indices that rise in equal steps"),
    "Pad": Rule(
        pad, "Pad; Slice where it is negative", 'constant padding; `mode` "constant" or "reflect"'
    ),
}
