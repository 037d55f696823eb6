"""Pieces of tensors: cut out, joined, framed."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate

import numpy as np

from parapipe.export.armcl.steps import Rule, Shape, Steps, axis_of, integers, number, require, text
from parapipe.plan.schema import Operator


def concat(operator: Operator, into: Steps) -> None:
    """Add a tensor of tensors next to each other."""
    output = operator.outputs[0]
    require(not any(map(into.is_constant, operator.inputs)), "one of its inputs is constant")
    shape = into.shape(output)
    axis = axis_of(operator, 1, len(shape))
    if len(operator.inputs) == 1:
        into.reshape(operator.inputs[0], shape, output=output)
    else:
        into.add("Concat", operator.inputs, shape, output=output, axis=axis)


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
    _cut(into, source, ranges, output)


def _cut(into: Steps, source: str, ranges: list[range], output: str | None) -> str:
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
            _cut(into, source, ranges, name)


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
    _cut(into, source, ranges, output)


def pad(operator: Operator, into: Steps) -> None:
    """Add a frame around a tensor; where it is negative, the tensor is cut."""
    source, output = operator.inputs[0], operator.outputs[0]
    shape = into.shape(source)
    mode = text(operator, "mode", "constant")
    require(mode in ("constant", "reflect"), f"its mode is '{mode}'")
    befores, afters = _frame(operator, into, shape)
    inner = [
        range(max(-before, 0), extent - max(-after, 0))
        for extent, before, after in zip(shape, befores, afters, strict=True)
    ]
    if tuple(map(len, inner)) != shape:
        require(mode == "constant", "its padding is negative, and it reflects")
        source = _cut(into, source, inner, None)
    pads = tuple(max(extent, 0) for extent in (*befores, *afters))
    into.add(
        "Pad",
        (source,),
        into.shape(output),
        output=output,
        mode=mode,
        pads=pads,
        value=_filling(operator, into) if mode == "constant" else 0.0,
    )


def _frame(operator: Operator, into: Steps, shape: Shape) -> tuple[Shape, Shape]:
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


def _filling(operator: Operator, into: Steps) -> float:
    if len(operator.inputs) > 2 and operator.inputs[2]:
        return float(into.values(operator.inputs[2]).reshape(-1)[0])
    return number(operator, "value", 0.0)


RULES: Mapping[str, Rule] = {
    "Concat": Rule(concat, "Concat", "no constant among its inputs"),
    "Slice": Rule(slice_, "Slice", "constant bounds, forwards"),
    "Split": Rule(split, "Slice, one for each output"),
    "Gather": Rule(gather, "Slice, Reshape", "constant indices that rise in equal steps"),
    "Pad": Rule(
        pad,
        "Pad; Slice where it is negative",
        'constant padding; `mode` "constant" or "reflect"',
    ),
}
