"""Shapes of the com.microsoft operators that ONNX Runtime's optimiser and quantiser write.

ONNX has no schema for them. Source: ONNX Runtime's page "Contrib Operators".
"""

from __future__ import annotations

from collections.abc import Sequence

import onnx

from parapipe.graph.data_types import shape_of, tensor_type
from parapipe.graph.infer import Facts, infer, integer
from parapipe.graph.work import LIKE_STANDARD

# Each output is like the first input.
_LIKE_FIRST = frozenset(
    {
        *("Gelu", "FastGelu", "BiasGelu", "QuickGelu", "BiasSoftmax", "BiasAdd", "GroupNorm"),
        *("QLinearSigmoid", "QLinearLeakyRelu", "QLinearSoftmax", "RotaryEmbedding"),
        *("LayerNormalization", "SkipLayerNormalization", "MeanVarianceNormalization"),
        *("SimplifiedLayerNormalization", "SkipSimplifiedLayerNormalization"),
    }
)
# The input whose element type the output has, where that is not the first.
_TYPED_BY = {
    "MatMulIntegerToFloat": 2, "QGemm": 8, "QLinearConcat": 1, "QLinearConv": 7, "QLinearWhere": 1,
    "QAttention": 3,
}  # fmt: skip
# Attributes that make FusedMatMul more than MatMul, and put the channels of QLinearConv last.
_NON_STANDARD = ("transBatchA", "transBatchB", "channels_last")


def infer_contrib(node: onnx.NodeProto, facts: Facts) -> dict[str, onnx.TypeProto]:
    """Infer the types of the outputs of an operator of ONNX Runtime; empty if it is not known."""
    try:
        return _infer_outputs(node, facts)
    except (IndexError, KeyError, ZeroDivisionError):
        # An input that is left out or has another rank: there is no schema that would have told.
        return {}


def _infer_outputs(node: onnx.NodeProto, facts: Facts) -> dict[str, onnx.TypeProto]:
    types = facts.types
    # In the standard domain for what older opsets do not have, such as LayerNormalization.
    if node.domain not in ("com.microsoft", "") or not node.input or node.input[0] not in types:
        return {}
    if node.op_type in _LIKE_FIRST:
        return {name: types[node.input[0]] for name in node.output if name}
    if node.domain != "com.microsoft":
        return {}
    if node.op_type in LIKE_STANDARD:
        return _typed_output(node, facts, _standard_shape(node, facts))
    shape = None
    if node.op_type == "QLinearConcat":
        shape = _concatenated_shape(node, facts)
    elif node.op_type in ("Attention", "MultiHeadAttention", "QAttention"):
        shape = _attention_shape(node, facts)
    elif node.op_type in ("MatMulNBits", "MatMulBnb4"):
        rows = facts.shape(node.input[0])
        shape = (*rows[:-1], integer(node, "N", 0)) if rows else None
    elif node.op_type == "GroupQueryAttention":
        return _group_query_attention_types(node, facts)
    elif node.op_type == "DynamicQuantizeLSTM":
        return _lstm_types(node, facts)
    return _typed_output(node, facts, shape)


def _typed_output(
    node: onnx.NodeProto, facts: Facts, shape: Sequence[int] | None
) -> dict[str, onnx.TypeProto]:
    """Type of the first output; of the others nothing is known."""
    position = _TYPED_BY.get(node.op_type, 0)
    source = node.input[position] if position < len(node.input) else ""
    if shape is None:
        return {}
    element_type = facts.types[source].tensor_type.elem_type if source else onnx.TensorProto.FLOAT
    return {node.output[0]: tensor_type(element_type, shape)}


def _standard_shape(node: onnx.NodeProto, facts: Facts) -> tuple[int, ...] | None:
    standard, positions = LIKE_STANDARD[node.op_type]
    if any(integer(node, name, 0) for name in _NON_STANDARD):
        return None
    names = ["a", "b", "c"][: len(positions)]
    operands = dict(zip(names, (facts.types[node.input[at]] for at in positions), strict=True))
    twin = onnx.helper.make_node(standard, names, ["y"])
    if standard == "MatMul":
        for name, flag in (("a", "transA"), ("b", "transB")):
            if integer(node, flag, 0):
                operands[name] = _swap_last_axes(operands[name])
    else:
        allowed = onnx.defs.get_schema(standard).attributes
        twin.attribute.extend(a for a in node.attribute if a.name in allowed)
    inferred, _ = infer(twin, Facts(facts.opsets, operands))
    return shape_of(inferred.get("y"))


def _swap_last_axes(kind: onnx.TypeProto) -> onnx.TypeProto:
    shape = shape_of(kind)
    if shape is None or len(shape) == 1:
        return kind
    return tensor_type(kind.tensor_type.elem_type, (*shape[:-2], shape[-1], shape[-2]))


def _concatenated_shape(node: onnx.NodeProto, facts: Facts) -> tuple[int, ...] | None:
    shapes = [facts.shape(name) for name in node.input[2::3]]
    axis = next((a.i for a in node.attribute if a.name == "axis"), None)
    known_shapes = [shape for shape in shapes if shape is not None]
    if axis is None or not known_shapes or len(known_shapes) < len(shapes):
        return None
    axis %= len(known_shapes[0])
    length = sum(shape[axis] for shape in known_shapes)
    return (*known_shapes[0][:axis], length, *known_shapes[0][axis + 1 :])


def _attention_shape(node: onnx.NodeProto, facts: Facts) -> tuple[int, ...] | None:
    """`[batch, length, width of all values]`, from queries or from the packed product's input."""
    query = facts.shape(node.input[0])
    if query is None or len(query) != 3:
        return None
    if node.op_type in ("Attention", "QAttention"):
        weights = facts.shape(node.input[1])
        sizes = next((a.ints for a in node.attribute if a.name == "qkv_hidden_sizes"), None)
        width = sizes[2] if sizes else weights[-1] // 3 if weights else 0
        return (*query[:2], width) if width else None
    values = facts.shape(node.input[2]) if len(node.input) > 2 and node.input[2] else query
    if values is None:
        return None
    width = values[-1] if len(values) == len(query) else values[1] * values[-1]
    return (*query[:2], width)


def _group_query_attention_types(node: onnx.NodeProto, facts: Facts) -> dict[str, onnx.TypeProto]:
    """Return the queries' shape, and keys and values so far: `[batch, heads, length, size]`."""
    query, key = (facts.shape(node.input[at]) for at in (0, 1))
    heads, shared = integer(node, "num_heads", 0), integer(node, "kv_num_heads", 0)
    if query is None or not heads or not shared:
        return {}
    batch, length, width = query
    # Without keys of their own, queries, keys and values stand side by side.
    size = width // heads if key else width // (heads + 2 * shared)
    past = facts.shape(node.input[3]) if len(node.input) > 3 else None
    present = (batch, shared, length + (past[2] if past else 0), size)
    element_type = facts.types[node.input[0]].tensor_type.elem_type
    shapes = ((batch, length, heads * size), present, present)
    pairs = zip(node.output, shapes, strict=False)
    return {name: tensor_type(element_type, shape) for name, shape in pairs if name}


def _lstm_types(node: onnx.NodeProto, facts: Facts) -> dict[str, onnx.TypeProto]:
    """Return all hidden states `[steps, directions, batch, size]`, the last ones, and the cells."""
    read = facts.shape(node.input[0])
    size = integer(node, "hidden_size", 0)
    if read is None or len(read) != 3 or size < 1:
        return {}
    direction = next((a.s for a in node.attribute if a.name == "direction"), b"forward")
    last = (2 if direction == b"bidirectional" else 1, read[1], size)
    element_type = facts.types[node.input[0]].tensor_type.elem_type
    pairs = zip(node.output, ((read[0], *last), last, last), strict=False)
    return {name: tensor_type(element_type, shape) for name, shape in pairs if name}
