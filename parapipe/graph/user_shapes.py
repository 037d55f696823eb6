"""Shapes that the user gives, of inputs and results, perhaps with a data type."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias, TypedDict

import onnx

from parapipe.errors import ModelError
from parapipe.files.mistakes import listed_sentences, nearest
from parapipe.graph.data_types import dtype_names, element_type

Shape: TypeAlias = tuple[int, ...]
Shapes: TypeAlias = Mapping[str, Shape | tuple[str, Shape]]


class SizeKeywords(TypedDict, total=False):
    """What the user says of a model's sizes, as `resolve_proto` takes it."""

    dims: Mapping[str, int] | None
    shapes: Shapes | None
    at_most: int | None


@dataclass(frozen=True, slots=True)
class UserShape:
    """What the user says of a tensor.

    Parameters
    ----------
    element_type
        As ONNX numbers them; UNDEFINED if only the shape is given.
    """

    shape: Shape
    element_type: int = onnx.TensorProto.UNDEFINED


def read_user_shapes(model_name: str, shapes: Shapes) -> dict[str, UserShape]:
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
    user_shapes: dict[str, UserShape] = {}
    mistakes = []
    for name, spec in shapes.items():
        dtype, shape = _split_spec(spec)
        number = onnx.TensorProto.UNDEFINED if dtype is None else element_type(dtype)
        if number is None:
            close = nearest(dtype or "", dtype_names())
            choice = f"did you mean '{close}'?" if close else f"only {', '.join(dtype_names())}"
            mistakes.append(f"{name}={dtype}: there is no data type '{dtype}', {choice}")
        else:
            user_shapes[name] = UserShape(shape, number)
    if mistakes:
        raise ModelError(
            f"the shapes given for '{model_name}' are wrong: {listed_sentences(mistakes)}"
        )
    return user_shapes


def _split_spec(spec: Shape | tuple[str, Shape]) -> tuple[str | None, Shape]:
    if spec and isinstance(spec[0], str):
        dtype, shape = spec
        return dtype, tuple(shape)
    return None, tuple(spec)


def shape_text(spec: Shape | tuple[str, Shape]) -> str:
    """Return what is given of a tensor as `--shape` takes it: float32:1x64."""
    dtype, shape = _split_spec(spec)
    return ("" if dtype is None else f"{dtype}:") + "x".join(map(str, shape))
