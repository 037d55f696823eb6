"""Shapes of what If, Loop and Scan make, and of lists of tensors.

ONNX's own inference does not know inside a body the values of constants that stand outside of it,
so that a Reshape by such a constant loses its shape there.

ONNX's own inference knows one shape for all elements and no length. Where the length follows from
the graph, a sequence has as many bytes as its elements together, and can be moved like a tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import onnx

from parapipe.graph.data_types import dtype_name, shape_of, tensor_type, unwrap
from parapipe.graph.infer import Elements, Facts, Types, integer
from parapipe.graph.operator_graph import Tensor

# The version of Scan before this one has a batch axis of its own.
_SCAN_SINCE = 9


@dataclass(frozen=True, slots=True)
class BodyResult:
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
class InferredTypes:
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
WalkBody = Callable[[onnx.GraphProto, Types], BodyResult]


def infer_by_bodies(node: onnx.NodeProto, facts: Facts, walk: WalkBody) -> InferredTypes:
    """Infer types of a control flow operator's outputs."""
    bodies = {a.name: a.g for a in node.attribute if a.HasField("g")}
    types: Sequence[onnx.TypeProto | None] = ()
    if node.op_type == "If" and bodies.keys() >= {*_BRANCHES}:
        ends = {name: walk(bodies[name], {}) for name in _BRANCHES}
        able = [name for name, end in ends.items() if not end.contradiction]
        if len(able) == 1:
            return InferredTypes({}, able[0], "".join(end.contradiction for end in ends.values()))
        then, other = (ends[name].outputs for name in _BRANCHES)
        types = [
            a if a == b and shape_of(a) is not None else None
            for a, b in zip(then, other, strict=False)
        ]
    elif node.op_type == "Loop" and "body" in bodies:
        types = _loop_types(node, bodies["body"], facts, walk)
    elif node.op_type == "Scan" and "body" in bodies and facts.opsets.get("", 0) >= _SCAN_SINCE:
        types = _scan_types(node, bodies["body"], facts, walk)
    pairs = zip(node.output, types, strict=False)
    return InferredTypes({name: kind for name, kind in pairs if name and kind is not None})


def _loop_types(
    node: onnx.NodeProto, body: onnx.GraphProto, facts: Facts, walk: WalkBody
) -> Sequence[onnx.TypeProto | None]:
    states = [facts.types.get(name) for name in node.input[2:]]
    fed = [tensor_type(onnx.TensorProto.INT64, ()), tensor_type(onnx.TensorProto.BOOL, ()), *states]
    end = walk(body, _types_by_name(body, fed))
    if len(end.outputs) < 1 + len(states):
        return ()
    trips = loop_trips(node, facts) if end.always[:1] == (True,) else None
    states_after = [
        a if shape_of(a) is not None and shape_of(a) == shape_of(b) else None
        for a, b in zip(states, end.outputs[1:], strict=False)
    ]
    if any(kind is None for kind in states_after):
        return states_after  # with states that grow, nothing else is sure
    return [*states_after, *(_stack(kind, trips, 0) for kind in end.outputs[1 + len(states) :])]


def loop_trips(node: onnx.NodeProto, facts: Facts) -> int | None:
    """Return how often a Loop runs whose body never stops it; None if that is not known."""
    count = facts.values.get(node.input[0])
    first = facts.values.get(node.input[1]) if any(node.input[1:2]) else np.array(True)
    if count is None or first is None or count.size != 1 or first.size != 1:
        return None
    return max(int(count.reshape(-1)[0]), 0) if bool(first.reshape(-1)[0]) else 0


def _scan_types(
    node: onnx.NodeProto, body: onnx.GraphProto, facts: Facts, walk: WalkBody
) -> Sequence[onnx.TypeProto | None]:
    lists = {a.name: list(a.ints) for a in node.attribute}
    states = len(node.input) - integer(node, "num_scan_inputs", 0)
    if not 0 <= states < len(node.input):
        return ()
    fed: list[onnx.TypeProto | None] = [facts.types.get(name) for name in node.input[:states]]
    steps = None
    axes = lists.get("scan_input_axes", [0] * (len(node.input) - states))
    for name, axis in zip(node.input[states:], axes, strict=False):
        shape = facts.shape(name)
        if shape is None or not -len(shape) <= axis < len(shape):
            return ()
        at = axis % len(shape)
        steps = shape[at]
        fed.append(
            tensor_type(facts.types[name].tensor_type.elem_type, (*shape[:at], *shape[at + 1 :]))
        )
    end = walk(body, _types_by_name(body, fed)).outputs
    scans = end[states:]
    out_axes = lists.get("scan_output_axes", [0] * len(scans))
    stacked = [_stack(kind, steps, at) for kind, at in zip(scans, out_axes, strict=False)]
    return [*fed[:states], *stacked]


def _types_by_name(body: onnx.GraphProto, fed: Sequence[onnx.TypeProto | None]) -> Types:
    pairs = zip(body.input, fed, strict=False)
    return {value.name: kind for value, kind in pairs if kind is not None}


def _stack(kind: onnx.TypeProto | None, length: int | None, axis: int) -> onnx.TypeProto | None:
    """Return the type of `length` tensors in one, along a new axis."""
    shape = shape_of(kind)
    if kind is None or shape is None or length is None or not -len(shape) - 1 <= axis <= len(shape):
        return None
    at = axis % (len(shape) + 1)
    return tensor_type(kind.tensor_type.elem_type, (*shape[:at], length, *shape[at:]))


Shape = tuple[int, ...]

# More elements than this are not told apart: no network has them, a damaged file may.
_MOST_ELEMENTS = 100_000


def elements_of(node: onnx.NodeProto, facts: Facts) -> Elements | None:
    """Return the shapes of the elements of the sequence that a node makes; None if not known."""
    rule = _SEQUENCE_RULES.get(node.op_type) if not node.domain else None
    return rule(node, facts) if rule else None


def shape_from_sequence(node: onnx.NodeProto, facts: Facts) -> Shape | None:
    """Return the shape of the tensor that a node makes of a sequence; None if not known."""
    rule = _TENSOR_RULES.get(node.op_type) if not node.domain else None
    return rule(node, facts) if rule else None


def sequence_tensor(name: str, kind: onnx.TypeProto, elements: Elements) -> Tensor | None:
    """Return a sequence as one flat tensor of all its elements; None if its type is not known."""
    dtype = dtype_name(unwrap(kind).sequence_type.elem_type.tensor_type.elem_type)
    if dtype is None:
        return None
    return Tensor(name, (sum(prod(shape) for shape in elements),), f"sequence({dtype})")


def _input_name(node: onnx.NodeProto, position: int) -> str:
    return node.input[position] if position < len(node.input) else ""


def _position(node: onnx.NodeProto, at: int, facts: Facts, default: int) -> int | None:
    """Return an index into a sequence that an input gives; None if it is not known."""
    name = _input_name(node, at)
    if not name:
        return default
    value = facts.values.get(name)
    return int(value.reshape(-1)[0]) if value is not None and value.size == 1 else None


def _constructed(node: onnx.NodeProto, facts: Facts) -> Elements | None:
    shapes = [facts.shape(name) for name in node.input]
    complete = tuple(shape for shape in shapes if shape is not None)
    return complete if len(complete) == len(shapes) else None


def _inserted(node: onnx.NodeProto, facts: Facts) -> Elements | None:
    before = facts.elements.get(_input_name(node, 0))
    shape = facts.shape(_input_name(node, 1))
    if before is None or shape is None or len(before) >= _MOST_ELEMENTS:
        return None
    at = _position(node, 2, facts, len(before))
    if at is None:
        # Wherever it goes, the bytes are the same if all shapes are equal.
        return (*before, shape) if set(before) <= {shape} else None
    return (*before[:at], shape, *before[at:])


def _erased(node: onnx.NodeProto, facts: Facts) -> Elements | None:
    before = facts.elements.get(_input_name(node, 0))
    if not before:
        return None
    at = _position(node, 1, facts, -1)
    if at is None:
        return before[1:] if len(set(before)) == 1 else None
    if not -len(before) <= at < len(before):
        return None
    at %= len(before)
    return (*before[:at], *before[at + 1 :])


def _split(node: onnx.NodeProto, facts: Facts) -> Elements | None:
    shape = facts.shape(_input_name(node, 0))
    axis = integer(node, "axis", 0)
    if shape is None or not -len(shape) <= axis < len(shape):
        return None
    axis %= len(shape)
    sizes = _split_lengths(node, facts, shape[axis])
    if sizes is None:
        return None
    squeezed = not _input_name(node, 1) and not integer(node, "keepdims", 1)
    return tuple(
        (*shape[:axis], *(() if squeezed else (size,)), *shape[axis + 1 :]) for size in sizes
    )


def _split_lengths(node: onnx.NodeProto, facts: Facts, length: int) -> Sequence[int] | None:
    """Return the lengths into which SplitToSequence cuts an axis."""
    name = _input_name(node, 1)
    if not name:
        return [1] * length if length <= _MOST_ELEMENTS else None
    value = facts.values.get(name)
    if value is None or value.dtype.kind not in "iu":
        return None
    if value.ndim:
        return [int(size) for size in value.reshape(-1)]
    size = int(value)
    if size < 1 or length // size > _MOST_ELEMENTS:
        return None
    count, rest = divmod(length, size)
    return [size] * count + ([rest] if rest else [])


def _element_shape(node: onnx.NodeProto, facts: Facts) -> Shape | None:
    elements = facts.elements.get(_input_name(node, 0))
    if not elements:
        return None
    at = _position(node, 1, facts, 0)
    if at is None:
        return elements[0] if len(set(elements)) == 1 else None
    return elements[at] if -len(elements) <= at < len(elements) else None


def _concatenated_shape(node: onnx.NodeProto, facts: Facts) -> Shape | None:
    elements = facts.elements.get(_input_name(node, 0))
    if not elements or len({len(shape) for shape in elements}) > 1:
        return None
    first, axis = elements[0], integer(node, "axis", 0)
    if integer(node, "new_axis", 0):
        axis = axis % (len(first) + 1)
        return (*first[:axis], len(elements), *first[axis:])
    if not -len(first) <= axis < len(first):
        return None
    axis %= len(first)
    return (*first[:axis], sum(shape[axis] for shape in elements), *first[axis + 1 :])


_SEQUENCE_RULES: Mapping[str, Callable[[onnx.NodeProto, Facts], Elements | None]] = {
    "SequenceEmpty": lambda _node, _facts: (),
    "SequenceConstruct": _constructed,
    "SequenceInsert": _inserted,
    "SequenceErase": _erased,
    "SplitToSequence": _split,
    **dict.fromkeys(
        ("Identity", "Optional", "OptionalGetElement"),
        lambda node, facts: facts.elements.get(_input_name(node, 0)),
    ),
}
_TENSOR_RULES: Mapping[str, Callable[[onnx.NodeProto, Facts], Shape | None]] = {
    "SequenceAt": _element_shape,
    "ConcatFromSequence": _concatenated_shape,
}
