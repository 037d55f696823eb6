"""Results whose length depends on values: how long they may be, if the user says how many at most.

A detector leaves as many boxes as it finds. What follows has shapes once a number stands for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import onnx

from parapipe.graph.data_types import element_type_of, tensor_type
from parapipe.graph.infer import Facts, integer

BY_VALUES = frozenset({"NonMaxSuppression", "NonZero", "Unique", "Compress", "Range", "TopK"})
INT64 = onnx.TensorProto.INT64


def depends_on_values(node: onnx.NodeProto) -> bool:
    """Tell whether the length of what a node makes may depend on values."""
    return node.op_type in BY_VALUES and not node.domain


def bounded_types(node: onnx.NodeProto, facts: Facts, most: int) -> Mapping[str, onnx.TypeProto]:
    """Return the types of results whose length depends on values, as long as they may be.

    Parameters
    ----------
    most
        Entries at most: boxes of a NonMaxSuppression, places of a NonZero, and so on. If an
        operator cannot make as many, as many as it can.
    """
    if not depends_on_values(node) or not node.input:
        return {}
    shape = facts.shape(node.input[0])
    element = element_type_of(facts.types.get(node.input[0]))
    if node.op_type == "Range":
        return {node.output[0]: tensor_type(element, (most,))} if element else {}
    if shape is None or not element:
        return {}
    match node.op_type:
        case "NonMaxSuppression":
            return {node.output[0]: tensor_type(INT64, (min(most, _boxes(node, facts)), 3))}
        case "NonZero":
            return {node.output[0]: tensor_type(INT64, (len(shape), min(most, prod(shape))))}
        case "Compress":
            return {node.output[0]: tensor_type(element, _along_axis(node, shape, most))}
        case "TopK":
            axis = integer(node, "axis", -1) % max(1, len(shape))
            cut = (*shape[:axis], min(most, shape[axis]), *shape[axis + 1 :])
            return _named(node, [tensor_type(element, cut), tensor_type(INT64, cut)])
    cut = _along_axis(node, shape, most)
    has_axis = any(each.name == "axis" for each in node.attribute)
    length = shape[integer(node, "axis", 0)] if has_axis else prod(shape)
    count = tensor_type(INT64, (min(most, length),))
    return _named(node, [tensor_type(element, cut), count, tensor_type(INT64, (length,)), count])


def _boxes(node: onnx.NodeProto, facts: Facts) -> int:
    """Return how many boxes there are in all classes and pictures."""
    boxes, scores = (facts.shape(name) or () for name in node.input[:2])
    if len(scores) != 3 or len(boxes) != 3:
        return 1 << 62
    each = boxes[1]
    if len(node.input) > 2 and (limit := facts.values.get(node.input[2])) is not None:
        each = min(each, int(limit.reshape(-1)[0]))
    return scores[0] * scores[1] * each


def _along_axis(node: onnx.NodeProto, shape: tuple[int, ...], most: int) -> tuple[int, ...]:
    if not any(each.name == "axis" for each in node.attribute):
        return (min(most, prod(shape)),)
    axis = integer(node, "axis", 0) % max(1, len(shape))
    return (*shape[:axis], min(most, shape[axis]), *shape[axis + 1 :])


def _named(node: onnx.NodeProto, kinds: list[onnx.TypeProto]) -> dict[str, onnx.TypeProto]:
    return {name: kind for name, kind in zip(node.output, kinds, strict=False) if name}
