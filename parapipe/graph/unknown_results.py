"""Why the shape or the type of a result is not known."""

from __future__ import annotations

import onnx

from parapipe.graph.data_types import shape_of, unwrap


def why_unknown(node: onnx.NodeProto) -> str:
    """Return why the result of an operator has no shape, where inference gave no reason."""
    if onnx.defs.has(node.op_type, node.domain):
        return "no shape follows from those of its inputs"
    return "of a type that parapipe does not know"


def why_no_tensor(kind: onnx.TypeProto | None) -> str:
    """Return why a result of a type cannot be moved like a tensor; empty if the type can be."""
    if kind is None or kind.HasField("tensor_type"):
        has_shape = shape_of(kind) is not None
        return "a data type that parapipe does not know" if has_shape else ""
    if unwrap(kind).HasField("sequence_type"):
        return "it makes a sequence whose length follows from no shape"
    return "it makes neither a tensor nor a sequence of tensors"
