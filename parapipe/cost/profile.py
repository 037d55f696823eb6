"""Profiles: measured times of operators, by signature and processor, read from a CSV file."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from math import isfinite
from pathlib import Path
from typing import get_args

from parapipe.cost.signature import Signature
from parapipe.data_files import data_folder
from parapipe.errors import CostError
from parapipe.graph.work import OperatorClass

OPERATOR_CLASSES: tuple[str, ...] = get_args(OperatorClass)
_SIGNATURE_COLUMNS = tuple(f.name for f in fields(Signature))
COLUMNS = (
    *_SIGNATURE_COLUMNS,
    *("class", "macs", "size_bytes", "processor", "frequency_hz"),
    *("time_s", "rows", "spread", "method"),
)
"""Columns of a profile, all of them needed, in any order."""

METHODS = ("timed", "apportioned")
"""How a time was got: each operator by its own clock, or out of the time of several together."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """The time of one signature on one processor.

    Parameters
    ----------
    operator_class
        One of `OPERATOR_CLASSES`; operators of one class are fitted together.
    macs
        Multiply-accumulates of one run.
    size_bytes
        Bytes of activations and constants read once, and of the outputs written once.
    frequency_hz
        Clock of the processor while it was measured.
    time_s
        Median of the measured rows, positive.
    rows
        Number of rows (operators that have this signature, over all measured models).
    spread
        (longest − shortest row) / time_s.
    method
        One of `METHODS`.
    """

    signature: Signature
    operator_class: str
    macs: int
    size_bytes: int
    processor: str
    frequency_hz: float
    time_s: float
    rows: int
    spread: float
    method: str


@dataclass(frozen=True, slots=True)
class Profile:
    """Measurements of one platform through one backend.

    Parameters
    ----------
    name
        For people, such as `amlogic-a311d/armcl-f32`.
    measurements
        Each signature at most once per processor.
    """

    name: str
    measurements: tuple[Measurement, ...]
    _index: Mapping[tuple[Signature, str], Measurement] = field(
        init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        index = {(m.signature, m.processor): m for m in self.measurements}
        if len(index) != len(self.measurements):
            raise ValueError(f"profile '{self.name}' has a signature twice on one processor")
        object.__setattr__(self, "_index", index)

    @property
    def processors(self) -> tuple[str, ...]:
        """Names of the processors with at least one measurement, in order of appearance."""
        return tuple(dict.fromkeys(m.processor for m in self.measurements))

    def lookup(self, signature: Signature, processor: str) -> Measurement | None:
        """Return the measurement of the signature on the named processor, if there is one."""
        return self._index.get((signature, processor))


def shipped_profiles(platform: str) -> tuple[Profile, ...]:
    """Return the profiles that come with parapipe for the named platform, by backend's name.

    Intermediate tables (`*.rows.csv`) are no profiles.

    Raises
    ------
    CostError
        If one of them is wrong.
    """
    folder = data_folder("profiles") / platform
    files = [p for p in sorted(folder.glob("*.csv")) if not p.name.endswith(".rows.csv")]
    return tuple(read_profile(path) for path in files)


def read_profile(path: str | Path, name: str | None = None) -> Profile:
    """Read a profile from a CSV file with the columns of `COLUMNS`.

    Parameters
    ----------
    name
        Default: the file's folder and its name without suffix.

    Raises
    ------
    CostError
        If the file cannot be read, or has mistakes: all of them, each with file and line.
    """
    path = Path(path)
    name = name or f"{path.parent.name}/{path.stem}".lstrip("/")
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.reader(file, strict=True)
            header = next(reader, [])
            lines = [(reader.line_num, cells) for cells in reader if cells]
    except OSError as error:
        reason = error.strerror or str(error)
        raise CostError(f"profile '{path}' cannot be read: {reason}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise CostError(f"profile '{path}' is no CSV text in UTF-8: {error}") from error
    mistakes = list(_header_mistakes(header))
    measurements: list[Measurement] = []
    if not mistakes:
        measurements, mistakes = _read_rows(header, lines)
    if mistakes:
        listed = "; ".join(f"{path}:{line}: {mistake}" for line, mistake in mistakes)
        raise CostError(f"profile '{path}' must be corrected: {listed}")
    return Profile(name, tuple(measurements))


def write_profile(path: str | Path, measurements: Iterable[Measurement]) -> None:
    """Write a profile that `read_profile` reads; times are rounded to nanoseconds."""
    with Path(path).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for m in measurements:
            signature = [getattr(m.signature, column) for column in _SIGNATURE_COLUMNS]
            work = [m.operator_class, m.macs, m.size_bytes]
            times = [m.processor, f"{m.frequency_hz:.0f}", f"{m.time_s:.9f}"]
            writer.writerow([*signature, *work, *times, m.rows, f"{m.spread:.4f}", m.method])


def _header_mistakes(header: list[str]) -> Iterator[tuple[int, str]]:
    if not header:
        yield 1, f"is empty; the first line names the columns {', '.join(COLUMNS)}"
        return
    for column in dict.fromkeys(header):
        if column not in COLUMNS:
            yield 1, f"unknown column '{column}'"
        if header.count(column) > 1:
            yield 1, f"column '{column}' stands there {header.count(column)} times"
    for column in COLUMNS:
        if column not in header:
            yield 1, f"column '{column}' is missing"


def _read_rows(
    header: list[str], lines: list[tuple[int, list[str]]]
) -> tuple[list[Measurement], list[tuple[int, str]]]:
    measurements: list[Measurement] = []
    mistakes: list[tuple[int, str]] = []
    first: dict[tuple[Signature, str], int] = {}
    for line, cells in lines:
        if len(cells) != len(header):
            mistakes.append((line, f"has {len(cells)} cells for {len(header)} columns"))
            continue
        row = _Row(dict(zip(header, (cell.strip() for cell in cells), strict=True)))
        measurement = row.measurement()
        mistakes += [(line, mistake) for mistake in row.mistakes]
        if row.mistakes:
            continue
        seen = first.setdefault((measurement.signature, measurement.processor), line)
        if seen != line:
            where = f"{measurement.signature} on '{measurement.processor}'"
            mistakes.append((line, f"{where} stands in line {seen} already"))
        measurements.append(measurement)
    return measurements, mistakes


class _Row:
    """One line's cells, and the mistakes met while reading them."""

    def __init__(self, cells: dict[str, str]) -> None:
        self.cells = cells
        self.mistakes: list[str] = []

    def measurement(self) -> Measurement:
        """Read the line; the result is meaningless if there are mistakes."""
        return Measurement(
            signature=Signature(
                **{
                    column: self.text(column, empty=column in ("kernel", "strides", "attributes"))
                    for column in _SIGNATURE_COLUMNS
                }
            ),
            operator_class=self.one_of("class", OPERATOR_CLASSES),
            macs=int(self.number("macs", whole=True)),
            size_bytes=int(self.number("size_bytes", whole=True)),
            processor=self.text("processor"),
            frequency_hz=self.number("frequency_hz", positive=True),
            time_s=self.number("time_s", positive=True),
            rows=int(self.number("rows", positive=True, whole=True)),
            spread=self.number("spread"),
            method=self.one_of("method", METHODS),
        )

    def text(self, column: str, *, empty: bool = False) -> str:
        """Return the cell."""
        if not self.cells[column] and not empty:
            self.mistakes.append(f"{column} is empty")
        return self.cells[column]

    def one_of(self, column: str, known: Sequence[str]) -> str:
        """Return the cell, one of the known words."""
        word = self.cells[column]
        if word not in known:
            self.mistakes.append(f"{column} is '{word}' but must be one of {', '.join(known)}")
        return word

    def number(self, column: str, *, positive: bool = False, whole: bool = False) -> float:
        """Return the cell as a finite number, not negative."""
        try:
            value = float(self.cells[column])
        except ValueError:
            value = float("nan")
        good = isfinite(value) and (value > 0 if positive else value >= 0)
        if good and not (whole and value % 1):
            return value
        must = f"{'positive' if positive else 'non-negative'} {'whole' if whole else 'finite'}"
        self.mistakes.append(f"{column} is '{self.cells[column]}' but must be a {must} number")
        return 0
