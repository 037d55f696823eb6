"""Writes the parts of runs as ONNX nodes: slices of tensors and constants, and joins of results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import count, starmap
from math import prod

import numpy as np
import onnx
from onnx import helper, numpy_helper

from parapipe.graph.data_types import attributes_of, dtype_name, input_of, shape_of, tensor_of
from parapipe.graph.model_source import external_place, is_external
from parapipe.graph.operator_graph import ITEM_BYTES, Operator, Work
from parapipe.graph.part_marks import mark, part_name
from parapipe.graph.resolve import Resolved
from parapipe.parts.part import Range, Ranges, Shape, cut_shape
from parapipe.parts.run import Run, RunPart, Step

_INPUTS_SINCE = 10  # the opset since which a Slice has its bounds as inputs
Dequantise = Callable[[onnx.NodeProto, Range], str]


@dataclass(slots=True)
class Names:
    """Names that are in use."""

    used: set[str]

    def free(self, name: str) -> str:
        """Return a name that is not in use: this one, if it is not; it is then."""
        free = next(
            each
            for number in count(1)
            if (each := name if number == 1 else f"{name}/{number}") not in self.used
        )
        self.used.add(free)
        return free


@dataclass(slots=True)
class Slices:
    """Makes nodes and initializers that hold ranges of tensors.

    Parameters
    ----------
    resolved
        Types of tensors and constants, and what constants stem from.
    tensors, node_names
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
    node_names: Names
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
            return self._gather_parts(name, ranges, shape)
        if not ranges:
            return name
        key = (name, ranges)
        if key not in self.ready:
            self.ready[key] = self._add_range(name, ranges, shape, dequantise)
        return self.ready[key]

    def _add_range(self, name: str, ranges: Ranges, shape: Shape, dequantise: Dequantise) -> str:
        origin = self.resolved.origins.get(name)
        if isinstance(origin, onnx.TensorProto) and not self.by_nodes:
            tensor = _cut_weight(origin, ranges, shape)
            if tensor is not None:
                tensor.name = self.tensors.free(_sliced_name(name, ranges))
                self.initializers.append(tensor)
                return str(tensor.name)
        is_dequantised = isinstance(origin, onnx.NodeProto) and origin.op_type == "DequantizeLinear"
        if is_dequantised and len(ranges) == 1:
            assert isinstance(origin, onnx.NodeProto)
            return dequantise(origin, ranges[0])
        return self.slice(name, ranges, self.tensors.free(_sliced_name(name, ranges)))

    def _gather_parts(self, name: str, ranges: Ranges, shape: Shape) -> str:
        """Return what holds ranges of a tensor that is made in parts, put together for one reader.

        Each reader has a join of its own: it may run on another processor than the others.
        """
        axis = self.parts[name][0][0].axis
        requested = next((e for e in ranges if e.axis == axis), Range(axis, 0, shape[axis]))
        others = tuple(each for each in ranges if each.axis != axis)
        pieces = []
        for own, result in self.parts[name]:
            common = Range(axis, max(own.begin, requested.begin), min(own.end, requested.end))
            if common.size > 0:
                within = Range(axis, common.begin - own.begin, common.end - own.begin)
                pieces.append(self._slice_part(result, (*others, *((within,) * (common != own)))))
        if len(pieces) == 1:
            return pieces[0]
        joined = self.tensors.free(_sliced_name(name, (*others, requested)))
        node = helper.make_node("Concat", pieces, [joined], self.node_names.free(joined), axis=axis)
        self.nodes.append(mark(node))
        return joined

    def _slice_part(self, result: str, ranges: Ranges) -> str:
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
        node_name = self.node_names.free(result)
        if self.resolved.opsets.get("", _INPUTS_SINCE) < _INPUTS_SINCE:
            node = helper.make_node("Slice", [source], [result], node_name)
            node.attribute.extend(starmap(helper.make_attribute, bounds.items()))
        else:
            bound_inputs = [self.integers(f"{result}/{each}", at) for each, at in bounds.items()]
            node = helper.make_node("Slice", [source, *bound_inputs], [result], node_name)
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


def _cut_weight(tensor: onnx.TensorProto, ranges: Ranges, shape: Shape) -> onnx.TensorProto | None:
    """Return ranges of an initializer as one; None if a Slice must make them.

    External data stay where they are: a contiguous range is another place in the same file.
    """
    if is_external(tensor):
        return _external_range(tensor, ranges, shape)
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


def _external_range(
    tensor: onnx.TensorProto, ranges: Ranges, shape: Shape
) -> onnx.TensorProto | None:
    first = ranges[0]
    item_bytes = ITEM_BYTES[dtype_name(tensor.data_type) or "int4"]
    if len(ranges) > 1 or prod(shape[: first.axis]) != 1 or item_bytes < 1:
        return None
    location, offset, _ = external_place(tensor)
    row_bytes = int(item_bytes) * prod(shape[first.axis + 1 :])
    result = onnx.TensorProto(data_type=tensor.data_type, dims=cut_shape(shape, ranges))
    result.data_location = onnx.TensorProto.EXTERNAL
    entries: Mapping[str, object] = {
        "location": location,
        "offset": offset + first.begin * row_bytes,
        "length": first.size * row_bytes,
    }
    for key, value in entries.items():
        result.external_data.add(key=key, value=str(value))
    return result


_Results = dict[str, tuple[str, Range]]  # names of a part's results, and their ranges


@dataclass(slots=True)
class PartNodes:
    """Writes parts as nodes.

    Parameters
    ----------
    protos
        The model's nodes by the names of the operators that stand for them.
    slices
        Takes the nodes and initializers that are made.
    """

    protos: Mapping[str, onnx.NodeProto]
    slices: Slices

    def add(self, run: Run, parts: Sequence[RunPart]) -> None:
        """Add the nodes of a run's parts, and those that join them to the run's outputs."""
        part_results: list[_Results] = [{} for _ in parts]
        for number, part in enumerate(parts):
            for step in part.steps:
                self._add_step(step, number, part_results[number])
        for name in filter(None, run.last.outputs):
            axis = parts[0].requested.axis
            results = [
                self._result_range(at, name, part.requested)
                for at, part in zip(part_results, parts, strict=True)
                if name in at
            ]
            if len(results) == len(parts):
                ranges = (part.requested for part in parts)
                self.slices.parts[name] = list(zip(ranges, results, strict=True))
            join = self.slices.node_names.free(f"{name}/join")
            joined = helper.make_node("Concat", results, [name], join, axis=axis)
            self.slices.nodes.append(mark(joined))

    def _add_step(self, step: Step, number: int, results: _Results) -> None:
        node = deepcopy(self.protos[step.operator.name])
        node.name = self.slices.node_names.free(part_name(step.operator.name, number))
        inputs = [
            self._input_name(name, ranges, results)
            for position, name in enumerate(node.input)
            if (ranges := step.part.of(position)) is not None
        ]
        node.input[:] = inputs
        self._change_attributes(node, step)
        for position, name in enumerate(node.output):
            if name in step.operator.outputs and name:
                own = self.slices.tensors.free(part_name(name, number))
                results[name] = own, step.computed
                node.output[position] = own
            else:
                node.output[position] = ""
        self.slices.nodes.append(node)

    def _input_name(self, name: str, ranges: Ranges, results: _Results) -> str:
        if name in results:
            return self._result_range(results, name, ranges[0])
        return self.slices.of(name, ranges, self._add_dequantiser) if name else name

    def _result_range(self, results: _Results, name: str, requested: Range) -> str:
        """Return a range of what a part has made, which may be more."""
        own, full = results[name]
        if full == requested:
            return own
        within = Range(requested.axis, requested.begin - full.begin, requested.end - full.begin)
        result = self.slices.tensors.free(f"{own}/{within.axis}:{within.begin}-{within.end}")
        return self.slices.slice(own, (within,), result)

    def _change_attributes(self, node: onnx.NodeProto, step: Step) -> None:
        """Give a node the attributes of a part, or the constants that stand for them."""
        for name, value in step.part.attributes.items():
            position = input_of(node.op_type, name)
            if position is not None and position < len(node.input) and node.input[position]:
                assert isinstance(value, tuple)
                kind = self.slices.resolved.types[step.operator.inputs[position]]
                node.input[position] = self.slices.integers(
                    f"{node.name}/{name}",
                    [number for number in value if isinstance(number, int)],
                    kind.tensor_type.elem_type,
                )
                continue
            others = [each for each in node.attribute if each.name != name]
            node.ClearField("attribute")
            node.attribute.extend(others)
            if value is not None:
                node.attribute.append(helper.make_attribute(name, value))

    def _add_dequantiser(self, node: onnx.NodeProto, requested: Range) -> str:
        """Add a DequantizeLinear of a range of stored weights; return its result's name."""
        resolved = self.slices.resolved
        names = [*node.input, *node.output]
        tensors = {n: at for n in names if n and (at := tensor_of(n, resolved.types[n]))}
        operator = Operator(
            node.output[0],
            node.output[0],
            node.domain,
            node.op_type,
            attributes_of(node, resolved.values),
            tuple(node.input),
            tuple(node.output),
            Work(0, 0, 0),
            (),
        )
        (step,) = Run((operator,), tensors, resolved.opsets).part(requested).steps
        copy = deepcopy(node)
        result = f"{node.output[0]}/{requested.axis}:{requested.begin}-{requested.end}"
        copy.output[0] = self.slices.tensors.free(result)
        copy.name = self.slices.node_names.free(result)
        copy.input[:] = [
            self._input_name(name, step.part.of(position) or (), {})
            for position, name in enumerate(node.input)
        ]
        self.slices.nodes.append(copy)
        return str(copy.output[0])
