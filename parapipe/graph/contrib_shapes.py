"""Shapes of the com.microsoft operators that ONNX Runtime's optimiser and quantiser write.

ONNX has no schema for them. Source: ONNX Runtime's page "Contrib Operators".
"""

from __future__ import annotations

from collections.abc import Sequence

import onnx

from parapipe.graph.data_types import shape_of, tensor_type
from parapipe.graph.infer import Known, infer, integer
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
_OTHERWISE = ("transBatchA", "transBatchB", "channels_last")


def infer_contrib(node: onnx.NodeProto, known: Known) -> dict[str, onnx.TypeProto]:
    """Infer the types of the outputs of an operator of ONNX Runtime; empty if it is not known."""
    try:
        return _inferred(node, known)
    except (IndexError, KeyError, ZeroDivisionError):
        # An input that is left out or has another rank: there is no schema that would have told.
        return {}


def _inferred(node: onnx.NodeProto, known: Known) -> dict[str, onnx.TypeProto]:
    types = known.types
    # In the standard domain for what older opsets do not have, such as LayerNormalization.
    if node.domain not in ("com.microsoft", "") or not node.input or node.input[0] not in types:
        return {}
    if node.op_type in _LIKE_FIRST:
        return {name: types[node.input[0]] for name in node.output if name}
    if node.domain != "com.microsoft":
        return {}
    if node.op_type in LIKE_STANDARD:
        return _typed(node, known, _like_standard(node, known))
    shape = None
    if node.op_type == "QLinearConcat":
        shape = _concatenated(node, known)
    elif node.op_type in ("Attention", "MultiHeadAttention", "QAttention"):
        shape = _attended(node, known)
    elif node.op_type in ("MatMulNBits", "MatMulBnb4"):
        rows = known.shape(node.input[0])
        shape = (*rows[:-1], integer(node, "N", 0)) if rows else None
    elif node.op_type == "GroupQueryAttention":
        return _group_query_attention(node, known)
    elif node.op_type == "DynamicQuantizeLSTM":
        return _lstm(node, known)
    return _typed(node, known, shape)


def _typed(
    node: onnx.NodeProto, known: Known, shape: Sequence[int] | None
) -> dict[str, onnx.TypeProto]:
    """Type of the first output; of the others nothing is known."""
    position = _TYPED_BY.get(node.op_type, 0)
    given = node.input[position] if position < len(node.input) else ""
    if shape is None:
        return {}
    element_type = known.types[given].tensor_type.elem_type if given else onnx.TensorProto.FLOAT
    return {node.output[0]: tensor_type(element_type, shape)}


def _like_standard(node: onnx.NodeProto, known: Known) -> tuple[int, ...] | None:
    standard, positions = LIKE_STANDARD[node.op_type]
    if any(integer(node, name, 0) for name in _OTHERWISE):
        return None
    names = ["a", "b", "c"][: len(positions)]
    operands = dict(zip(names, (known.types[node.input[at]] for at in positions), strict=True))
    twin = onnx.helper.make_node(standard, names, ["y"])
    if standard == "MatMul":
        for name, flag in (("a", "transA"), ("b", "transB")):
            operands[name] = _swapped(operands[name]) if integer(node, flag, 0) else operands[name]
    else:
        kept = onnx.defs.get_schema(standard).attributes
        twin.attribute.extend(a for a in node.attribute if a.name in kept)
    inferred, _ = infer(twin, Known(known.opsets, operands))
    return shape_of(inferred.get("y"))


def _swapped(kind: onnx.TypeProto) -> onnx.TypeProto:
    shape = shape_of(kind)
    if shape is None or len(shape) == 1:
        return kind
    return tensor_type(kind.tensor_type.elem_type, (*shape[:-2], shape[-1], shape[-2]))


def _concatenated(node: onnx.NodeProto, known: Known) -> tuple[int, ...] | None:
    shapes = [known.shape(name) for name in node.input[2::3]]
    axis = next((a.i for a in node.attribute if a.name == "axis"), None)
    whole = [shape for shape in shapes if shape is not None]
    if axis is None or not whole or len(whole) < len(shapes):
        return None
    axis %= len(whole[0])
    length = sum(shape[axis] for shape in whole)
    return (*whole[0][:axis], length, *whole[0][axis + 1 :])


def _attended(node: onnx.NodeProto, known: Known) -> tuple[int, ...] | None:
    """`[batch, length, width of all values]`, from queries or from the packed product's input."""
    query = known.shape(node.input[0])
    if query is None or len(query) != 3:
        return None
    if node.op_type in ("Attention", "QAttention"):
        weights = known.shape(node.input[1])
        sizes = next((a.ints for a in node.attribute if a.name == "qkv_hidden_sizes"), None)
        width = sizes[2] if sizes else weights[-1] // 3 if weights else 0
        return (*query[:2], width) if width else None
    values = known.shape(node.input[2]) if len(node.input) > 2 and node.input[2] else query
    if values is None:
        return None
    width = values[-1] if len(values) == len(query) else values[1] * values[-1]
    return (*query[:2], width)


def _group_query_attention(node: onnx.NodeProto, known: Known) -> dict[str, onnx.TypeProto]:
    """Return the queries' shape, and keys and values so far: `[batch, heads, length, size]`."""
    query, key = (known.shape(node.input[at]) for at in (0, 1))
    heads, shared = integer(node, "num_heads", 0), integer(node, "kv_num_heads", 0)
    if query is None or not heads or not shared:
        return {}
    batch, length, width = query
    # Without keys of their own, queries, keys and values stand side by side.
    size = width // heads if key else width // (heads + 2 * shared)
    past = known.shape(node.input[3]) if len(node.input) > 3 else None
    present = (batch, shared, length + (past[2] if past else 0), size)
    element_type = known.types[node.input[0]].tensor_type.elem_type
    shapes = ((batch, length, heads * size), present, present)
    pairs = zip(node.output, shapes, strict=False)
    return {name: tensor_type(element_type, shape) for name, shape in pairs if name}


def _lstm(node: onnx.NodeProto, known: Known) -> dict[str, onnx.TypeProto]:
    """Return all hidden states `[steps, directions, batch, size]`, the last ones, and the cells."""
    read = known.shape(node.input[0])
    size = integer(node, "hidden_size", 0)
    if read is None or len(read) != 3 or size < 1:
        return {}
    direction = next((a.s for a in node.attribute if a.name == "direction"), b"forward")
    last = (2 if direction == b"bidirectional" else 1, read[1], size)
    element_type = known.types[node.input[0]].tensor_type.elem_type
    pairs = zip(node.output, ((read[0], *last), last, last), strict=False)
    return {name: tensor_type(element_type, shape) for name, shape in pairs if name}
