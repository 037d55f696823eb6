"""Arguments are checked by pydantic against their types: one error names all that are wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from numbers import Integral, Real
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

from parapipe.errors import ArgumentError
from parapipe.files.mistakes import did_you_mean

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, TypeAdapter
    from pydantic_core import CoreSchema

LONGEST = 60  # characters of a value that are shown


@dataclass(frozen=True, slots=True)
class Must:
    """What a value must be, beside a type in `Annotated`.

    Parameters
    ----------
    be
        Words for the message.
    ge, gt, le, lt
        Bounds, as pydantic names them.
    filled
        Whether a text or a list must not be empty.
    infinite
        Whether a number may be infinite.
    lax
        Whether another type will do that pydantic converts, as a list for a tuple.
    """

    be: str
    ge: float | None = None
    gt: float | None = None
    le: float | None = None
    lt: float | None = None
    filled: bool = False
    infinite: bool = False
    lax: bool = False

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """Return the type's schema with these bounds."""
        schema: Any = handler(source)
        bounds = {"ge": self.ge, "gt": self.gt, "le": self.le, "lt": self.lt}
        schema |= {name: bound for name, bound in bounds.items() if bound is not None}
        if schema["type"] == "float":
            schema["allow_inf_nan"] = self.infinite  # with a bound, NaN never fits
        if self.lax:
            schema["strict"] = False
        from pydantic_core import core_schema

        if schema["type"] in ("int", "float"):
            return core_schema.no_info_before_validator_function(_plain, schema)
        if self.filled:
            return core_schema.no_info_after_validator_function(_filled, schema)
        return schema  # type: ignore[no-any-return]


NotEmpty = Annotated[str, Must("a text that is not empty", filled=True)]
Count = Annotated[int, Must("a whole number of at least 1", ge=1)]
FromZero = Annotated[int, Must("a whole number of at least 0", ge=0)]
Share = Annotated[float, Must("a number of at least 0 and less than 1", ge=0, lt=1)]
Seconds = Annotated[float, Must("a positive finite number of seconds", gt=0)]


def check_arguments(
    function: str, hints: Mapping[str, object], given: Mapping[str, object]
) -> None:
    """Raise an ArgumentError that names every argument that is not of its type, if it has one."""
    wrong = [
        f"{name} must be {words(hints[name])}, and is {_shown(value)}"
        f"{did_you_mean(value, _choices(hints[name])) if isinstance(value, str) else ''}"
        for name, value in given.items()
        if name in hints and not _fits(value, hints[name])
    ]
    if wrong:
        raise ArgumentError("; ".join(wrong), function)


def words(hint: object) -> str:
    """Say what a type asks for."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Annotated:
        told = [part.be for part in parts[1:] if isinstance(part, Must)]
        return told[-1] if told else words(parts[0])
    if origin is Literal:
        return " or ".join(f"'{part}'" for part in parts)
    if origin in (Union, UnionType):
        last = ", or None" if type(None) in parts else ""
        return " or ".join(words(part) for part in parts if part is not type(None)) + last
    if origin is Callable:
        return "a function"
    return "True or False" if hint is bool else f"of type {getattr(hint, '__name__', hint)}"


def is_repeatable(hint: object) -> bool:
    """Tell whether a type takes several values, in a list or by name."""
    if get_origin(hint) in (Annotated, Union, UnionType):
        return any(is_repeatable(part) for part in get_args(hint))
    return get_origin(hint) in (Sequence, Mapping)


def _choices(hint: object) -> list[str]:
    """Return the words that a type takes, if it lists them."""
    if get_origin(hint) is Literal:
        return [part for part in get_args(hint) if isinstance(part, str)]
    if get_origin(hint) in (Annotated, Union, UnionType):
        return [word for part in get_args(hint) for word in _choices(part)]
    return []


def _fits(value: object, hint: object) -> bool:
    from pydantic import ValidationError

    try:
        _adapter(hint).validate_python(value)
    except ValidationError:
        return False
    return True


@cache
def _adapter(hint: Any) -> TypeAdapter[Any]:  # noqa: ANN401 - any type
    from pydantic import ConfigDict, TypeAdapter

    return TypeAdapter(hint, config=ConfigDict(strict=True, arbitrary_types_allowed=True))


def _plain(value: object) -> object:
    """Return NumPy's numbers as Python's."""
    if isinstance(value, int | float) or not isinstance(value, Real):
        return value
    return int(value) if isinstance(value, Integral) else float(value)


def _filled(value: Any) -> Any:  # noqa: ANN401 - what pydantic has looked at
    if not value:
        raise ValueError
    return value


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
