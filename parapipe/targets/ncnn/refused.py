"""Finds the nodes of a segment that are in the way of its conversion.

Each node is converted by itself, with what ONNX Runtime gives it; equal ones once. Where each is
taken alone, the shortest beginning of the segment that is not taken ends with the node to name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from parapipe.graph.order import reads_of
from parapipe.targets.borders import FloatSegment
from parapipe.targets.ncnn.conversion import Job, RefusedError, check_types, convert
from parapipe.targets.ncnn.tools import Tools


@dataclass(frozen=True, slots=True)
class RefusedNode:
    """A node that has no form in ncnn.

    Parameters
    ----------
    node, operator_type
        Name and ONNX type.
    reason
        Half a sentence.
    """

    node: str
    operator_type: str
    reason: str


def refused_nodes(
    job: Job, reason: str, tools: Tools, folder: Path, reasons: dict[bytes, str]
) -> Iterator[RefusedNode]:
    """Yield the nodes that are in the way of a segment's conversion.

    Parameters
    ----------
    reason
        Why the segment is refused.
    folder
        Empty, for files.
    reasons
        Why each kind of node was refused before; empty where it was not. It is added to.
    """
    nodes = _Nodes(onnx.load(job.model), job, tools, folder)
    none_alone = True
    for node in nodes.listed:
        key = nodes.key(node)
        if key not in reasons:
            reasons[key] = nodes.reason([node])
        if reasons[key]:
            none_alone = False
            yield RefusedNode(node.name or node.output[0], node.op_type, reasons[key])
    if none_alone:
        node, why = nodes.first_behind_others() or (nodes.listed[-1], reason)
        yield RefusedNode(
            node.name or node.output[0], node.op_type, f"behind those before it, {why}"
        )


@dataclass
class _Nodes:
    """The nodes of a segment and the tensors of a sample.

    Parameters
    ----------
    model
        That of the segment.
    """

    model: onnx.ModelProto
    job: Job
    tools: Tools
    folder: Path
    listed: list[onnx.NodeProto] = field(init=False)
    arrays: dict[str, Any] = field(init=False)
    constants: dict[str, onnx.TensorProto] = field(init=False)
    count: int = 0

    def __post_init__(self) -> None:
        graph = self.model.graph
        self.constants = {each.name: each for each in graph.initializer}
        varying = {*self.job.inputs}
        self.listed = []
        for node in graph.node:
            if varying.isdisjoint(reads_of(node)):
                continue
            self.listed.append(node)
            varying.update(filter(None, node.output))
        self.arrays = {**self.job.inputs, **self._made()}
        for node in graph.node:
            if varying.isdisjoint(node.output):
                for name in filter(None, node.output):
                    array = self.arrays.pop(name)
                    if isinstance(array, np.ndarray):
                        self.constants[name] = numpy_helper.from_array(array, name)

    def _made(self) -> dict[str, Any]:
        names = list(dict.fromkeys(n for node in self.model.graph.node for n in node.output if n))
        everything = onnx.ModelProto()
        everything.CopyFrom(self.model)
        del everything.graph.output[:]
        everything.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
        path = self.folder / "everything.onnx"
        onnx.save(everything, path)
        return FloatSegment(path, names).run(self.job.inputs)

    def key(self, node: onnx.NodeProto) -> bytes:
        """Return what nodes have in common that are converted in the same way."""
        plain = onnx.NodeProto(op_type=node.op_type, domain=node.domain, attribute=node.attribute)
        read = [self._about(name) for name in reads_of(node)]
        content: bytes = plain.SerializeToString(deterministic=True)
        return content + repr(read).encode()

    def _about(self, name: str) -> object:
        if name in self.constants:
            constant = self.constants[name]
            integers = constant.data_type not in (onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE)
            values = numpy_helper.to_array(constant).tolist() if integers else None
            return tuple(constant.dims), constant.data_type, values
        array = self.arrays.get(name)  # of a sequence it is a list
        return getattr(array, "shape", None), str(getattr(array, "dtype", type(array)))

    def reason(self, nodes: Sequence[onnx.NodeProto]) -> str:
        """Return why some nodes are not converted together; nothing if they are."""
        made = {name for node in nodes for name in node.output if name}
        read = list(dict.fromkeys(n for node in nodes for n in reads_of(node) if n not in made))
        later = {n for node in self.listed if node not in nodes for n in reads_of(node)}
        wanted = {*later, *self.job.outputs}
        results = [n for node in nodes for n in node.output if n in wanted]
        results = results or [name for name in nodes[-1].output if name]
        inputs = {name: self.arrays[name] for name in read if name in self.arrays}
        outputs = {name: self.arrays[name] for name in results}
        if not self._has_borders_of_ncnn(inputs, outputs):
            return ""
        try:
            check_types(inputs, outputs)
        except RefusedError as error:
            return error.reason
        self.count += 1
        path = self.folder / f"{self.count}.onnx"
        graph = helper.make_graph(
            nodes, "nodes", _values(inputs), _values(outputs),
            [self.constants[name] for name in read if name in self.constants],
        )  # fmt: skip
        versions = {"opset_imports": self.model.opset_import, "ir_version": self.model.ir_version}
        onnx.save(helper.make_model(graph, **versions), path)
        try:
            convert(Job(path, inputs, outputs), self.tools)
        except RefusedError as error:
            return error.reason
        return ""

    def _has_borders_of_ncnn(self, inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> bool:
        """Tell whether nodes can be tried apart: not through a tensor that ncnn keeps inside."""
        inner = [name for name in inputs if name not in self.job.inputs]
        made = [name for name in outputs if name not in self.job.outputs]
        try:
            check_types({n: inputs[n] for n in inner}, {n: outputs[n] for n in made})
        except RefusedError:
            return False
        return True

    def first_behind_others(self) -> tuple[onnx.NodeProto, str] | None:
        """Return the last node of the shortest beginning that is refused, and why."""
        least, most, why = 1, len(self.listed), ""
        while least < most:
            middle = (least + most) // 2
            if reason := self.reason(self.listed[:middle]):
                most, why = middle, reason
            else:
                least = middle + 1
        why = why if why and most < len(self.listed) else self.reason(self.listed)
        return (self.listed[most - 1], why) if why else None


def _values(arrays: Mapping[str, Any]) -> list[onnx.ValueInfoProto]:
    return [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
        )
        for name, array in arrays.items()
    ]
