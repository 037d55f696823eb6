"""Matrix products: rows are those of the left operand, columns those of the right one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from parapipe.graph.parts.part import (
    Cut,
    Part,
    Range,
    Ranges,
    Rule,
    Single,
    WholeError,
    along,
    broadcast,
)

_MATRIX = 2  # axes of a matrix


def gemm(right: int = 1, bias: int = 2, columns: tuple[int, ...] = ()) -> Rule:
    """Return the rule of Gemm.

    Parameters
    ----------
    right, bias
        Positions of the right operand and of what is added.
    columns
        Positions of inputs that may have one element per column.
    """

    def rule(single: Single, axis: int) -> Cut:
        side, swapped = (0, "transA") if axis == 0 else (right, "transB")
        inner = axis ^ 1 if single.integer(swapped, 0) else axis

        def part(begin: int, end: int) -> Part:
            asked = Range(axis, begin, end)
            ranges: dict[int, Ranges] = {side: (Range(inner, begin, end),)}
            if single.has(bias):
                ranges[bias] = broadcast(single.shape(bias), single.rank, asked)
            for at in columns if axis else ():
                ranges[at] = broadcast(single.shape(at), 1, Range(0, begin, end))
            return Part(single.reads(ranges))

        return Cut(part)

    return rule


@dataclass(frozen=True, slots=True)
class _Product:
    """Where MatMul, or a form of it for integers, has its operands.

    Parameters
    ----------
    left, right
        Positions of the operands.
    rows, columns
        Positions of inputs that may have one element per row, or per column.
    """

    left: int = 0
    right: int = 1
    rows: tuple[int, ...] = ()
    columns: tuple[int, ...] = ()

    def __call__(self, single: Single, axis: int) -> Cut:
        matrices = [len(single.shape(at)) > 1 for at in (self.left, self.right)]
        batch = single.rank - sum(matrices)
        if axis < batch:
            return self._batch(single, axis - batch)
        row = axis == batch and matrices[0]
        return self._side(
            single, self.left if row else self.right, self.rows if row else self.columns
        )

    def _batch(self, single: Single, from_end: int) -> Cut:
        moved = []
        for at in (self.left, self.right):
            shape = single.shape(at)
            own = from_end + len(shape) - _MATRIX
            if own >= 0 and shape[own] != 1:
                moved.append((at, own))
        if any(len(single.shape(at)) > 1 for at in (*self.rows, *self.columns)):
            raise WholeError("its scales or zero points have several axes")
        return along(*moved)

    def _side(self, single: Single, at: int, beside: tuple[int, ...]) -> Cut:
        rank = len(single.shape(at))
        if any(len(single.shape(each)) > 1 for each in beside):
            raise WholeError("its scales or zero points have several axes")
        per_element = [(each, 0) for each in beside if single.shape(each) not in ((), (1,))]
        return along((at, rank - (_MATRIX if at == self.left else 1)), *per_element)


def _einsum(single: Single, axis: int) -> Cut:
    left, arrow, result = single.text("equation").replace(" ", "").partition("->")
    if not arrow or "." in left:
        raise WholeError("its equation does not name all axes of its result")
    letter = result[axis]
    terms = left.split(",")
    if any(term.count(letter) > 1 for term in terms):
        raise WholeError("its equation takes a diagonal along it")

    def part(begin: int, end: int) -> Part:
        return Part(
            tuple(
                (Range(term.index(letter), begin, end),) if letter in term else () for term in terms
            )
        )

    return Cut(part)


RULES: Mapping[str, Rule] = {
    "Gemm": gemm(),
    "MatMul": _Product(),
    "MatMulInteger": _Product(rows=(2,), columns=(3,)),
    "QLinearMatMul": _Product(0, 3, rows=(1, 2), columns=(4, 5)),
    "Einsum": _einsum,
}
MICROSOFT: Mapping[str, Rule] = {
    "FusedGemm": gemm(),
    "QGemm": gemm(right=3, bias=6, columns=(4, 5)),
}
