"""Multiply-accumulates of convolutions and matrix products, by operator type.

Formulas count one multiply-accumulate per weight (or per pair of elements) and output element,
padding included, as is usual; biases, activations and scalings count nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from math import prod

from parapipe.graph.operator_graph import AttributeValue, Constant, Tensor

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Operands:
    """An operator's attributes and what it reads and writes, by position; None where omitted."""

    attributes: Mapping[str, AttributeValue]
    inputs: tuple[Tensor | Constant | None, ...]
    outputs: tuple[Tensor, ...]

    def shape(self, position: int) -> Shape:
        """Return the shape of an input; empty where it is omitted or a scalar."""
        found = self.inputs[position] if position < len(self.inputs) else None
        return found.shape if found else ()

    def output(self, position: int = 0) -> Shape:
        """Return the shape of an output; empty where it is omitted or a scalar."""
        return self.outputs[position].shape if position < len(self.outputs) else ()

    def integer(self, name: str, default: int) -> int:
        """Return an integer attribute."""
        value = self.attributes.get(name, default)
        return value if isinstance(value, int) else default

    def text(self, name: str) -> str:
        """Return a string attribute, empty if it is missing."""
        value = self.attributes.get(name, "")
        return value if isinstance(value, str) else ""


# None: of a type that is known, but in a form whose MACs are not.
Macs = Callable[[Operands], int | None]


def convolution(weights: int) -> Macs:
    """MACs of a convolution whose weights, `[out, in/group, *kernel]`, are input `weights`."""
    return lambda operands: prod(operands.output()) * prod(operands.shape(weights)[1:])


def matrix_product(right: int, *, transposed: str = "") -> Macs:
    """MACs of A (input 0) times B (input `right`); the inner length is read from B.

    `transposed` names the attribute that says whether B's last two axes are swapped.
    """

    def macs(operands: Operands) -> int:
        b = operands.shape(right)
        swapped = bool(transposed) and operands.integer(transposed, 0) != 0
        inner = b[-1] if len(b) == 1 or swapped else b[-2]
        return prod(operands.output()) * inner

    return macs


def _recurrent(operands: Operands) -> int:
    # X is [steps, batch, input] in either layout; W and R hold every gate of every direction.
    steps_and_batch = prod(operands.shape(0)[:2])
    return steps_and_batch * (prod(operands.shape(1)) + prod(operands.shape(2)))


def _einsum(operands: Operands) -> int | None:
    equation = operands.text("equation").replace(" ", "")
    left, arrow, result = equation.partition("->")
    terms = left.split(",")
    if "." in equation or not arrow or len(terms) > 2:
        return None
    length = {
        axis: size
        for position, term in enumerate(terms)
        for axis, size in zip(term, operands.shape(position), strict=False)
    }
    if len(terms) == 1 or set(length) == set(result):
        return 0
    return prod(length.values())


def _attention(operands: Operands) -> int | None:
    """ONNX Attention: Q, K, V as `[batch, heads, length, size]` or `[batch, length, all heads]`."""
    q, k, v = (operands.shape(position) for position in range(3))
    past = operands.shape(4)[-2] if len(operands.shape(4)) == 4 else 0
    if len(q) == 3:
        return q[0] * q[1] * (k[1] + past) * (q[2] + q[2] // k[2] * v[2])
    return prod(q[:3]) * (k[-2] + past) * (q[3] + v[3])


def _packed_attention(weights: int, past: int) -> Macs:
    """com.microsoft Attention: one product makes Q, K and V from `[batch, length, size]`."""

    def macs(operands: Operands) -> int:
        batch, length = operands.shape(0)[:2]
        product = batch * length * prod(operands.shape(weights))
        before = operands.shape(past)
        total = length + (before[3] if len(before) == 5 else 0)
        width = operands.output()[-1]
        query = operands.shape(weights)[-1] - width
        return product + batch * length * total * (query // 2 + width)

    return macs


def _multi_head_attention(operands: Operands) -> int | None:
    q, k, v = (operands.shape(position) for position in range(3))
    past = operands.shape(6)[2] if len(operands.shape(6)) == 4 else 0
    if len(q) == 3 and len(k) == 3 and len(v) == 3:
        return q[0] * q[1] * (k[1] + past) * (q[2] + v[2])
    return None


def _group_query_attention(operands: Operands) -> int | None:
    present = operands.output(1)
    if len(present) != 4 or len(operands.shape(0)) != 3:
        return None
    batch, length = operands.shape(0)[:2]
    return 2 * batch * length * present[2] * operands.integer("num_heads", 0) * present[3]


# Operators of com.microsoft that are a standard one, which reads the inputs at these positions.
LIKE_STANDARD: Mapping[str, tuple[str, tuple[int, ...]]] = {
    "FusedConv": ("Conv", (0, 1)),
    "FusedGemm": ("Gemm", (0, 1)),
    "FusedMatMul": ("MatMul", (0, 1)),
    **dict.fromkeys(
        ("MatMulIntegerToFloat", "DynamicQuantizeMatMul", "FusedMatMulActivation", "GemmFastGelu"),
        ("MatMul", (0, 1)),
    ),
    "QGemm": ("Gemm", (0, 3)),
    "QLinearConv": ("Conv", (0, 3)),
    "QLinearWhere": ("Where", (0, 1, 4)),
    "QLinearAdd": ("Add", (0, 3)),
    "QLinearMul": ("Mul", (0, 3)),
    "QLinearAveragePool": ("AveragePool", (0,)),
    "QLinearGlobalAveragePool": ("GlobalAveragePool", (0,)),
}
_STANDARD: Mapping[str, Macs] = {
    **dict.fromkeys(("Conv", "ConvInteger", "DeformConv"), convolution(1)),
    "ConvTranspose": lambda operands: prod(operands.shape(0)) * prod(operands.shape(1)[1:]),
    "QLinearConv": convolution(3),
    "Gemm": matrix_product(1, transposed="transB"),
    "MatMul": matrix_product(1),
    "MatMulInteger": matrix_product(1),
    "QLinearMatMul": matrix_product(3),
    "Einsum": _einsum,
    **dict.fromkeys(("LSTM", "GRU", "RNN"), _recurrent),
    "Attention": _attention,
}
_PRODUCTS: Mapping[str, Callable[[int], Macs]] = {
    "Conv": convolution,
    **dict.fromkeys(("Gemm", "MatMul"), partial(matrix_product, transposed="transB")),
}
_MICROSOFT: Mapping[str, Macs] = {
    **{
        name: _PRODUCTS[standard](positions[1])
        for name, (standard, positions) in LIKE_STANDARD.items()
        if standard in _PRODUCTS
    },
    **dict.fromkeys(
        ("MatMulNBits", "MatMulBnb4"),
        lambda operands: prod(operands.output()) * operands.integer("K", 0),
    ),
    "Attention": _packed_attention(1, past=4),
    "QAttention": _packed_attention(1, past=8),
    "MultiHeadAttention": _multi_head_attention,
    "GroupQueryAttention": _group_query_attention,
    "DynamicQuantizeLSTM": _recurrent,
}
MACS: Mapping[str, Mapping[str, Macs]] = {"": _STANDARD, "com.microsoft": _MICROSOFT}
"""By domain and type."""
