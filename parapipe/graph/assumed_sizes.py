"""Sizes that import assumes for dimensions that the file leaves open and the user does not give.

A batch is one frame. Another dimension is taken as 1 only where it is the one left open, no height,
width or length, and the whole model works out with it. The rest is asked for, by the model's own
names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from parapipe.files.listing import listed

Dims = Sequence[int | str]  # a size, the name of a dimension, or "?"
UNNAMED = "?"

_BATCH = re.compile(r"(^|[._-])(n|b|bs|batch|batch_?size|n_?batch|num_?batch)$", re.IGNORECASE)
_SIDE = re.compile(r"height|width|(^|_)[hw]($|_)|rows|cols", re.IGNORECASE)
_LENGTH = re.compile(r"length|seq|sample|frame|time|audio|token", re.IGNORECASE)
_PICTURE = 4  # axes of a batch of pictures
_EXAMPLE_PICTURE, _EXAMPLE = 640, 128


@dataclass(slots=True)
class Assumed:
    """Shapes of inputs with what is assumed of them.

    Parameters
    ----------
    shapes
        By name of input; None where not even the number of dimensions is known.
    sizes
        Of named dimensions.
    doubt
        What to ask for if the model does not work out with the one dimension left taken as 1.
    notes
        A sentence for each assumption.
    """

    shapes: dict[str, Dims | None]
    sizes: dict[str, int] = field(default_factory=dict)
    doubt: str = ""
    notes: list[str] = field(default_factory=list)

    @property
    def unknown(self) -> dict[str, Dims | None]:
        """The inputs of which something is still not known."""
        return {
            name: shape
            for name, shape in self.shapes.items()
            if shape is None or not all(isinstance(dim, int) for dim in shape)
        }

    def take_as_one(self, name: str, axis: int) -> None:
        """Give a dimension the size 1, wherever its name stands."""
        shape = self.shapes[name] or ()
        dim = shape[axis]
        if isinstance(dim, int):
            return
        if dim == UNNAMED:
            self.shapes[name] = [*shape[:axis], 1, *shape[axis + 1 :]]
            self.notes.append(
                f"dimension {axis + 1} of '{name}' is taken as 1; give another by "
                f"--shape {name}={_example(self.shapes[name])}"
            )
            return
        self.sizes[dim] = 1
        self.shapes = {
            each: known and [1 if size == dim else size for size in known]
            for each, known in self.shapes.items()
        }
        self.notes.append(f"dimension '{dim}' is taken as 1; give another by --dim {dim}=…")


def assumed(shapes: Mapping[str, Dims | None]) -> Assumed:
    """Take batches as 1, and then the one dimension that is left, if there is just one."""
    found = Assumed(dict(shapes))
    for name, shape in shapes.items():
        for axis, dim in enumerate(shape or ()):
            if isinstance(dim, str) and _is_batch(dim, axis, len(shape or ())):
                found.take_as_one(name, axis)
    left = {
        (dim, "" if dim != UNNAMED else f"{name} {axis}"): (name, axis, len(shape or ()))
        for name, shape in found.unknown.items()
        for axis, dim in enumerate(shape or ())
        if isinstance(dim, str)
    }
    if len(left) == 1 and None not in found.shapes.values():
        (((dim, _), (name, axis, rank)),) = left.items()
        if rank < _PICTURE and not (_SIDE.search(dim) or _LENGTH.search(dim)):
            found.doubt = request(found.unknown)
            found.take_as_one(name, axis)
    return found


def request(shapes: Mapping[str, Dims | None]) -> str:
    """Say which dimensions of which inputs are unknown, and how to give them, by their names."""
    told = [
        f"'{name}' [{' x '.join(map(str, shape)) if shape is not None else 'any rank'}]"
        for name, shape in shapes.items()
    ]
    options = [f"`shapes` {name}={_example(shape)}" for name, shape in shapes.items()]
    named = {
        dim: _likely(axis, len(shape or ()))
        for shape in shapes.values()
        for axis, dim in enumerate(shape or ())
        if isinstance(dim, str)
    }
    by_name = (
        ""
        if UNNAMED in named or None in shapes.values()
        else (f", or by {' '.join(f'`dims` {dim}={size}' for dim, size in named.items())}")
    )
    return (
        f"inputs with unknown dimensions: {listed(told)}; give their sizes, as in "
        f"{' '.join(options)}{by_name}"
    )


def _is_batch(dim: str, axis: int, rank: int) -> bool:
    return bool(_BATCH.search(dim)) or (axis == 0 and rank > 1 and not _SIDE.search(dim))


def _likely(axis: int, rank: int) -> int:
    if axis == 0:
        return 1
    return _EXAMPLE_PICTURE if rank == _PICTURE and axis > 1 else _EXAMPLE


def _example(shape: Dims | None) -> str:
    """Write a shape with sizes in place of what is unknown."""
    if shape is None:
        return "1x3x224x224"
    sizes = (
        dim if isinstance(dim, int) else _likely(axis, len(shape)) for axis, dim in enumerate(shape)
    )
    return "x".join(map(str, sizes))
