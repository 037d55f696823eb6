"""Writes a model in an older opset than its own, as compilers need it."""

from __future__ import annotations

from collections.abc import Iterator
from math import pi, sqrt

import numpy as np
import onnx
import onnx.version_converter
from onnx import ModelProto, NodeProto, helper, numpy_helper

from parapipe.compilers.contract import CompileError

NODE, TYPE = "parapipe.node", "parapipe.type"
"""Metadata of a node that stands for a part of another one: the name and the type of that."""
_OWN = {"", "ai.onnx"}
_GELU_OPSET = 20


def lower_opset(model: ModelProto, file: str, version: int, most_opset: int) -> ModelProto:
    """Return a model in an older opset.

    Parameters
    ----------
    file
        Its name, for messages.
    version
        Its opset.

    Raises
    ------
    CompileError
        If an operator cannot be written in that opset.
    """
    if most_opset < _GELU_OPSET:
        _write_gelus(model)
    newer = {
        node.op_type
        for node in model.graph.node
        if node.domain in _OWN
        and onnx.defs.get_schema(node.op_type, version).since_version > most_opset
    }
    if newer:
        try:
            lowered = onnx.version_converter.convert_version(model, most_opset)
        except Exception as error:
            raise CompileError(
                f"{file}: cannot be written in opset {most_opset}, which the compiler needs: its "
                f"{', '.join(sorted(newer))} is of opset {version} ({error}); export the model in "
                f"opset {most_opset}",
                "refused",
            ) from error
        _copy_metadata(model, lowered)
        return lowered
    for each in model.opset_import:  # nothing that it holds has changed since then
        if each.domain in _OWN:
            each.version = most_opset
    return model


def _copy_metadata(model: ModelProto, lowered: ModelProto) -> None:
    """Give nodes their metadata again, which the converter drops."""
    metadata = {node.name: node.metadata_props for node in model.graph.node if node.metadata_props}
    for node in lowered.graph.node:
        if node.name in metadata and not node.metadata_props:
            node.metadata_props.extend(metadata[node.name])


def _write_gelus(model: ModelProto) -> None:
    """Write each Gelu as PyTorch exports it to older opsets, a form that compilers fuse."""
    if not any(node.op_type == "Gelu" and node.domain in _OWN for node in model.graph.node):
        return
    inferred = onnx.shape_inference.infer_shapes(model).graph
    values = (*inferred.value_info, *inferred.input, *inferred.output)
    types = {each.name: each.type.tensor_type.elem_type for each in values}
    nodes: list[NodeProto] = []
    for node in model.graph.node:
        if node.op_type != "Gelu" or node.domain not in _OWN:
            nodes.append(node)
            continue
        dtype = helper.tensor_dtype_to_np_dtype(types[node.input[0]])
        for number, value in enumerate(_CONSTANTS):
            array = np.array(value, dtype)
            model.graph.initializer.append(numpy_helper.from_array(array, _constant(node, number)))
        parts = [*(_tanh_gelu if _is_tanh(node) else _erf_gelu)(node)]
        for number, part in enumerate(parts):
            part.name = f"{node.name or node.output[0]}/{number}"
            for key, text in ((NODE, node.name or node.output[0]), (TYPE, node.op_type)):
                part.metadata_props.add(key=key, value=text)
        nodes += parts
    del model.graph.node[:]
    model.graph.node.extend(nodes)


_CONSTANTS = (sqrt(2), 1.0, 0.5, 3.0, 0.044715, sqrt(2 / pi))
_ROOT, _ONE, _HALF, _THREE, _CUBIC, _SLOPE = range(len(_CONSTANTS))


def _is_tanh(node: NodeProto) -> bool:
    return any(each.name == "approximate" and each.s == b"tanh" for each in node.attribute)


def _constant(node: NodeProto, number: int) -> str:
    return f"{node.output[0]}/constant{number}"


def _erf_gelu(node: NodeProto) -> Iterator[NodeProto]:
    """Yield x (1 + erf(x / √2)) ½, see Gelu in ONNX's Operators.md."""
    make = _Maker(node)
    erf = make.step("Erf", make.step("Div", node.input[0], make.constant(_ROOT)))
    product = make.step("Mul", node.input[0], make.step("Add", erf, make.constant(_ONE)))
    make.step("Mul", product, make.constant(_HALF), output=node.output[0])
    yield from make.nodes


def _tanh_gelu(node: NodeProto) -> Iterator[NodeProto]:
    """Yield ½ x (1 + tanh(√(2 / π) (x + 0.044715 x³)))."""
    make = _Maker(node)
    cubic = make.step(
        "Mul", make.step("Pow", node.input[0], make.constant(_THREE)), make.constant(_CUBIC)
    )
    inner = make.step("Mul", make.step("Add", node.input[0], cubic), make.constant(_SLOPE))
    outer = make.step("Add", make.step("Tanh", inner), make.constant(_ONE))
    half = make.step("Mul", node.input[0], make.constant(_HALF))
    make.step("Mul", half, outer, output=node.output[0])
    yield from make.nodes


class _Maker:
    """Makes the nodes that a node is written as, one after the other."""

    def __init__(self, node: NodeProto) -> None:
        self.node = node
        self.nodes: list[NodeProto] = []

    def constant(self, number: int) -> str:
        """Return the name of a constant."""
        return _constant(self.node, number)

    def step(self, kind: str, *inputs: str, output: str = "") -> str:
        """Add an operator; return the name of its output."""
        output = output or f"{self.node.output[0]}/{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, [*inputs], [output]))
        return output
