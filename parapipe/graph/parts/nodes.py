"""Writes the parts of runs as ONNX nodes, and joins their results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import onnx
from onnx import helper

from parapipe.graph.attributes import attributes_of, input_of
from parapipe.graph.dtypes import tensor_of
from parapipe.graph.operator_graph import Operator, Work
from parapipe.graph.parts.marks import mark, part_name
from parapipe.graph.parts.part import Range, Ranges
from parapipe.graph.parts.run import Run, RunPart, Step
from parapipe.graph.parts.slices import Slices

_Made = dict[str, tuple[str, Range]]  # names of a part's results, and their ranges


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
        made = [self._part(part, number) for number, part in enumerate(parts)]
        for name in filter(None, run.last.outputs):
            axis = parts[0].asked.axis
            results = [
                self._range_of(at, name, part.asked)
                for at, part in zip(made, parts, strict=True)
                if name in at
            ]
            if len(results) == len(parts):
                ranges = (part.asked for part in parts)
                self.slices.parts[name] = list(zip(ranges, results, strict=True))
            join = self.slices.named.free(f"{name}/join")
            joined = helper.make_node("Concat", results, [name], join, axis=axis)
            self.slices.nodes.append(mark(joined))

    def _part(self, part: RunPart, number: int) -> _Made:
        made: _Made = {}
        for step in part.steps:
            self._step(step, number, made)
        return made

    def _step(self, step: Step, number: int, made: _Made) -> None:
        node = onnx.NodeProto()
        node.CopyFrom(self.protos[step.operator.name])
        node.name = self.slices.named.free(part_name(step.operator.name, number))
        kept = [
            self._input(name, ranges, made)
            for position, name in enumerate(node.input)
            if (ranges := step.part.of(position)) is not None
        ]
        node.input[:] = kept
        self._change(node, step)
        for position, name in enumerate(node.output):
            if name in step.operator.outputs and name:
                own = self.slices.tensors.free(part_name(name, number))
                made[name] = own, step.made
                node.output[position] = own
            else:
                node.output[position] = ""
        self.slices.nodes.append(node)

    def _input(self, name: str, ranges: Ranges, made: _Made) -> str:
        if name in made:
            return self._range_of(made, name, ranges[0])
        return self.slices.of(name, ranges, self._dequantised) if name else name

    def _range_of(self, made: _Made, name: str, asked: Range) -> str:
        """Return a range of what a part has made, which may be more."""
        own, there = made[name]
        if there == asked:
            return own
        within = Range(asked.axis, asked.begin - there.begin, asked.end - there.begin)
        result = self.slices.tensors.free(f"{own}/{within.axis}:{within.begin}-{within.end}")
        return self.slices.slice(own, (within,), result)

    def _change(self, node: onnx.NodeProto, step: Step) -> None:
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
            kept = [each for each in node.attribute if each.name != name]
            node.ClearField("attribute")
            node.attribute.extend(kept)
            if value is not None:
                node.attribute.append(helper.make_attribute(name, value))

    def _dequantised(self, node: onnx.NodeProto, asked: Range) -> str:
        """Add a DequantizeLinear of a range of stored weights; return its result's name."""
        resolved = self.slices.resolved
        named = [*node.input, *node.output]
        known = {n: at for n in named if n and (at := tensor_of(n, resolved.types[n]))}
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
        (step,) = Run((operator,), known, resolved.opsets).part(asked).steps
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        result = f"{node.output[0]}/{asked.axis}:{asked.begin}-{asked.end}"
        copy.output[0] = self.slices.tensors.free(result)
        copy.name = self.slices.named.free(result)
        copy.input[:] = [
            self._input(name, step.part.of(position) or (), {})
            for position, name in enumerate(node.input)
        ]
        self.slices.nodes.append(copy)
        return str(copy.output[0])
