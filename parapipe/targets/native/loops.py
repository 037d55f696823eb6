"""Operators that only back ends with loops of the runner's own have: those of attention, mainly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from parapipe.plan.schema import Operator
from parapipe.targets.native import layout
from parapipe.targets.native.functions import lower_own
from parapipe.targets.native.layout import permute
from parapipe.targets.native.library_plan import MOST_DIMENSIONS
from parapipe.targets.native.steps import (
    Rule,
    Steps,
    axis_of,
    integer,
    require,
    text,
)

_PAIR = 2
_FLOAT, _BOOL, _INTEGERS = 1, 9, (3, 5, 6, 7)  # ONNX's numbers of types


def gather(operator: Operator, into: Steps) -> None:
    """Add a pick along an axis, by indices that may be computed."""
    source, picked = operator.inputs[:2]
    shape = into.shape(source)
    axis = axis_of(operator, 0, len(shape))
    inputs = [into.weight(v) if into.is_constant(v) else v for v in (source, picked)]
    made = (*shape[:axis], *into.shape(picked), *shape[axis + 1 :])
    require(max(len(shape), len(made)) <= MOST_DIMENSIONS, "it has more than 4 dimensions")
    into.add("Gather", inputs, made, output=operator.outputs[0], axis=axis)


def cast(operator: Operator, into: Steps) -> None:
    """Add nothing: whole numbers and truth values are float32 already."""
    source, output = operator.inputs[0], operator.outputs[0]
    to = integer(operator, "to", _FLOAT)
    require(to in (_FLOAT, _BOOL, *_INTEGERS), "it makes a type that is not kept as float32")
    whole = into.dtype(source) != "float32"
    require(to == _FLOAT or (whole and to != _BOOL), "it rounds, or compares with 0")
    into.reshape(source, into.shape(output), output=output)


def expand(operator: Operator, into: Steps) -> None:
    """Add copies of a tensor next to each other, along each axis that grows."""
    source, output = operator.inputs[0], operator.outputs[0]
    require(not into.is_constant(source), "it repeats a constant")
    written = into.shape(output)
    shape = into.shape(source)
    current = [*(1,) * (len(written) - len(shape)), *shape]
    for axis, count in enumerate(written):
        if current[axis] != count:
            before, after = prod(current[:axis]), prod(current[axis + 1 :])
            block = into.reshape(source, (before, 1, after))
            source = into.add("Concat", (block,) * count, (before, count, after), axis=1)
            current[axis] = count
    into.reshape(source, written, output=output)


def where(operator: Operator, into: Steps) -> None:
    """Add a choice between two tensors, element by element."""
    shapes = [into.shape(name) for name in operator.inputs]
    require(max(map(len, shapes)) <= MOST_DIMENSIONS, "it has more than 4 dimensions")
    inputs = [into.weight(v) if into.is_constant(v) else v for v in operator.inputs]
    output = operator.outputs[0]
    into.add("Where", inputs, into.shape(output), output=output)


def einsum(operator: Operator, into: Steps) -> None:
    """Add sums of products of two tensors: a product of matrices for each common index."""
    equation = text(operator, "equation", "").replace(" ", "")
    left, arrow, made = equation.partition("->")
    terms = left.split(",")
    plain = all(len(set(term)) == len(term) and term.isalpha() for term in (*terms, made))
    require(bool(arrow) and len(terms) == _PAIR and plain, f"its equation is '{equation}'")
    shapes = [into.shape(name) for name in operator.inputs]
    extents = {
        index: extent
        for term, shape in zip(terms, shapes, strict=True)
        for index, extent in zip(term, shape, strict=True)
    }
    one, other = terms
    common = [index for index in made if index in one and index in other]
    rows = [index for index in made if index not in other]
    columns = [index for index in made if index not in one]
    summed = [index for index in one if index in other and index not in made]
    left_alone = set(one) | set(other) == {*common, *rows, *columns, *summed}
    require(left_alone, f"its equation is '{equation}', which sums over one tensor alone")

    def matrices(name: str, term: str, *groups: Sequence[str]) -> str:
        source = into.weight(name) if into.is_constant(name) else name
        order = [term.index(index) for group in groups for index in group]
        shape = tuple(prod(extents[index] for index in group) for group in groups)
        return permute(into, source, into.shape(name), order, written=shape, output=None)

    product = into.add(
        "MatMul",
        (
            matrices(operator.inputs[0], one, common, rows, summed),
            matrices(operator.inputs[1], other, common, summed, columns),
        ),
        tuple(prod(extents[index] for index in group) for group in (common, rows, columns)),
    )
    present = [*common, *rows, *columns]
    shape = tuple(extents[index] for index in present)
    order = [present.index(index) for index in made]
    output = operator.outputs[0]
    permute(into, product, shape, order, written=into.shape(output), output=output)


def grid_sample(operator: Operator, into: Steps) -> None:
    """Add bilinear samples of an image."""
    mode = text(operator, "mode", "linear").replace("bilinear", "linear")  # as it was called
    require(mode == "linear", f"its mode is '{mode}'")
    padding = text(operator, "padding_mode", "zeros")
    require(padding == "zeros", f"its padding is '{padding}'")
    output = operator.outputs[0]
    inputs = [into.weight(v) if into.is_constant(v) else v for v in operator.inputs]
    corners = integer(operator, "align_corners", 0)
    into.add("GridSample", inputs, into.shape(output), output=output, align_corners=corners)


def less(operator: Operator, into: Steps) -> None:
    """Add a comparison, whose truth values are 0 and 1."""
    inputs = [into.weight(v) if into.is_constant(v) else v for v in operator.inputs]
    output = operator.outputs[0]
    into.add("Less", inputs, into.shape(output), output=output)


RULES: dict[str, Rule] = {
    "Atan": Rule(lower_own, "Atan", dimensions=True),
    "Einsum": Rule(
        einsum,
        "Reshape, Transpose, MatMul",
        "of two tensors; no index twice in one; what is summed over is in both",
        dimensions=True,
    ),
    "GridSample": Rule(grid_sample, "GridSample", '`mode` "linear", `padding_mode` "zeros"'),
    "Less": Rule(less, "Less", integers=True),
    "Cast": Rule(cast, "Reshape", "to float32, or between whole numbers", integers=True),
    "Expand": Rule(expand, "Reshape, Concat", "no constant", dimensions=True, integers=True),
    "Erf": Rule(lower_own, "Erf", dimensions=True),
    "Gather": Rule(gather, "Gather", integers=True),
    "Where": Rule(where, "Where", integers=True),
    **{
        kind: replace(layout.RULES[kind], integers=True)
        for kind in ("Concat", "Reshape", "Slice", "Split", "Squeeze", "Unsqueeze")
    },
}
