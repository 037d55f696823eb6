"""Sizes of inputs that a model leaves open, and that its weights and attributes leave no choice of.

The columns of an input of a product are the rows of its weights. A cache of attention has as many
heads as the operator says, and heads as wide as its projections make them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import onnx
from onnx import helper

SAME_WIDTH = frozenset((
    "Identity", "Cast", "Dropout", "Relu", "Tanh", "Sigmoid", "Gelu", "FastGelu", "Softmax",
    "LayerNormalization", "SimplifiedLayerNormalization", "RMSNormalization", "RotaryEmbedding",
    "SkipLayerNormalization", "SkipSimplifiedLayerNormalization", "BiasGelu",
))  # fmt: skip
"""Operators whose first result has as many columns as their first input."""
NORMS = {
    "LayerNormalization": 1, "SimplifiedLayerNormalization": 1, "RMSNormalization": 1,
    "SkipLayerNormalization": 2, "SkipSimplifiedLayerNormalization": 2,
}  # fmt: skip
"""Place of the scales, as many as columns, among the inputs of operators that normalise rows."""
LONGEST_WAY = 8  # operators back to the weights that make a tensor
CACHES: Mapping[tuple[str, str], tuple[Sequence[int], int, int]] = {
    ("com.microsoft", "GroupQueryAttention"): ((3, 4), 1, 3),
    ("com.microsoft", "MultiHeadAttention"): ((6, 7), 1, 3),
    ("com.microsoft", "DecoderMaskedMultiHeadAttention"): ((5, 6), 1, 3),
    ("com.microsoft", "Attention"): ((4,), 2, 4),
    ("", "Attention"): ((4, 5), 1, 3),
}
"""Places of the caches among the inputs of operators of attention, and their axes of heads and of
what a head holds."""


def required_sizes(
    model: onnx.ModelProto, shapes: Mapping[str, Sequence[int | str] | None]
) -> dict[tuple[str, int], tuple[int, str]]:
    """Return sizes of open dimensions that operators require, with the operator that does.

    Parameters
    ----------
    shapes
        Of the graph inputs: sizes, or names of dimensions; None of an unknown rank.

    Returns
    -------
    By input and axis. If operators require different sizes, there is none.
    """
    network = _Network(model.graph)
    found: dict[tuple[str, int], dict[int, str]] = {}
    for node in model.graph.node:
        for name, axis, size in network.required(node):
            shape = shapes.get(name)
            place = axis + len(shape) if shape is not None and axis < 0 else axis
            if shape is not None and 0 <= place < len(shape) and isinstance(shape[place], str):
                found.setdefault((name, place), {})[size] = node.name or node.op_type
    return {at: next(iter(sizes.items())) for at, sizes in found.items() if len(sizes) == 1}


class _Network:
    """Nodes, and the shapes of weights."""

    def __init__(self, graph: onnx.GraphProto) -> None:
        self.weights = {each.name: tuple(each.dims) for each in graph.initializer}
        self.maker = {name: node for node in graph.node for name in node.output if name}

    def required(self, node: onnx.NodeProto) -> Iterator[tuple[str, int, int]]:
        """Yield tensors that a node reads, and an axis of each with the size that it must have."""
        reads, attributes = [*node.input], _attributes(node)
        if not reads:
            return
        if (rows := self._rows(node, attributes)) is not None:
            yield reads[0], -1, rows
        if node.op_type == "Conv" and (kernel := self._weight(reads, 1)):
            yield reads[0], 1, kernel[1] * attributes.get("group", 1)
        if node.op_type in NORMS and (scale := self._weight(reads, NORMS[node.op_type])):
            yield reads[0], -1, scale[-1]
        if cache := CACHES.get((node.domain, node.op_type)):
            yield from self._of_caches(node, attributes, cache)

    def _rows(self, node: onnx.NodeProto, attributes: Mapping[str, Any]) -> int | None:
        """Return the columns that a product needs of its first input."""
        weights = self._weight(node.input, 1)
        match node.op_type:
            case "MatMul" if weights and len(weights) > 1:
                return weights[-2]
            case "Gemm" if weights and not attributes.get("transA"):
                return weights[1 if attributes.get("transB") else 0]
            case "MatMulNBits" if "K" in attributes:
                return int(attributes["K"])
            case "LSTM" | "GRU" | "RNN" if weights:
                return weights[2]
        return None

    def _of_caches(
        self,
        node: onnx.NodeProto,
        attributes: Mapping[str, Any],
        cache: tuple[Sequence[int], int, int],
    ) -> Iterator[tuple[str, int, int]]:
        places, heads_axis, width_axis = cache
        query_heads = attributes.get("num_heads", attributes.get("q_num_heads"))
        heads = attributes.get("kv_num_heads", query_heads)
        if not heads or not query_heads:
            return
        width = self._head_width(node, query_heads, heads)
        for name in (node.input[place] for place in places if place < len(node.input)):
            if name:
                yield name, heads_axis, heads
                if width is not None:
                    yield name, width_axis, width

    def _head_width(self, node: onnx.NodeProto, query_heads: int, heads: int) -> int | None:
        """Return what each head holds: of the columns that a projection makes, its share."""
        if node.op_type == "Attention" and node.domain == "com.microsoft":
            weights, shares = self._weight(node.input, 1), 3 * query_heads  # query, key and value
            columns = weights[-1] if weights else None
        else:
            packed = node.op_type == "GroupQueryAttention" and not node.input[1]
            columns = self._columns(node.input[0], LONGEST_WAY)
            shares = query_heads + 2 * heads if packed else query_heads
        return columns // shares if columns and columns % shares == 0 else None

    def _columns(self, name: str, left: int) -> int | None:
        """Return the columns of a tensor that weights make, if they are no more than so far."""
        node = self.maker.get(name)
        if node is None or not left:
            return None
        attributes, weights = _attributes(node), self._weight(node.input, 1)
        match node.op_type:
            case "MatMul" if weights:
                return weights[-1]
            case "Gemm" if weights:
                return weights[0 if attributes.get("transB") else 1]
            case "MatMulNBits" if "N" in attributes:
                return int(attributes["N"])
            case "Add" | "Mul" | "BiasAdd":
                ways = (self._columns(each, left - 1) for each in node.input)
                return next(filter(None, ways), None)
        return self._columns(node.input[0], left - 1) if node.op_type in SAME_WIDTH else None

    def _weight(self, reads: Sequence[str], place: int) -> tuple[int, ...] | None:
        return self.weights.get(reads[place]) if place < len(reads) else None


def _attributes(node: onnx.NodeProto) -> dict[str, Any]:
    """Return the whole numbers among a node's attributes."""
    return {
        each.name: helper.get_attribute_value(each)
        for each in node.attribute
        if each.type == onnx.AttributeProto.INT
    }
