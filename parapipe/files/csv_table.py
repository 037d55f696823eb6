"""Tables of measurements in CSV files: their columns are checked, and all mistakes told at once."""

from __future__ import annotations

import csv
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from math import isfinite
from pathlib import Path
from typing import Generic, TypeVar

from parapipe.errors import CostError
from parapipe.files.mistakes import listed_sentences, shorten_text
from parapipe.files.shipped import require_regular

Record = TypeVar("Record")
Mistake = tuple[int, str]
# The bounds are far from any hardware: what they catch is damaged, or in another unit.
_BOUNDS = {
    "_s": (1e-12, 1e6),
    "_ms": (1e-9, 1e9),
    "_hz": (1e6, 1e12),
    "_v": (1e-3, 1e3),
    "_w": (1e-9, 1e6),
    "_j": (1e-15, 1e9),
    "_mj": (1e-12, 1e12),
}
_ANY = (1e-12, 1e18)
_LONGEST_CELL = 60  # characters that are shown


@dataclass(frozen=True, slots=True)
class TableKind(Generic[Record]):
    """One kind of table.

    Parameters
    ----------
    noun
        What messages call a file of this kind.
    columns
        Those that must be there, in any order.
    optional
        Those that may be there.
    read
        Makes a record of a line; what it returns is dropped if the line has mistakes.
    key
        What no two records may share, for programs and for people.
    needed
        What a line holds, in a word, if a table without any is refused.
    """

    noun: str
    columns: tuple[str, ...]
    optional: tuple[str, ...]
    read: Callable[[Cells], Record]
    key: Callable[[Record], tuple[Hashable, str]] | None = None
    needed: str = ""


@dataclass(slots=True)
class Cells:
    """One line's cells, and the mistakes met while reading them."""

    line: int
    cells: dict[str, str]
    mistakes: list[str] = field(default_factory=list)

    def text(self, column: str, *, empty: bool = False) -> str:
        """Return the cell; the empty text if an optional column is missing."""
        word = self.cells.get(column, "")
        if not word and not empty:
            self.mistakes.append(f"{column} is empty")
        return word

    def one_of(self, column: str, choices: Sequence[str]) -> str:
        """Return the cell, one of the known words."""
        word = self.cells[column]
        if word not in choices:
            word = shorten_text(word, _LONGEST_CELL)
            self.mistakes.append(f"{column} is '{word}' but must be one of {', '.join(choices)}")
        return word

    def number(self, column: str, *, positive: bool = False, whole: bool = False) -> float:
        """Return the cell as a finite number, not negative, as may be measured.

        Zero may be where the number need not be positive.
        """
        try:
            value = float(self.cells[column])
        except ValueError:
            value = float("nan")
        if not (isfinite(value) and (value > 0 if positive else value >= 0)) or (
            whole and value % 1
        ):
            must = f"{'positive' if positive else 'non-negative'} {'whole' if whole else 'finite'}"
            return self._refuse(column, f"a {must} number")
        least, most = _bounds_of(column)
        if value and not least <= value <= most:
            return self._refuse(column, f"from {least:g} to {most:g}")
        return value

    def _refuse(self, column: str, must: str) -> float:
        cell = shorten_text(self.cells[column], _LONGEST_CELL)
        self.mistakes.append(f"{column} is '{cell}' but must be {must}")
        return 0

    def optional(self, column: str, *, positive: bool = False) -> float | None:
        """Return the number in the cell; None if it is empty or the column is missing."""
        return self.number(column, positive=positive) if self.cells.get(column) else None


@cache
def _bounds_of(column: str) -> tuple[float, float]:
    return next((b for unit, b in _BOUNDS.items() if column.endswith(unit)), _ANY)


def read_table(path: Path, kind: TableKind[Record]) -> tuple[Record, ...]:
    """Return the file's records.

    Raises
    ------
    CostError
        If the file cannot be read, or has mistakes: all of them, each with file and line.
    """
    try:
        require_regular(path)
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.reader(file, strict=True)
            header = next(reader, [])
            lines = [(reader.line_num, cells) for cells in reader if cells]
    except OSError as error:
        reason = error.strerror or str(error)
        raise CostError(f"{kind.noun} '{path}' cannot be read: {reason}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise CostError(f"{kind.noun} '{path}' is no CSV text in UTF-8: {error}") from error
    mistakes = list(_header_mistakes(header, kind))
    records: list[Record] = []
    if not mistakes:
        records, mistakes = _records_of(header, lines, kind)
    if mistakes:
        sentences = listed_sentences([f"{path}:{line}: {mistake}" for line, mistake in mistakes])
        raise CostError(f"{kind.noun} '{path}' must be corrected: {sentences}")
    if kind.needed and not records:
        raise CostError(
            f"{kind.noun} '{path}' holds no {kind.needed}; add a line for each measurement"
        )
    return tuple(records)


def _header_mistakes(header: list[str], kind: TableKind[Record]) -> Iterator[Mistake]:
    if not header:
        yield 1, f"is empty; the first line names the columns {', '.join(kind.columns)}"
        return
    for column in dict.fromkeys(header):
        if column not in (*kind.columns, *kind.optional):
            yield 1, f"unknown column '{shorten_text(column, _LONGEST_CELL)}'"
        if header.count(column) > 1:
            yield 1, f"column '{column}' is there {header.count(column)} times"
    for column in kind.columns:
        if column not in header:
            yield 1, f"column '{column}' is missing"


def _records_of(
    header: list[str], lines: list[tuple[int, list[str]]], kind: TableKind[Record]
) -> tuple[list[Record], list[Mistake]]:
    records: list[Record] = []
    mistakes: list[Mistake] = []
    first: dict[Hashable, int] = {}
    for line, cells in lines:
        if len(cells) != len(header):
            mistakes.append((line, f"has {len(cells)} cells for {len(header)} columns"))
            continue
        row = Cells(line, dict(zip(header, map(str.strip, cells), strict=True)))
        record = kind.read(row)
        mistakes += [(line, mistake) for mistake in row.mistakes]
        if row.mistakes:
            continue
        records.append(record)
        if kind.key:
            key, what = kind.key(record)
            if first.setdefault(key, line) != line:
                mistakes.append((line, f"{what} is already in line {first[key]}"))
    return records, mistakes
