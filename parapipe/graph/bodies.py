"""Shapes of what If, Loop and Scan make, found by a walk through their bodies.

ONNX's own inference does not know inside a body the values of constants that stand outside of it,
so that a Reshape by such a constant loses its shape there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx

from parapipe.graph.dtypes import shape_of, tensor_type
from parapipe.graph.infer import Known, integer

Types = Mapping[str, onnx.TypeProto]

# The version of Scan before this one has a batch axis of its own.
_SCAN_SINCE = 9


@dataclass(frozen=True, slots=True)
class Walked:
    """What is known at the end of a body.

    Parameters
    ----------
    outputs
        Types of its outputs by position; None where not known.
    always
        For each output whether it is the constant True.
    contradiction
        Why the body cannot run on what it reads; empty if nothing is known against it.
    """

    outputs: tuple[onnx.TypeProto | None, ...]
    always: tuple[bool, ...]
    contradiction: str = ""


@dataclass(frozen=True, slots=True)
class Inferred:
    """What is found of a control flow operator.

    Parameters
    ----------
    types
        Of its outputs by name; without those that stay unknown.
    only
        Name of the branch of an If that is always taken, for the other one cannot run.
    why
        Why it cannot.
    """

    types: dict[str, onnx.TypeProto]
    only: str = ""
    why: str = ""


_BRANCHES = ("then_branch", "else_branch")


# Walks a body whose own inputs have the types given, by name.
WalkBody = Callable[[onnx.GraphProto, Types], Walked]


def infer_by_bodies(node: onnx.NodeProto, known: Known, walk: WalkBody) -> Inferred:
    """Infer types of a control flow operator's outputs."""
    bodies = {a.name: a.g for a in node.attribute if a.HasField("g")}
    found: Sequence[onnx.TypeProto | None] = ()
    if node.op_type == "If" and bodies.keys() >= {*_BRANCHES}:
        ends = {name: walk(bodies[name], {}) for name in _BRANCHES}
        able = [name for name, end in ends.items() if not end.contradiction]
        if len(able) == 1:
            return Inferred({}, able[0], "".join(end.contradiction for end in ends.values()))
        then, other = (ends[name].outputs for name in _BRANCHES)
        found = [
            a if a == b and shape_of(a) is not None else None
            for a, b in zip(then, other, strict=False)
        ]
    elif node.op_type == "Loop" and "body" in bodies:
        found = _of_loop(node, bodies["body"], known, walk)
    elif node.op_type == "Scan" and "body" in bodies and known.opsets.get("", 0) >= _SCAN_SINCE:
        found = _of_scan(node, bodies["body"], known, walk)
    named = zip(node.output, found, strict=False)
    return Inferred({name: kind for name, kind in named if name and kind is not None})


def _of_loop(
    node: onnx.NodeProto, body: onnx.GraphProto, known: Known, walk: WalkBody
) -> Sequence[onnx.TypeProto | None]:
    states = [known.types.get(name) for name in node.input[2:]]
    fed = [tensor_type(onnx.TensorProto.INT64, ()), tensor_type(onnx.TensorProto.BOOL, ()), *states]
    end = walk(body, _named(body, fed))
    if len(end.outputs) < 1 + len(states):
        return ()
    trips = _trips(node, known) if end.always[:1] == (True,) else None
    kept = [
        a if shape_of(a) is not None and shape_of(a) == shape_of(b) else None
        for a, b in zip(states, end.outputs[1:], strict=False)
    ]
    if any(kind is None for kind in kept):
        return kept  # with states that grow, nothing else is sure
    return [*kept, *(_stacked(kind, trips, 0) for kind in end.outputs[1 + len(states) :])]


def _trips(node: onnx.NodeProto, known: Known) -> int | None:
    """Return how often a Loop runs whose body never stops it; None if that is not known."""
    count = known.values.get(node.input[0])
    first = known.values.get(node.input[1]) if any(node.input[1:2]) else np.array(True)
    if count is None or first is None or count.size != 1 or first.size != 1:
        return None
    return max(int(count.reshape(-1)[0]), 0) if bool(first.reshape(-1)[0]) else 0


def _of_scan(
    node: onnx.NodeProto, body: onnx.GraphProto, known: Known, walk: WalkBody
) -> Sequence[onnx.TypeProto | None]:
    lists = {a.name: list(a.ints) for a in node.attribute}
    states = len(node.input) - integer(node, "num_scan_inputs", 0)
    if not 0 <= states < len(node.input):
        return ()
    fed: list[onnx.TypeProto | None] = [known.types.get(name) for name in node.input[:states]]
    steps = None
    axes = lists.get("scan_input_axes", [0] * (len(node.input) - states))
    for name, axis in zip(node.input[states:], axes, strict=False):
        shape = known.shape(name)
        if shape is None or not -len(shape) <= axis < len(shape):
            return ()
        at = axis % len(shape)
        steps = shape[at]
        fed.append(
            tensor_type(known.types[name].tensor_type.elem_type, (*shape[:at], *shape[at + 1 :]))
        )
    end = walk(body, _named(body, fed)).outputs
    scans = end[states:]
    out_axes = lists.get("scan_output_axes", [0] * len(scans))
    stacked = [_stacked(kind, steps, at) for kind, at in zip(scans, out_axes, strict=False)]
    return [*fed[:states], *stacked]


def _named(body: onnx.GraphProto, fed: Sequence[onnx.TypeProto | None]) -> Types:
    pairs = zip(body.input, fed, strict=False)
    return {value.name: kind for value, kind in pairs if kind is not None}


def _stacked(kind: onnx.TypeProto | None, length: int | None, axis: int) -> onnx.TypeProto | None:
    """Return the type of `length` tensors in one, along a new axis."""
    shape = shape_of(kind)
    if kind is None or shape is None or length is None or not -len(shape) - 1 <= axis <= len(shape):
        return None
    at = axis % (len(shape) + 1)
    return tensor_type(kind.tensor_type.elem_type, (*shape[:at], length, *shape[at:]))
