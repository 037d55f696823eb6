"""Slices of tensors and constants in an ONNX model, each made once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count, starmap
from math import prod

import numpy as np
import onnx
from onnx import helper, numpy_helper

from parapipe.graph.dtypes import dtype_name, shape_of
from parapipe.graph.model_source import external_place, is_external
from parapipe.graph.operator_graph import ITEM_BYTES
from parapipe.graph.parts.marks import mark
from parapipe.graph.parts.part import Range, Ranges, Shape, cut_shape
from parapipe.graph.resolve import Resolved

_INPUTS_SINCE = 10  # the opset since which a Slice has its bounds as inputs
Dequantise = Callable[[onnx.NodeProto, Range], str]


@dataclass(slots=True)
class Names:
    """Names that are in use."""

    taken: set[str]

    def free(self, name: str) -> str:
        """Return a name that is not in use: this one, if it is not; it is then."""
        free = next(
            each
            for number in count(1)
            if (each := name if number == 1 else f"{name}/{number}") not in self.taken
        )
        self.taken.add(free)
        return free


@dataclass(slots=True)
class Slices:
    """Makes nodes and initializers that hold ranges of tensors.

    Parameters
    ----------
    resolved
        Types of tensors and constants, and what constants stem from.
    tensors, named
        Names of tensors, and of nodes.
    copies
        What the model calls tensors that import has given several names.
    ready
        Names of what holds a range of a tensor already.
    parts
        Of a tensor that is made in parts: their ranges, which follow one another along one axis,
        and the names of what holds them.
    by_nodes
        Whether ranges of constants are made by nodes, whatever is known of their numbers.
    """

    resolved: Resolved
    tensors: Names
    named: Names
    copies: Mapping[str, str] = field(default_factory=dict)
    ready: dict[tuple[str, Ranges], str] = field(default_factory=dict)
    parts: dict[str, list[tuple[Range, str]]] = field(default_factory=dict)
    by_nodes: bool = False
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    initializers: list[onnx.TensorProto] = field(default_factory=list)

    def shape(self, name: str) -> Shape:
        """Return the shape of a tensor or a constant of the model."""
        return shape_of(self.resolved.types[name]) or ()

    def of(self, name: str, ranges: Ranges, dequantise: Dequantise) -> str:
        """Return the name of what holds ranges of a tensor or a constant.

        Parameters
        ----------
        dequantise
            Returns the name of what holds a range of the result of a DequantizeLinear, which
            stands for a constant; runtimes know weights by it.
        """
        name = self.copies.get(name, name)
        shape = self.shape(name)
        ranges = tuple(each for each in ranges if each.size < shape[each.axis])
        if name in self.parts:
            return self._gathered(name, ranges, shape)
        if not ranges:
            return name
        key = (name, ranges)
        if key not in self.ready:
            self.ready[key] = self._made(name, ranges, shape, dequantise)
        return self.ready[key]

    def _made(self, name: str, ranges: Ranges, shape: Shape, dequantise: Dequantise) -> str:
        origin = self.resolved.origins.get(name)
        if isinstance(origin, onnx.TensorProto) and not self.by_nodes:
            tensor = _cut_tensor(origin, ranges, shape)
            if tensor is not None:
                tensor.name = self.tensors.free(_sliced_name(name, ranges))
                self.initializers.append(tensor)
                return str(tensor.name)
        is_dequantised = isinstance(origin, onnx.NodeProto) and origin.op_type == "DequantizeLinear"
        if is_dequantised and len(ranges) == 1:
            assert isinstance(origin, onnx.NodeProto)
            return dequantise(origin, ranges[0])
        return self.slice(name, ranges, self.tensors.free(_sliced_name(name, ranges)))

    def _gathered(self, name: str, ranges: Ranges, shape: Shape) -> str:
        """Return what holds ranges of a tensor that is made in parts, put together for one reader.

        Each reader has a join of its own: it may run on another processor than the others.
        """
        axis = self.parts[name][0][0].axis
        wanted = next((e for e in ranges if e.axis == axis), Range(axis, 0, shape[axis]))
        others = tuple(each for each in ranges if each.axis != axis)
        found = []
        for own, result in self.parts[name]:
            common = Range(axis, max(own.begin, wanted.begin), min(own.end, wanted.end))
            if common.size > 0:
                within = Range(axis, common.begin - own.begin, common.end - own.begin)
                found.append(self._of_part(result, (*others, *((within,) * (common != own)))))
        if len(found) == 1:
            return found[0]
        joined = self.tensors.free(_sliced_name(name, (*others, wanted)))
        node = helper.make_node("Concat", found, [joined], self.named.free(joined), axis=axis)
        self.nodes.append(mark(node))
        return joined

    def _of_part(self, result: str, ranges: Ranges) -> str:
        """Return the name of what holds ranges of a part's result."""
        if not ranges:
            return result
        if (result, ranges) not in self.ready:
            free = self.tensors.free(_sliced_name(result, ranges))
            self.ready[result, ranges] = self.slice(result, ranges, free)
        return self.ready[result, ranges]

    def slice(self, source: str, ranges: Ranges, result: str) -> str:
        """Add a Slice of anything; return the result's name."""
        bounds = {
            "starts": [each.begin for each in ranges],
            "ends": [each.end for each in ranges],
            "axes": [each.axis for each in ranges],
        }
        named = self.named.free(result)
        if self.resolved.opsets.get("", _INPUTS_SINCE) < _INPUTS_SINCE:
            node = helper.make_node("Slice", [source], [result], named)
            node.attribute.extend(starmap(helper.make_attribute, bounds.items()))
        else:
            given = [self.integers(f"{result}/{each}", at) for each, at in bounds.items()]
            node = helper.make_node("Slice", [source, *given], [result], named)
        self.nodes.append(mark(node))
        return result

    def integers(self, name: str, values: Sequence[int], element_type: int = 0) -> str:
        """Add a list of integers as an initializer; return its name."""
        dtype = helper.tensor_dtype_to_np_dtype(element_type or onnx.TensorProto.INT64)
        tensor = numpy_helper.from_array(np.array(values, dtype), self.tensors.free(name))
        self.initializers.append(tensor)
        return str(tensor.name)


def _sliced_name(name: str, ranges: Ranges) -> str:
    return name + "".join(f"/{each.axis}:{each.begin}-{each.end}" for each in ranges)


def _cut_tensor(tensor: onnx.TensorProto, ranges: Ranges, shape: Shape) -> onnx.TensorProto | None:
    """Return ranges of an initializer as one; None if a Slice must make them.

    External data stay where they are: a contiguous range is another place in the same file.
    """
    if is_external(tensor):
        return _place_within(tensor, ranges, shape)
    try:
        array = numpy_helper.to_array(tensor)
    except (ValueError, TypeError):
        return None
    if array.dtype.hasobject or helper.np_dtype_to_tensor_dtype(array.dtype) != tensor.data_type:
        return None
    at = [slice(None)] * array.ndim
    for each in ranges:
        at[each.axis] = slice(each.begin, each.end)
    return numpy_helper.from_array(np.ascontiguousarray(array[tuple(at)]))


def _place_within(
    tensor: onnx.TensorProto, ranges: Ranges, shape: Shape
) -> onnx.TensorProto | None:
    first = ranges[0]
    item_bytes = ITEM_BYTES[dtype_name(tensor.data_type) or "int4"]
    if len(ranges) > 1 or prod(shape[: first.axis]) != 1 or item_bytes < 1:
        return None
    location, offset, _ = external_place(tensor)
    row_bytes = int(item_bytes) * prod(shape[first.axis + 1 :])
    found = onnx.TensorProto(data_type=tensor.data_type, dims=cut_shape(shape, ranges))
    found.data_location = onnx.TensorProto.EXTERNAL
    entries: Mapping[str, object] = {
        "location": location,
        "offset": offset + first.begin * row_bytes,
        "length": first.size * row_bytes,
    }
    for key, value in entries.items():
        found.external_data.add(key=key, value=str(value))
    return found
