"""Views and permutations of a tensor's elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from parapipe.export.armcl.steps import Rule, Shape, Steps, integer, integers, require, text
from parapipe.plan.armcl_plan import MOST_DIMENSIONS
from parapipe.plan.schema import Operator


def view(operator: Operator, into: Steps) -> None:
    """Add the same elements in another shape."""
    source, output = operator.inputs[0], operator.outputs[0]
    shape = into.shape(output)
    require(prod(shape) == prod(into.shape(source)), "it repeats elements")
    into.reshape(source, shape, output=output)


def transpose(operator: Operator, into: Steps) -> None:
    """Add a permutation of axes."""
    source, output = operator.inputs[0], operator.outputs[0]
    shape = into.shape(source)
    perm = integers(operator, "perm", range(len(shape))[::-1])
    permute(into, source, shape, perm, written=into.shape(output), output=output)


def permute(
    into: Steps, source: str, shape: Shape, perm: Sequence[int], *, written: Shape, output: str
) -> None:
    """Permute axes in as few transpositions of at most four dimensions as its steps allow.

    Axes that stay next to each other move as one, those of extent 1 need not move. Where more than
    four are left, they are put in place one after the other.

    Parameters
    ----------
    written
        Shape that the result shall have.
    output
        Its name.
    """
    extents, order = _joined(shape, perm)
    if len(shape) <= MOST_DIMENSIONS and len(order) > 1:
        extents, order = tuple(shape), tuple(perm)
    made = source
    while len(extents) > MOST_DIMENSIONS:
        # Bring the axis that should stand first where the order differs there, past those before.
        first = next(at for at, axis in enumerate(order) if at != axis)
        axis = order[first]
        blocks = (
            prod(extents[:first]),
            prod(extents[first:axis]),
            extents[axis],
            prod(extents[axis + 1 :]),
        )
        made = _transposed(into, made, blocks, (0, 2, 1, 3))
        moved = [*range(first), axis, *range(first, axis), *range(axis + 1, len(extents))]
        place = {axis: at for at, axis in enumerate(moved)}
        extents, order = _joined([extents[axis] for axis in moved], [place[a] for a in order])
    if len(order) <= 1:
        into.reshape(made, written, output=output)
        return
    _transposed(into, made, extents, order, output)


def _transposed(
    into: Steps, source: str, extents: Shape, perm: Shape, output: str | None = None
) -> str:
    read = into.reshape(source, extents)
    shape = tuple(extents[axis] for axis in perm)
    return into.add("Transpose", (read,), shape, output=output, perm=perm)


def _joined(shape: Sequence[int], perm: Sequence[int]) -> tuple[Shape, Shape]:
    """Drop axes of extent 1 and join those that stay next to each other."""
    kept = [axis for axis in perm if shape[axis] != 1]
    rank = {axis: at for at, axis in enumerate(sorted(kept))}
    extent = [shape[axis] for axis in sorted(kept)]
    runs: list[list[int]] = []
    for axis in (rank[axis] for axis in kept):
        if runs and runs[-1][-1] + 1 == axis:
            runs[-1].append(axis)
        else:
            runs.append([axis])
    starts = sorted(run[0] for run in runs)
    lengths = {run[0]: prod(extent[axis] for axis in run) for run in runs}
    return (
        tuple(lengths[start] for start in starts),
        tuple(starts.index(run[0]) for run in runs),
    )


def space_to_depth(operator: Operator, into: Steps) -> None:
    """Make channels of the blocks of an image."""
    source, output = operator.inputs[0], operator.outputs[0]
    batch, channels, height, width = into.shape(source)
    block = integer(operator, "blocksize", 1)
    blocks = (batch, channels, height // block, block, width // block, block)
    permute(into, source, blocks, (0, 3, 5, 1, 2, 4), written=into.shape(output), output=output)


def depth_to_space(operator: Operator, into: Steps) -> None:
    """Make blocks of an image of channels."""
    source, output = operator.inputs[0], operator.outputs[0]
    batch, channels, height, width = into.shape(source)
    block = integer(operator, "blocksize", 1)
    depth = channels // block**2
    if text(operator, "mode", "DCR") == "DCR":
        blocks, perm = (batch, block, block, depth, height, width), (0, 3, 4, 1, 5, 2)
    else:
        blocks, perm = (batch, depth, block, block, height, width), (0, 1, 4, 2, 5, 3)
    permute(into, source, blocks, perm, written=into.shape(output), output=output)


_VIEWS = ("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Dropout", "Expand")

RULES: Mapping[str, Rule] = {
    **{
        kind: Rule(
            view,
            "Reshape; nothing where another operator takes the tensor as it is",
            "to as many elements as it has" if kind == "Expand" else "",
            dimensions=True,
        )
        for kind in _VIEWS
    },
    "Transpose": Rule(
        transpose,
        "Transpose, several of more than 4 dimensions; Reshape around it",
        dimensions=True,
    ),
    "SpaceToDepth": Rule(space_to_depth, "Reshape, Transpose, Reshape"),
    "DepthToSpace": Rule(depth_to_space, "Reshape, Transpose, Reshape"),
}
