"""Fields of a JSON document, each checked as it is taken: what is damaged is told by its name.

This file needs the standard library only, so that it can stand beside a runner on a device.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

LONGEST_SHOWN = 60


class DamagedError(Exception):
    """A field lacks, or is not what it should be."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What a field may be, in words and as a test."""

    words: str
    fits: Callable[[Any], bool]


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_list(value: object, fits: Callable[[Any], bool]) -> bool:
    return isinstance(value, list) and all(map(fits, value))


def _is_text(value: object) -> bool:
    return isinstance(value, str)


TEXT = Kind("a text", _is_text)
TEXT_OR_NULL = Kind("a text or null", lambda value: value is None or _is_text(value))
TEXTS = Kind("a list of texts", lambda value: _is_list(value, _is_text))
WHOLE = Kind("a whole number", _is_whole)
COUNT = Kind("a whole number of at least 1", lambda value: _is_whole(value) and value >= 1)
SIZES = Kind(
    "a list of whole numbers of at least 0",
    lambda value: _is_list(value, lambda size: _is_whole(size) and size >= 0),
)
SECONDS = Kind(
    "a number of seconds",
    lambda value: (_is_whole(value) or isinstance(value, float)) and 0 <= value < math.inf,
)
TABLE = Kind("a table", lambda value: isinstance(value, dict))
TABLES = Kind(
    "a list of tables", lambda value: _is_list(value, lambda each: isinstance(each, dict))
)


class Fields:
    """The fields of a table.

    Parameters
    ----------
    where
        The table's place in the document, as in `channels[0]`; empty for the document.
    """

    def __init__(self, table: Mapping[str, Any], where: str = "") -> None:
        self._table = table
        self._where = where

    def take(self, name: str, kind: Kind) -> Any:  # noqa: ANN401 - of that kind
        """Return a field.

        Raises
        ------
        DamagedError
            Names the field, and says what it is and what it should be.
        """
        place = f"{self._where}.{name}" if self._where else name
        if name not in self._table:
            raise DamagedError(f"'{place}' is missing")
        value = self._table[name]
        if not kind.fits(value):
            raise DamagedError(f"'{place}' is {_shown(value)}, not {kind.words}")
        return value

    def table(self, name: str) -> Fields:
        """Return the fields of a table within."""
        return Fields(self.take(name, TABLE), f"{self._where}.{name}" if self._where else name)

    def tables(self, name: str) -> tuple[Fields, ...]:
        """Return the fields of each table of a list."""
        rows = self.take(name, TABLES)
        return tuple(Fields(row, f"{name}[{index}]") for index, row in enumerate(rows))

    def names(self) -> tuple[str, ...]:
        """Return the names of all fields."""
        return tuple(self._table)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= LONGEST_SHOWN else text[:LONGEST_SHOWN] + "…"
