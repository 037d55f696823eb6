"""Profiles: measured times of operators, by signature and processor, read from a CSV file."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import get_args

from parapipe.cost.csv_table import Cells, TableKind, read_table
from parapipe.cost.signature import Signature
from parapipe.data_files import data_folder
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
    line
        Where it stands in the profile's file; 0 if it was not read from one.
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
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Profile:
    """Measurements of one platform through one backend.

    Parameters
    ----------
    name
        For people, such as `amlogic-a311d/armcl-f32`.
    measurements
        Each signature at most once per processor.
    path
        The file it was read from; empty if there is none.
    """

    name: str
    measurements: tuple[Measurement, ...]
    path: str = field(default="", compare=False)
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
    records = read_table(path, _KIND)
    return Profile(name, tuple(m for _, m in records), str(path))


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


def _measurement(cells: Cells) -> Measurement:
    return Measurement(
        signature=Signature(
            **{
                column: cells.text(column, empty=column in ("kernel", "strides", "attributes"))
                for column in _SIGNATURE_COLUMNS
            }
        ),
        operator_class=cells.one_of("class", OPERATOR_CLASSES),
        macs=int(cells.number("macs", whole=True)),
        size_bytes=int(cells.number("size_bytes", whole=True)),
        processor=cells.text("processor"),
        frequency_hz=cells.number("frequency_hz", positive=True),
        time_s=cells.number("time_s", positive=True),
        rows=int(cells.number("rows", positive=True, whole=True)),
        spread=cells.number("spread"),
        method=cells.one_of("method", METHODS),
        line=cells.line,
    )


def _key(m: Measurement) -> tuple[tuple[Signature, str], str]:
    return (m.signature, m.processor), f"{m.signature} on '{m.processor}'"


_KIND = TableKind("profile", COLUMNS, (), _measurement, _key)
