"""Shapes that the user gives to inputs and results, with a data type where nothing else says it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import onnx

from parapipe.errors import ModelError
from parapipe.files.mistake import nearest
from parapipe.graph.dtypes import dtype_names, element_type

Shape: TypeAlias = tuple[int, ...]
Shapes: TypeAlias = Mapping[str, Shape | tuple[str, Shape]]


@dataclass(frozen=True, slots=True)
class Given:
    """What the user says of a tensor.

    Parameters
    ----------
    element_type
        As ONNX numbers them; UNDEFINED if only the shape is given.
    """

    shape: Shape
    element_type: int = onnx.TensorProto.UNDEFINED


def given_shapes(model_name: str, shapes: Shapes) -> dict[str, Given]:
    """Return what is given by name of tensor.

    Parameters
    ----------
    shapes
        Shapes, or pairs of a data type's name and a shape, as in `("float32", (1, 64))`.

    Raises
    ------
    ModelError
        If there is no such data type; all such are named.
    """
    found: dict[str, Given] = {}
    mistakes = []
    for name, given in shapes.items():
        dtype, shape = _parts(given)
        number = onnx.TensorProto.UNDEFINED if dtype is None else element_type(dtype)
        if number is None:
            mistakes.append(f"{name}={dtype}: there is no data type '{dtype}'{_near(dtype or '')}")
        else:
            found[name] = Given(shape, number)
    if mistakes:
        raise ModelError(f"the shapes given for '{model_name}' are wrong: {'; '.join(mistakes)}")
    return found


def _parts(given: Shape | tuple[str, Shape]) -> tuple[str | None, Shape]:
    if given and isinstance(given[0], str):
        dtype, shape = given
        return dtype, tuple(shape)
    return None, tuple(given)


def shape_text(given: Shape | tuple[str, Shape]) -> str:
    """Return what is given of a tensor as `--shape` takes it: float32:1x64."""
    dtype, shape = _parts(given)
    return ("" if dtype is None else f"{dtype}:") + "x".join(map(str, shape))


def _near(dtype: str) -> str:
    close = nearest(dtype, dtype_names())
    return f", did you mean '{close}'?" if close else f", only {', '.join(dtype_names())}"
