"""Records that are read from JSON, every field checked.

This file needs the standard library only, so that it can stand beside a runner on a device.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

LONGEST_SHOWN = 60
_Record = TypeVar("_Record")


class DamagedError(Exception):
    """What was read is not what was written: names the field, and says what is wrong with it."""


@dataclass(frozen=True, eq=False)
class Kind:
    """What a value may be: in words, as a test, and in the words of JSON Schema."""

    words: str
    fits: Callable[[Any], bool]
    schema: Mapping[str, Any]

    def __get_pydantic_json_schema__(self, core: Any, handler: Any) -> Any:  # noqa: ANN401
        """Describe the value in a published schema."""
        return {**handler(core), **self.schema}


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return (_is_integer(value) or isinstance(value, float)) and 0 <= value < math.inf  # type: ignore[operator]


def _is_text(value: object) -> bool:
    return isinstance(value, str) and value != ""


def _is_file(value: object) -> bool:
    return _is_text(value) and not set("/\\\0") & set(str(value)) and value not in (".", "..")


TEXT = Kind("a text", _is_text, {"minLength": 1})
ANY_TEXT = Kind("a text", lambda value: isinstance(value, str), {})
FILE = Kind("the name of a file in the folder", _is_file, {"minLength": 1})
WHOLE = Kind(
    "a whole number of at least 0", lambda value: _is_integer(value) and value >= 0, {"minimum": 0}
)
COUNT = Kind(
    "a whole number of at least 1", lambda value: _is_integer(value) and value >= 1, {"minimum": 1}
)
DIGEST = Kind(
    "a SHA-256",
    lambda value: _is_text(value) and re.fullmatch("[0-9a-f]{64}", value) is not None,
    {"pattern": "^[0-9a-f]{64}$"},
)
SECONDS = Kind("a number of seconds", _is_number, {"minimum": 0})
HERTZ = Kind("a number of hertz", _is_number, {"minimum": 0})
_TABLE = Kind("a table", lambda value: isinstance(value, dict), {})
_LIST = Kind("a list", lambda value: isinstance(value, list), {})


def read(record: type[_Record], table: object, where: str = "") -> _Record:
    """Return a dataclass whose fields are read from a table of JSON; other names are passed over.

    Parameters
    ----------
    where
        The table's place in the document, as in `channels[0]`; empty for the document.

    Raises
    ------
    DamagedError
        If a field is missing or is not what its type says.
    """
    _check(_TABLE, table, where)
    assert isinstance(table, dict)
    assert is_dataclass(record)
    hints = get_type_hints(record, include_extras=True)
    values = {}
    for field in fields(record):
        place = f"{where}.{field.name}" if where else field.name
        if field.name in table:
            values[field.name] = _read_value(hints[field.name], table[field.name], place)
        elif field.default is MISSING and field.default_factory is MISSING:
            raise DamagedError(f"'{place}' is missing")
    return record(**values)


def _read_value(hint: Any, value: Any, where: str) -> Any:  # noqa: ANN401 - of that type
    origin, inner = get_origin(hint), get_args(hint)
    if is_dataclass(hint):
        return read(hint, value, where)  # type: ignore[arg-type]
    if origin is tuple:
        _check(_LIST, value, where)
        return tuple(_read_value(inner[0], each, f"{where}[{i}]") for i, each in enumerate(value))
    if origin is Mapping:
        _check(_TABLE, value, where)
        return {
            name: _read_value(inner[1], each, f"{where}.{name}") for name, each in value.items()
        }
    if origin is Literal:
        _check(Kind(f"one of {', '.join(inner)}", inner.__contains__, {}), value, where)
        return value
    if type(None) in inner:
        return None if value is None else _read_value(inner[0], value, where)
    for kind in getattr(hint, "__metadata__", ()):
        _check(kind, value, where)
    return value


def _check(kind: Kind, value: object, where: str) -> None:
    if not kind.fits(value):
        text = repr(value)
        shown = text if len(text) <= LONGEST_SHOWN else text[:LONGEST_SHOWN] + "…"
        raise DamagedError(f"'{where or 'the whole'}' is {shown}, not {kind.words}")
