"""Products with constant matrices, and what is folded into their constants."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from parapipe.graph.infer import Array
from parapipe.plan.schema import Operator
from parapipe.targets.native.library_plan import MOST_DIMENSIONS
from parapipe.targets.native.steps import Floats, Rule, Shape, Steps, integer, number, require

_EPSILON = 1e-5  # ONNX's default

Doubles = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Folded:
    """What is done to each channel after an operator: times a scale, plus a shift.

    Parameters
    ----------
    operators
        The operators that were folded, in order.
    channels
        How many channels the operator makes.
    """

    operators: tuple[Operator, ...]
    channels: int
    steps: Steps

    @property
    def is_nothing(self) -> bool:
        """Whether nothing was folded."""
        return not self.operators

    @property
    def recipe(self) -> Hashable:
        """What tells folded operators apart: the same for parts of one operator."""
        return tuple(
            (
                each.type,
                each.inputs[1:],
                *(c.name for c in each.constants),
                *each.attributes.items(),
            )
            for each in self.operators
        )

    def scaled(self, weights: Array, channels: slice, *, axis: int) -> Floats:
        """Return the weights of some channels, which lie along an axis, times their scales."""
        if self.is_nothing:
            return as_floats(weights)
        shape = tuple(-1 if at == axis else 1 for at in range(weights.ndim))
        scale, _ = self._scale_and_shift()
        return as_floats(as_floats(weights) * scale[channels].reshape(shape))

    def shifted(self, bias: Array | None, channels: slice) -> Floats:
        """Return the bias of some channels, times their scales, plus their shifts."""
        scale, shift = self._scale_and_shift()
        before = np.zeros(1, np.float32) if bias is None else as_floats(bias)
        return as_floats(before * scale[channels] + shift[channels])

    def _scale_and_shift(self) -> tuple[Doubles, Doubles]:
        scale, shift = np.ones(self.channels), np.zeros(self.channels)
        for operator in self.operators:
            factor, summand = self._scale_and_shift_of(operator)
            scale, shift = scale * factor, shift * factor + summand
        return scale, shift

    def _scale_and_shift_of(self, operator: Operator) -> tuple[Doubles, Doubles]:
        names = [constant.name for constant in operator.constants]
        if operator.type == "BatchNormalization":
            gamma, beta, mean, variance = (self._values(name) for name in operator.inputs[1:])
            factor = gamma / np.sqrt(variance + number(operator, "epsilon", _EPSILON))
            return factor, beta - mean * factor
        value = self._values(names[0])
        if operator.type == "Mul":
            return value, np.zeros(1)
        return np.ones(1), value

    def _values(self, name: str) -> Doubles:
        values: Doubles = self.steps.values(name).reshape(-1).astype(np.float64)
        return values


def bias_of(
    folded: Folded, name: str, label: str, rows: slice, count: int, *, factor: float = 1
) -> list[str]:
    """Return the name of the bias of some channels, times a factor; none if there is none.

    Parameters
    ----------
    name
        Constant of the plan that is the bias before; "" if there is none.
    label
        Name of the new constant.
    rows, count
        Which channels, and how many.
    """
    into, name = folded.steps, name if factor else ""
    if folded.is_nothing and not name:
        return []
    if folded.is_nothing and factor == 1 and into.shape(name) == (count,):
        return [into.weight(name)]

    def load() -> Floats:
        before = None
        if name:
            before = as_floats(into.values(name)).reshape(-1)[rows] * np.float32(factor)
        return np.broadcast_to(folded.shifted(before, rows), (count,))

    recipe = ("bias", name, rows.start, rows.stop, factor, folded.recipe)
    return [into.make(label, (count,), load, recipe=recipe)]


def as_floats(values: Array) -> Floats:
    """Return values as float32."""
    floats: Floats = values.astype(np.float32, copy=False)
    return floats


_MATRIX = 2
_ACTIVATIONS_BOTH = "it multiplies two activations, and the library wants one of them constant"


def gemm(operator: Operator, into: Steps) -> None:
    """Add a fully connected layer: weights [out, in], alpha and beta in the constants."""
    source, weights = operator.inputs[:2]
    bias = operator.inputs[2] if len(operator.inputs) > _MATRIX else ""
    require(into.is_constant(weights), _ACTIVATIONS_BOTH)
    require(not bias or into.is_constant(bias), "its third input is not constant")
    read = into.shape(source)
    if integer(operator, "transA", 0):
        source = into.add("Transpose", (source,), read[::-1], perm=(1, 0))
    columns = into.shape(operator.outputs[0])[1]
    shape = into.shape(bias) if bias else ()
    per_column = prod(shape[:-1]) == 1 and shape[-1:] in ((), (1,), (columns,))
    require(per_column, "its third input differs from row to row")
    folded, beta = Folded(operator.folded, columns, into), number(operator, "beta", 1.0)
    constants = [
        _weight_rows(operator, into, weights, folded),
        *bias_of(folded, bias, f"{operator.id}:bias", slice(None), columns, factor=beta),
    ]
    written = into.shape(operator.outputs[0])
    into.add("Gemm", (source, *constants), written, output=operator.outputs[0], transB=1)


def _weight_rows(operator: Operator, into: Steps, name: str, folded: Folded) -> str:
    shape = into.shape(name)
    transposed = bool(integer(operator, "transB", 0))
    alpha = number(operator, "alpha", 1.0)
    plain = alpha == 1 and folded.is_nothing
    if transposed and plain:
        return into.weight(name)

    def load(values: Array) -> Floats:
        rows = as_floats(values if transposed else values.T)
        return folded.scaled(rows * np.float32(alpha), slice(None), axis=0)

    made = shape if transposed else shape[::-1]
    if plain:
        return into.derived(name, "transposed", made, load)
    recipe = ("rows", transposed, alpha, folded.recipe)
    return into.derived(name, operator.id, made, load, recipe=recipe)


def matmul(operator: Operator, into: Steps) -> None:
    """Add a product with a constant matrix, on the right or on the left."""
    left, right = operator.inputs[:2]
    if into.complete and _as_it_stands(operator, into):
        return
    require(into.is_constant(left) or into.is_constant(right), _ACTIVATIONS_BOTH)
    source, matrix = (left, right) if into.is_constant(right) else (right, left)
    extents = into.shape(matrix)
    rank = len(extents)
    require(
        prod(extents[:-_MATRIX]) == 1 and rank > 0,
        "its constant holds several matrices, and the library multiplies with one",
    )
    if into.is_constant(right):
        _from_the_right(operator, into, source, right, extents)
    else:
        require(rank >= _MATRIX, "its constant is a vector on the left")
        _from_the_left(operator, into, source, left, extents)


def _as_it_stands(operator: Operator, into: Steps) -> bool:
    """Add a product of tensors of two to four dimensions; return whether it is one."""
    output = operator.outputs[0]
    shapes = [into.shape(name) for name in operator.inputs[:2]]
    fits = all(_MATRIX <= len(shape) <= MOST_DIMENSIONS for shape in shapes)
    constant = all(map(into.is_constant, operator.inputs[:2]))
    if constant or not fits or shapes[0][-1] != shapes[1][-2]:
        return False
    inputs = [into.weight(v) if into.is_constant(v) else v for v in operator.inputs[:2]]
    rows = np.broadcast_shapes(shapes[0][:-2], shapes[1][:-2])
    shape = (*rows, shapes[0][-2], shapes[1][-1])
    into.add("MatMul", inputs, shape, output=output)
    return True


def _from_the_right(
    operator: Operator, into: Steps, source: str, weights: str, extents: Shape
) -> None:
    output = operator.outputs[0]
    read, written = into.shape(source), into.shape(output)
    matrix = extents[-_MATRIX:] if len(extents) > 1 else (*extents, 1)
    if len(written) == _MATRIX and read[-1] != matrix[0]:  # a Flatten went into it
        name = _transposed(into, weights, matrix)
        into.add("Gemm", (source, name), written, output=output, transB=1)
        return
    name = (
        into.weight(weights)
        if matrix == extents
        else into.derived(weights, "matrix", matrix, lambda values: values.reshape(matrix))
    )
    product = (*read[:-1], matrix[1])
    require(len(read) <= MOST_DIMENSIONS, f"it has {len(read)} dimensions, and the library has 4")
    if len(read) == 1:
        source = into.reshape(source, (1, *read))
        product = (1, *product)
    into.add("MatMul", (source, name), product, output=output)


def _transposed(into: Steps, name: str, matrix: Shape) -> str:
    return into.derived(name, "transposed", matrix[::-1], lambda values: values.reshape(matrix).T)


def _from_the_left(
    operator: Operator, into: Steps, source: str, weights: str, extents: Shape
) -> None:
    """Add a product as (A·X)ᵀ = Xᵀ·Aᵀ."""
    output = operator.outputs[0]
    read, written = into.shape(source), into.shape(output)
    rank = len(read)
    require(
        _MATRIX <= rank <= MOST_DIMENSIONS and len(written) == rank,
        f"its constant stands on the left of a tensor of {rank} dimensions",
    )
    swap = (*range(rank - 2), rank - 1, rank - 2)
    name = _transposed(into, weights, extents[-_MATRIX:])
    turned = into.add("Transpose", (source,), _permute_shape(read, swap), perm=swap)
    product = into.add("MatMul", (turned, name), _permute_shape(written, swap))
    into.add("Transpose", (product,), written, output=output, perm=swap)


def _permute_shape(shape: Shape, perm: Shape) -> Shape:
    return tuple(shape[axis] for axis in perm)


RULES: Mapping[str, Rule] = {
    "Gemm": Rule(
        gemm,
        "Gemm with weights [out, in]; `transA`: Transpose before it",
        "constant weights; a constant third input, the same for all rows",
    ),
    "MatMul": Rule(
        matmul,
        "MatMul; a constant on the left: Transpose around it; after a Flatten: Gemm",
        "one constant operand, which is one matrix",
        dimensions=True,
    ),
}
