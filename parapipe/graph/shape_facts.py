"""What is known of a result beyond inference, and in plain words why something is not known."""

from __future__ import annotations

import onnx

from parapipe.graph.infer import shape_of, tensor_type


def filled_in(
    inferred: onnx.TypeProto | None,
    declared: onnx.TypeProto | None,
    shape: tuple[int, ...] | None,
    given: int = onnx.TensorProto.UNDEFINED,
) -> onnx.TypeProto | None:
    """Return the type of a result whose inferred shape is not known; None if nothing is known.

    Parameters
    ----------
    inferred, declared
        Types that follow from the inputs, and that the file states.
    shape
        What the user gives, or what is known of a sequence; it counts before what the file states.
    given
        Element type that the user gives, for where nothing else says it.
    """
    if shape is not None:
        element_type = element_type_of(inferred) or element_type_of(declared) or given
        if element_type:
            return tensor_type(element_type, shape)
    return declared if shape_of(declared) is not None else None


def why_unknown(node: onnx.NodeProto) -> str:
    """Return why the result of an operator has no shape, where inference gave no reason."""
    if onnx.defs.has(node.op_type, node.domain):
        return "no shape follows from those of its inputs"
    return "of a type that parapipe does not know"


def why_no_tensor(kind: onnx.TypeProto | None) -> str:
    """Return why a result of a type cannot be moved like a tensor; empty if the type can be."""
    if kind is None or kind.HasField("tensor_type"):
        known = shape_of(kind) is not None
        return "a data type that parapipe does not know" if known else ""
    inner = kind.optional_type.elem_type if kind.HasField("optional_type") else kind
    if inner.HasField("sequence_type"):
        return "it makes a sequence whose length follows from no shape"
    return "it makes neither a tensor nor a sequence of tensors"


def element_type_of(kind: onnx.TypeProto | None) -> int:
    """Return the element type of a dense tensor, whatever its shape; UNDEFINED if not known."""
    return kind.tensor_type.elem_type if kind is not None else 0
