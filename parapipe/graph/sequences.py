"""Lists of tensors: how many a sequence holds and of which shapes, and what is taken out of it.

ONNX's own inference knows one shape for all elements and no length. Where the length follows from
the graph, a sequence has as many bytes as its elements together, and can be moved like a tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod

import onnx

from parapipe.graph.dtypes import dtype_name, unwrapped
from parapipe.graph.infer import Elements, Known, integer
from parapipe.graph.operator_graph import Tensor

Shape = tuple[int, ...]

# More elements than this are not told apart: no network has them, a damaged file may.
_MOST_ELEMENTS = 100_000


def elements_of(node: onnx.NodeProto, known: Known) -> Elements | None:
    """Return the shapes of the elements of the sequence that a node makes; None if not known."""
    rule = _MAKERS.get(node.op_type) if not node.domain else None
    return rule(node, known) if rule else None


def taken_shape(node: onnx.NodeProto, known: Known) -> Shape | None:
    """Return the shape of the tensor that a node makes of a sequence; None if not known."""
    rule = _TAKERS.get(node.op_type) if not node.domain else None
    return rule(node, known) if rule else None


def sequence_tensor(name: str, kind: onnx.TypeProto, elements: Elements) -> Tensor | None:
    """Return a sequence as one flat tensor of all its elements; None if its type is not known."""
    dtype = dtype_name(unwrapped(kind).sequence_type.elem_type.tensor_type.elem_type)
    if dtype is None:
        return None
    return Tensor(name, (sum(prod(shape) for shape in elements),), f"sequence({dtype})")


def _input(node: onnx.NodeProto, position: int) -> str:
    return node.input[position] if position < len(node.input) else ""


def _position(node: onnx.NodeProto, at: int, known: Known, default: int) -> int | None:
    """Return an index into a sequence that an input gives; None if it is not known."""
    name = _input(node, at)
    if not name:
        return default
    value = known.values.get(name)
    return int(value.reshape(-1)[0]) if value is not None and value.size == 1 else None


def _constructed(node: onnx.NodeProto, known: Known) -> Elements | None:
    shapes = [known.shape(name) for name in node.input]
    found = tuple(shape for shape in shapes if shape is not None)
    return found if len(found) == len(shapes) else None


def _inserted(node: onnx.NodeProto, known: Known) -> Elements | None:
    before = known.elements.get(_input(node, 0))
    shape = known.shape(_input(node, 1))
    if before is None or shape is None or len(before) >= _MOST_ELEMENTS:
        return None
    at = _position(node, 2, known, len(before))
    if at is None:
        # Wherever it goes, the bytes are the same if all shapes are equal.
        return (*before, shape) if set(before) <= {shape} else None
    return (*before[:at], shape, *before[at:])


def _erased(node: onnx.NodeProto, known: Known) -> Elements | None:
    before = known.elements.get(_input(node, 0))
    if not before:
        return None
    at = _position(node, 1, known, -1)
    if at is None:
        return before[1:] if len(set(before)) == 1 else None
    if not -len(before) <= at < len(before):
        return None
    at %= len(before)
    return (*before[:at], *before[at + 1 :])


def _split(node: onnx.NodeProto, known: Known) -> Elements | None:
    shape = known.shape(_input(node, 0))
    axis = integer(node, "axis", 0)
    if shape is None or not -len(shape) <= axis < len(shape):
        return None
    axis %= len(shape)
    sizes = _sizes(node, known, shape[axis])
    if sizes is None:
        return None
    squeezed = not _input(node, 1) and not integer(node, "keepdims", 1)
    return tuple(
        (*shape[:axis], *(() if squeezed else (size,)), *shape[axis + 1 :]) for size in sizes
    )


def _sizes(node: onnx.NodeProto, known: Known, length: int) -> Sequence[int] | None:
    """Return the lengths into which SplitToSequence cuts an axis."""
    name = _input(node, 1)
    if not name:
        return [1] * length if length <= _MOST_ELEMENTS else None
    value = known.values.get(name)
    if value is None or value.dtype.kind not in "iu":
        return None
    if value.ndim:
        return [int(size) for size in value.reshape(-1)]
    size = int(value)
    if size < 1 or length // size > _MOST_ELEMENTS:
        return None
    whole, rest = divmod(length, size)
    return [size] * whole + ([rest] if rest else [])


def _at(node: onnx.NodeProto, known: Known) -> Shape | None:
    elements = known.elements.get(_input(node, 0))
    if not elements:
        return None
    at = _position(node, 1, known, 0)
    if at is None:
        return elements[0] if len(set(elements)) == 1 else None
    return elements[at] if -len(elements) <= at < len(elements) else None


def _concatenated(node: onnx.NodeProto, known: Known) -> Shape | None:
    elements = known.elements.get(_input(node, 0))
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


_MAKERS: Mapping[str, Callable[[onnx.NodeProto, Known], Elements | None]] = {
    "SequenceEmpty": lambda _node, _known: (),
    "SequenceConstruct": _constructed,
    "SequenceInsert": _inserted,
    "SequenceErase": _erased,
    "SplitToSequence": _split,
    **dict.fromkeys(
        ("Identity", "Optional", "OptionalGetElement"),
        lambda node, known: known.elements.get(_input(node, 0)),
    ),
}
_TAKERS: Mapping[str, Callable[[onnx.NodeProto, Known], Shape | None]] = {
    "SequenceAt": _at,
    "ConcatFromSequence": _concatenated,
}
