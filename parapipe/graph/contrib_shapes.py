"""Shapes of the com.microsoft operators that ONNX Runtime's optimiser and quantiser write.

ONNX has no schema for them. Source: ONNX Runtime's page "Contrib Operators".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import onnx

from parapipe.graph.data_types import shape_of, tensor_type
from parapipe.graph.infer import Facts, infer, integer
from parapipe.graph.operands import matrix_of
from parapipe.graph.work import LIKE_STANDARD

_Shape: TypeAlias = tuple[int, ...]
_Types: TypeAlias = dict[str, onnx.TypeProto]

# Each output is like the first input.
_LIKE_FIRST = frozenset(
    {
        *("Gelu", "FastGelu", "BiasGelu", "QuickGelu", "BiasSoftmax", "BiasAdd", "GroupNorm"),
        *("QLinearSigmoid", "QLinearLeakyRelu", "QLinearSoftmax", "RotaryEmbedding"),
        *("LayerNormalization", "SkipLayerNormalization", "MeanVarianceNormalization"),
        *("SimplifiedLayerNormalization", "SkipSimplifiedLayerNormalization"),
        *("MoE", "QMoE"),
    }
)
# The input whose element type the output has, where that is not the first.
_TYPED_BY = {
    "MatMulIntegerToFloat": 2, "QGemm": 8, "QLinearConcat": 1, "QLinearConv": 7, "QLinearWhere": 1,
    "QAttention": 3, "QuantizeLinear": 2, "DequantizeLinear": 1, "GatherBlockQuantized": 2,
}  # fmt: skip
_PER_BYTE = 8  # bits


def infer_contrib(node: onnx.NodeProto, facts: Facts) -> _Types:
    """Infer the types of the outputs of an operator of ONNX Runtime; empty if it is not known."""
    try:
        return _infer_outputs(node, facts)
    except (IndexError, KeyError, ZeroDivisionError):
        # An input that is left out or has another rank: there is no schema that would have told.
        return {}


def _infer_outputs(node: onnx.NodeProto, facts: Facts) -> _Types:
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
    if several := _SEVERAL_OUTPUTS.get(node.op_type):
        return several(node, facts)
    shape_of_output = _SHAPES.get(node.op_type)
    return _typed_output(node, facts, shape_of_output(node, facts) if shape_of_output else None)


def _typed_output(node: onnx.NodeProto, facts: Facts, shape: Sequence[int] | None) -> _Types:
    """Type of the first output; of the others nothing is known."""
    position = _TYPED_BY.get(node.op_type, 0)
    source = node.input[position] if position < len(node.input) else ""
    if shape is None:
        return {}
    unstated = onnx.TensorProto.FLOAT
    if node.op_type == "QuantizeLinear":
        unstated = onnx.TensorProto.UINT8
    element_type = facts.types[source].tensor_type.elem_type if source else unstated
    return {node.output[0]: tensor_type(element_type, shape)}


def _standard_shape(node: onnx.NodeProto, facts: Facts) -> _Shape | None:
    standard, positions = LIKE_STANDARD[node.op_type]
    if integer(node, "channels_last", 0):
        return None
    names = ["a", "b", "c"][: len(positions)]
    operands = dict(zip(names, (facts.types[node.input[at]] for at in positions), strict=True))
    twin = onnx.helper.make_node(standard, names, ["y"])
    if standard == "MatMul":
        for name, flag in (("a", "transA"), ("b", "transB")):
            batch = integer(node, flag.replace("trans", "transBatch"), 0) != 0
            last = integer(node, flag, 0) != 0
            operands[name] = _matrix_type(operands[name], batch=batch, last=last)
    else:
        allowed = onnx.defs.get_schema(standard).attributes
        twin.attribute.extend(a for a in node.attribute if a.name in allowed)
    inferred, _ = infer(twin, Facts(facts.opsets, operands))
    return shape_of(inferred.get("y"))


def _matrix_type(kind: onnx.TypeProto, *, batch: bool, last: bool) -> onnx.TypeProto:
    shape = shape_of(kind)
    if shape is None:
        return kind
    return tensor_type(kind.tensor_type.elem_type, matrix_of(shape, batch=batch, last=last))


def _concatenated_shape(node: onnx.NodeProto, facts: Facts) -> _Shape | None:
    shapes = [facts.shape(name) for name in node.input[2::3]]
    axis = next((a.i for a in node.attribute if a.name == "axis"), None)
    known_shapes = [shape for shape in shapes if shape is not None]
    if axis is None or not known_shapes or len(known_shapes) < len(shapes):
        return None
    axis %= len(known_shapes[0])
    length = sum(shape[axis] for shape in known_shapes)
    return (*known_shapes[0][:axis], length, *known_shapes[0][axis + 1 :])


def _same_shape(node: onnx.NodeProto, facts: Facts) -> _Shape | None:
    return facts.shape(node.input[0])


def _product_shape(node: onnx.NodeProto, facts: Facts) -> _Shape | None:
    rows = facts.shape(node.input[0])
    return (*rows[:-1], integer(node, "N", 0)) if rows else None


def _gathered_blocks_shape(node: onnx.NodeProto, facts: Facts) -> _Shape | None:
    """Return the shape of the rows, whose elements may stand in bytes along the last axis."""
    data, indices = facts.shape(node.input[0]), facts.shape(node.input[1])
    if not data or indices is None:
        return None
    axis = integer(node, "gather_axis", 0) % len(data)
    is_packed = facts.types[node.input[0]].tensor_type.elem_type == onnx.TensorProto.UINT8
    per_byte = _PER_BYTE // integer(node, "bits", 4) if is_packed else 1
    whole = (*data[:-1], data[-1] * per_byte)
    return (*whole[:axis], *indices, *whole[axis + 1 :])


def _attention_types(node: onnx.NodeProto, facts: Facts) -> _Types:
    """Return `[batch, tokens, width of all values]`, and `[2, batch, heads, tokens, size]`."""
    query, weights = facts.shape(node.input[0]), facts.shape(node.input[1])
    heads = integer(node, "num_heads", 0)
    if query is None or not weights:
        return {}
    batch, length, _ = query
    sizes = next((a.ints for a in node.attribute if a.name == "qkv_hidden_sizes"), None)
    width = sizes[2] if sizes else weights[-1] // 3
    types = _typed_output(node, facts, (batch, length, width))
    if len(node.output) > 1 and node.output[1]:
        past = _input_shape(node, facts, 8 if node.op_type == "QAttention" else 4)
        is_shared = integer(node, "past_present_share_buffer", 0) != 0
        before = past[3] if past else 0
        total = before if past and is_shared else before + length
        present = (2, batch, heads, total, width // heads)
        element_type = types[node.output[0]].tensor_type.elem_type
        types[node.output[1]] = tensor_type(element_type, present)
    return types


def _input_shape(node: onnx.NodeProto, facts: Facts, position: int) -> _Shape | None:
    """Return the shape of an input; None if it is left out or not known."""
    return facts.shape(node.input[position]) if position < len(node.input) else None


def _multi_head_attention_types(node: onnx.NodeProto, facts: Facts) -> _Types:
    """Return `[batch, tokens, width of all values]`, and keys and values by head.

    Those are all so far, or as many as fit into the cache that `past_sequence_length` is of.
    """
    query = facts.shape(node.input[0])
    if query is None:
        return {}
    batch, length, heads = *query[:2], integer(node, "num_heads", 0)
    width = query[2] if len(query) == _TOKENS else query[2] * query[4]
    sizes = [width // heads, width // heads]
    tokens = length
    for position in (1, 2):
        extents = _input_shape(node, facts, position)
        if extents is None:
            continue
        by_head = len(extents) == _BY_HEAD
        tokens = extents[2 if by_head else 1]
        if position == 1 and len(extents) == _TOKENS + 2:
            continue  # keys and values side by side, as wide as the query
        sizes[position - 1] = extents[3] if by_head else extents[2] // heads
    past = _input_shape(node, facts, 6)
    is_shared = _input_shape(node, facts, 8) is not None
    before = past[2] if past else 0
    total = before if past and is_shared else before + tokens
    shapes = (
        (batch, length, heads * sizes[1]),
        *((batch, heads, total, size) for size in sizes),
        (batch, heads, length, total),
    )
    return _types_of_outputs(node, facts, shapes)


_TOKENS, _BY_HEAD = 3, 4  # axes


def _types_of_outputs(
    node: onnx.NodeProto, facts: Facts, shapes: Sequence[_Shape], *, cache: int | None = None
) -> _Types:
    """Return types of outputs by position, of the first input's elements.

    Parameters
    ----------
    cache
        Position of the input whose elements all outputs but the first have, if it is there.
    """
    element_type = facts.types[node.input[0]].tensor_type.elem_type
    of_cache = element_type
    if cache is not None and _input_shape(node, facts, cache):
        of_cache = facts.types[node.input[cache]].tensor_type.elem_type
    return {
        name: tensor_type(of_cache if number else element_type, shape)
        for number, (name, shape) in enumerate(zip(node.output, shapes, strict=False))
        if name
    }


def _group_query_attention_types(node: onnx.NodeProto, facts: Facts) -> _Types:
    """Return the queries' shape, and keys and values so far: `[batch, heads, tokens, size]`.

    A cache that has room for all of them stays as long as it is.
    """
    query, key = (_input_shape(node, facts, at) for at in (0, 1))
    heads, shared = integer(node, "num_heads", 0), integer(node, "kv_num_heads", 0)
    if query is None or not heads or not shared:
        return {}
    batch, length, width = query
    # Without keys of their own, queries, keys and values stand side by side.
    size = width // heads if key else width // (heads + 2 * shared)
    past = _input_shape(node, facts, 3)
    if past and integer(node, "sliding_window_cache", 0):
        total = past[2]
    elif past:
        stated = facts.values.get(node.input[6]) if len(node.input) > _TOTAL else None
        total = past[2] + length if stated is None else max(past[2], int(stated.reshape(-1)[0]))
    else:
        total = length
    present = (batch, shared, total, past[3] if past else size)
    shapes = ((batch, length, heads * size), present, present)
    return _types_of_outputs(node, facts, shapes, cache=3)


_TOTAL = 6  # input of GroupQueryAttention


def _linear_attention_types(node: onnx.NodeProto, facts: Facts) -> _Types:
    """Return `[batch, tokens, width]`, and the state: `[batch, heads, size, size]`."""
    query, value = facts.shape(node.input[0]), facts.shape(node.input[2])
    heads, states = integer(node, "q_num_heads", 0), integer(node, "kv_num_heads", 0)
    if query is None or value is None:
        return {}
    batch, length, width = query
    state: _Shape = (batch, states, width // heads, value[2] // states)
    if kept := integer(node, "state_window", 0):
        state = (kept, *state)
    written = (batch, length, max(heads, states) * (value[2] // states))
    return _types_of_outputs(node, facts, (written, state), cache=3)


def _lstm_types(node: onnx.NodeProto, facts: Facts) -> _Types:
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


_SHAPES: Mapping[str, Callable[[onnx.NodeProto, Facts], _Shape | None]] = {
    "QLinearConcat": _concatenated_shape,
    **dict.fromkeys(("MatMulNBits", "MatMulBnb4"), _product_shape),
    **dict.fromkeys(("QuantizeLinear", "DequantizeLinear"), _same_shape),
    "GatherBlockQuantized": _gathered_blocks_shape,
}
_SEVERAL_OUTPUTS: Mapping[str, Callable[[onnx.NodeProto, Facts], _Types]] = {
    **dict.fromkeys(("Attention", "QAttention"), _attention_types),
    "MultiHeadAttention": _multi_head_attention_types,
    "GroupQueryAttention": _group_query_attention_types,
    "LinearAttention": _linear_attention_types,
    "DynamicQuantizeLSTM": _lstm_types,
}
