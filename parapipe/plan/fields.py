"""Kinds of fields of plans: names, shapes, tables by name, lists of one or more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, Field, NonNegativeInt, ValidationError, WrapValidator
from pydantic_core import PydanticCustomError

_Value = TypeVar("_Value")


def _sorted(values: Mapping[str, _Value]) -> Mapping[str, _Value]:
    """Order by name, so that equal plans have equal bytes."""
    return dict(sorted(values.items()))


def _filled(values: tuple[_Value, ...]) -> tuple[_Value, ...]:
    """Refuse an empty list; pydantic's own check also complains of lists of wrong entries."""
    if not values:
        raise PydanticCustomError("empty", "is empty, and at least one entry should be there")
    return values


def _one_complaint(value: Any, handler: Any) -> Any:  # noqa: ANN401 - what stands in a file
    """Say once what an attribute may be, not once for each kind of value."""
    try:
        # A list in a file arrives here as a list, which is not strictly a tuple.
        return handler(tuple(value) if isinstance(value, list) else value)
    except ValidationError as error:
        raise PydanticCustomError(
            "attribute",
            "should be an integer, a finite number, a text, or a list of one of these kinds",
        ) from error


Name = Annotated[str, Field(min_length=1)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Shape = tuple[NonNegativeInt, ...]
ByName = Annotated[Mapping[Name, _Value], AfterValidator(_sorted)]
OneOrMore = Annotated[
    tuple[_Value, ...], AfterValidator(_filled), Field(json_schema_extra={"minItems": 1})
]
Attribute = Annotated[
    int | float | str | tuple[int, ...] | tuple[float, ...] | tuple[str, ...],
    WrapValidator(_one_complaint),
]
