"""Attributes of ONNX nodes as plain values, and constant inputs that were once attributes."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import AttributeProto

from parapipe.graph.operator_graph import AttributeValue

_Values = Mapping[str, NDArray[np.generic]]

# Inputs that an earlier opset had as attributes, under the name that it had there.
_FORMER: Mapping[str, Mapping[int, str]] = {
    "Clip": {1: "min", 2: "max"},
    "Expand": {1: "shape"},
    "Pad": {1: "pads"},
    "Reshape": {1: "shape"},
    "Resize": {2: "scales", 3: "sizes"},
    "Slice": {1: "starts", 2: "ends", 3: "axes", 4: "steps"},
    "Split": {1: "split"},
    "Squeeze": {1: "axes"},
    "Tile": {1: "repeats"},
    "TopK": {1: "k"},
    "Unsqueeze": {1: "axes"},
    "Upsample": {1: "scales"},
    **{
        f"Reduce{kind}": {1: "axes"}
        for kind in [
            "Mean",
            "Sum",
            "Max",
            "Min",
            "Prod",
            "L1",
            "L2",
            "LogSum",
            "LogSumExp",
            "SumSquare",
        ]
    },
}
_SCALARS = frozenset({"min", "max", "k"})
# A bound that bounds nothing is as good as none.
_NO_BOUND = (("min", -math.inf), ("max", math.inf))


def attributes_of(node: onnx.NodeProto, values: _Values) -> dict[str, AttributeValue]:
    """Return the attributes of a node by name, sorted.

    Numbers, texts and lists of them are given; tensors and subgraphs are not. Inputs with known
    `values` that an earlier opset had as attributes (Clip's `min` and `max`, `axes`, `pads`, ...)
    are given too, so that a reader need not know the opset. A number that is not finite is given
    as the text "inf", "-inf" or "nan", which JSON can hold; a list with such a number, as texts.
    """
    result = {
        attribute.name: value
        for attribute in node.attribute
        if (value := _attribute_value(attribute)) is not None
    }
    if not node.domain:
        result.update(_attributes_from_inputs(node, values))
        if node.op_type == "Clip":
            result = {name: at for name, at in result.items() if (name, at) not in _NO_BOUND}
    return {name: _without_infinities(result[name]) for name in sorted(result)}


def input_of(operator_type: str, name: str) -> int | None:
    """Return the position of the input that an earlier opset had as an attribute of that name."""
    former = _FORMER.get(operator_type, {})
    return next((position for position, each in former.items() if each == name), None)


def _without_infinities(value: AttributeValue) -> AttributeValue:
    numbers = value if isinstance(value, tuple) else (value,)
    if all(not isinstance(item, float) or math.isfinite(item) for item in numbers):
        return value
    return tuple(map(str, numbers)) if isinstance(value, tuple) else str(value)


def _attributes_from_inputs(node: onnx.NodeProto, values: _Values) -> dict[str, AttributeValue]:
    former = _FORMER.get(node.op_type, {})
    if node.op_type == "Resize" and len(node.input) == 2:  # as in opset 10
        former = {1: "scales"}
    attributes: dict[str, AttributeValue] = {}
    for position, name in former.items():
        array = values.get(node.input[position]) if position < len(node.input) else None
        if array is None or array.size == 0:
            continue
        flat = [number(item) for item in array.reshape(-1)]
        attributes[name] = flat[0] if name in _SCALARS else tuple(flat)
    return attributes


def number(item: np.generic) -> int | float:
    """Return a NumPy number as Python's; of a float32, the shortest that is the same float32."""
    if np.issubdtype(item.dtype, np.integer) or item.dtype == np.bool_:
        return int(item)
    return float(str(item))


def _attribute_value(attribute: onnx.AttributeProto) -> AttributeValue | None:
    match attribute.type:
        case AttributeProto.INT:
            return int(attribute.i)
        case AttributeProto.FLOAT:
            return number(np.float32(attribute.f))
        case AttributeProto.STRING:
            return attribute.s.decode(errors="replace")
        case AttributeProto.INTS:
            return tuple(int(item) for item in attribute.ints)
        case AttributeProto.FLOATS:
            return tuple(float(number(np.float32(item))) for item in attribute.floats)
        case AttributeProto.STRINGS:
            return tuple(item.decode(errors="replace") for item in attribute.strings)
    return None
