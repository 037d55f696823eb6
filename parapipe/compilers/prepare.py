"""Writes a segment as compilers take it: an opset they know, defaults said, every node named."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import onnx
from google.protobuf.message import DecodeError
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, external_data_helper, helper

from parapipe.compilers.contract import CompileError
from parapipe.compilers.older_opset import lower_opset

MOST_OPSET = 19
MOST_BYTES = 2**31 - 1
"""Size of a segment with its weights: protobuf takes no more."""
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


def model_files(path: Path) -> list[Path]:
    """Return the files of a model: its own, and those of its weights that stand outside of it.

    Raises
    ------
    CompileError
        If one of them is not there, or it is no ONNX model.
    """
    try:
        model = onnx.load(path, load_external_data=False)
        if not model.ir_version:
            raise DecodeError("it has no version")
    except (OSError, DecodeError) as error:
        raise CompileError(
            f"{path.name}: cannot be read as an ONNX model ({error}); write it anew", "refused"
        ) from error
    names = {
        entry.value
        for each in _tensors(model.graph)
        if external_data_helper.uses_external_data(each)
        for entry in each.external_data
        if entry.key == "location"
    }
    files = [path, *(path.parent / name for name in sorted(names))]
    missing = [each.name for each in files if not each.is_file()]
    if missing:
        raise CompileError(
            f"{path.name}: '{', '.join(missing)}' with its weights is not there; copy it beside it",
            "refused",
        )
    return files


def _tensors(graph: GraphProto) -> Iterator[TensorProto]:
    yield from graph.initializer
    for node in graph.node:
        for each in node.attribute:
            yield from (each.t, *each.tensors)
            for inner in (each.g, *each.graphs):
                yield from _tensors(inner)


def load_segment(path: Path, most_opset: int = MOST_OPSET) -> ModelProto:
    """Load a segment with all its weights and prepare it, see `prepare`; errors name the file."""
    size_bytes = sum(each.stat().st_size for each in model_files(path))
    if size_bytes > MOST_BYTES:
        raise CompileError(
            f"{path.name}: has {size_bytes / 1e9:.1f} GB with its weights, and a compiler takes at "
            f"most {MOST_BYTES / 1e9:.1f} GB; cut the segment, as `parapipe map` does with "
            "`--granularity onnx`",
            "refused",
        )
    return prepare(onnx.load(path), path.name, most_opset)


def prepare(model: ModelProto, file: str, most_opset: int = MOST_OPSET) -> ModelProto:
    """Return a segment with an opset of at most a number, explicit defaults and named nodes.

    A node without a name of its own, or with that of another one, is named by its first output.

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
        model = lower_opset(model, file, version, most_opset)
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
    wrong = [
        name
        for name, kind in model_inputs(model)
        if not kind.HasField("shape") or not all(each.dim_value > 0 for each in kind.shape.dim)
    ]
    if wrong:
        raise CompileError(
            f"{file}: the input '{wrong[0]}' has no fixed shape; name its sizes by `--dim` or "
            "`--shape`",
            "refused",
        )


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


def model_inputs(model: ModelProto) -> list[tuple[str, Any]]:
    """Return the name and the tensor type of each input that is no constant."""
    constants = {each.name for each in model.graph.initializer}
    return [
        (each.name, each.type.tensor_type)
        for each in model.graph.input
        if each.name not in constants
    ]


def float_types() -> frozenset[int]:
    """Return ONNX's floating-point types."""
    return frozenset({TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE})
