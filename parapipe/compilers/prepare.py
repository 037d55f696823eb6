"""Writes a segment as compilers take it: an opset they know, defaults said, every node named."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import onnx
from onnx import ModelProto, NodeProto, TensorProto, helper

from parapipe.compilers.contract import CompileError

MOST_OPSET = 19
_MOST_IR = 10
_DEFAULTS: Mapping[str, Mapping[str, float]] = {
    "BatchNormalization": {"epsilon": 1e-5},
    "InstanceNormalization": {"epsilon": 1e-5},
    "LayerNormalization": {"axis": -1, "epsilon": 1e-5},
    "LRN": {"alpha": 1e-4, "beta": 0.75, "bias": 1.0},
    "LeakyRelu": {"alpha": 0.01},
    "Elu": {"alpha": 1.0},
    "HardSigmoid": {"alpha": 0.2, "beta": 0.5},
    "Softmax": {"axis": -1},
    "LogSoftmax": {"axis": -1},
}
"""Attributes whose defaults compilers are known to miss: a LayerNormalization without epsilon ends
rknn-toolkit2 2.5.0 with a KeyError. Values: ONNX's Operators.md."""


def load_segment(path: Path, most_opset: int = MOST_OPSET) -> ModelProto:
    """Load a segment and prepare it, see `prepare`; errors name the file."""
    model = onnx.load(path)
    return prepare(model, path.name, most_opset)


def prepare(model: ModelProto, file: str, most_opset: int = MOST_OPSET) -> ModelProto:
    """Return a segment with an opset of at most a number, explicit defaults and named nodes.

    Parameters
    ----------
    file
        Its name, for messages.

    Raises
    ------
    CompileError
        If a shape is not fixed, or an operator cannot be written in that opset.
    """
    _check_shapes(model, file)
    versions = {each.domain: each.version for each in model.opset_import}
    version = versions.get("", versions.get("ai.onnx", 0))
    if version > most_opset:
        model = _lower(model, file, version, most_opset)
        version = most_opset
    model.ir_version = min(model.ir_version, _MOST_IR)
    names: set[str] = set()
    for node in model.graph.node:
        _say_defaults(node, version)
        if not node.name or node.name in names:
            node.name = next(each for each in node.output if each)
        names.add(node.name)
    return model


def _check_shapes(model: ModelProto, file: str) -> None:
    constants = {each.name for each in model.graph.initializer}
    for value in model.graph.input:
        sizes = [each.dim_value for each in value.type.tensor_type.shape.dim]
        if value.name not in constants and not all(size > 0 for size in sizes):
            raise CompileError(
                f"{file}: the input '{value.name}' has no fixed shape; name its sizes by `--dim` "
                "or `--shape`",
                "refused",
            )


def _lower(model: ModelProto, file: str, version: int, most_opset: int) -> ModelProto:
    """Write a model in an older opset; what nothing changed in between stays as it is."""
    changed = [
        node.op_type
        for node in model.graph.node
        if node.domain in {"", "ai.onnx"}
        and onnx.defs.get_schema(node.op_type, version).since_version > most_opset
    ]
    if changed:
        try:
            return onnx.version_converter.convert_version(model, most_opset)
        except Exception as error:
            raise CompileError(
                f"{file}: cannot be written in opset {most_opset}, which the compiler needs, since "
                f"{', '.join(sorted(set(changed)))} is of opset {version} ({error}); export the "
                f"model in opset {most_opset}",
                "refused",
            ) from error
    for each in model.opset_import:
        if each.domain in {"", "ai.onnx"}:
            each.version = most_opset
    return model


def _say_defaults(node: NodeProto, version: int) -> None:
    there = {each.name for each in node.attribute}
    if node.op_type in {"Softmax", "LogSoftmax"} and version < 13:
        return
    for name, value in _DEFAULTS.get(node.op_type, {}).items():
        if name not in there:
            node.attribute.append(helper.make_attribute(name, value))


def is_quantized(model: ModelProto) -> bool:
    """Tell whether a model holds its own scales (QDQ), so that the tool must not quantize it."""
    return any(node.op_type == "DequantizeLinear" for node in model.graph.node)


def float_inputs(model: ModelProto) -> list[str]:
    """Return the names of its inputs in floating point that are not constants."""
    constants = {each.name for each in model.graph.initializer}
    kinds = {TensorProto.FLOAT, TensorProto.FLOAT16}
    return [
        each.name
        for each in model.graph.input
        if each.name not in constants and each.type.tensor_type.elem_type in kinds
    ]
