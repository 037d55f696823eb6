"""Profiles: measured times of operators, by signature and processor, read from a CSV file."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import lru_cache
from io import StringIO
from math import log
from pathlib import Path
from typing import get_args

from parapipe.cost.signature import Signature
from parapipe.errors import CostError
from parapipe.files.csv_table import Cells, TableKind, read_table
from parapipe.files.shipped import data_folder
from parapipe.graph.work import OperatorClass

OPERATOR_CLASSES: tuple[str, ...] = get_args(OperatorClass)
SIGNATURE_COLUMNS = tuple(f.name for f in fields(Signature))
COLUMNS = (
    *SIGNATURE_COLUMNS,
    *("class", "macs", "size_bytes", "processor", "frequency_hz"),
    *("time_s", "rows", "spread", "method"),
)
"""Columns of a profile, all of them needed, in any order."""

OPTIONAL_COLUMNS = ("then", "observed_hz", "load", "noisy", "weights")
"""Columns that a profile may have besides."""

STATES = ("cold", "sustained", "")
"""In which state of the chip a time was measured, as the column `state` says; empty for any."""

TIMED, RUN, SCALED, STATED = "timed", "run", "scaled", "stated"
COMPILED, UNPRICED = "compiled", "unpriced"
METHODS = (TIMED, "apportioned", RUN, SCALED, STATED, COMPILED, UNPRICED)
"""How a time was got: each operator by its own clock, or out of the time of several together; or
out of a run of a plan, as its share of what a segment took there; or timed in another state of the
board, and multiplied with what leads from that state to the profile's; or stated by the chip's
maker, who may have simulated it; or out of the cycles that
the processor's compiler tells; or, where that does not price an operator, the price that it has
without a compiler, adapted as those cycles were (docs/compiler-costs.md)."""

WEIGHTS = ("own", "random", "")
"""Whose weights an operator was measured with: those of a model that holds it, or random ones."""

_Key = tuple[Signature, str, str]


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
        Number of rows: operators that have this signature, over all measured models, or rounds in
        which one was measured again.
    spread
        (longest − shortest row) / time_s.
    method
        One of `METHODS`.
    then
        ONNX types of what ran at one go with the operator and is in the time, such as `Relu`.
    observed_hz, load
        What the clock was seen at, and processes that wanted a core; None if nobody looked.
    noisy
        Whether the rows still differed too much after all repeats.
    weights
        One of `WEIGHTS`; empty where that is not said, or the operator has none.
    state
        One of `STATES`.
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
    then: str = ""
    observed_hz: float | None = None
    load: float | None = None
    noisy: bool = False
    weights: str = ""
    state: str = ""
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Profile:
    """Measurements of one platform through one backend.

    Parameters
    ----------
    name
        For people, such as `amlogic-a311d/armcl-f32`.
    measurements
        Each signature, with what runs at one go with it, at most once per processor, frequency and
        state.
    path
        The file it was read from; empty if there is none.
    """

    name: str
    measurements: tuple[Measurement, ...]
    path: str = field(default="", compare=False)
    _index: Mapping[_Key, tuple[Measurement, ...]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        index: dict[_Key, tuple[Measurement, ...]] = {}
        for m in sorted(self.measurements, key=lambda m: (m.frequency_hz, m.state)):
            key = (m.signature, m.then, m.processor)
            before = index.get(key, ())
            same = before and before[-1].frequency_hz == m.frequency_hz
            if same and before[-1].state == m.state:
                raise ValueError(f"profile '{self.name}' has a signature twice on one processor")
            index[key] = (*before, m)
        object.__setattr__(self, "_index", index)

    def __hash__(self) -> int:
        return hash((self.name, len(self.measurements)))  # one of all measurements takes long

    def in_state(self, state: str) -> Profile:
        """Return the times of a state of the chip: its own, and where it has none, those of any."""
        if not any(m.state for m in self.measurements):
            return self
        own = {_key(m)[0][:2] for m in self.measurements if m.state == state}
        chosen = (
            m
            for m in self.measurements
            if m.state == state or (not m.state and _key(m)[0][:2] not in own)
        )
        return Profile(self.name, tuple(chosen), self.path)

    @property
    def processors(self) -> tuple[str, ...]:
        """Names of the processors with at least one measurement, in order of appearance."""
        return tuple(dict.fromkeys(m.processor for m in self.measurements))

    def lookup(self, signature: Signature, processor: str, then: str = "") -> Measurement | None:
        """Return the measurement of the signature on the named processor, if there is one.

        Of several frequencies, that of the highest.

        Parameters
        ----------
        then
            Types of the operators that run at one go with it, separated by spaces.
        """
        sweep = self.sweep(signature, processor, then)
        return sweep[-1] if sweep else None

    def sweep(
        self, signature: Signature, processor: str, then: str = ""
    ) -> tuple[Measurement, ...]:
        """Return the signature's measurements on the named processor, by ascending frequency."""
        return self._index.get((signature, then, processor), ())

    @property
    def clocks_hz(self) -> Mapping[str, set[float]]:
        """The frequencies at which each processor was measured."""
        clocks: dict[str, set[float]] = {}
        for m in self.measurements:
            clocks.setdefault(m.processor, set()).add(m.frequency_hz)
        return clocks

    def near(self, frequencies_hz: Mapping[str, float]) -> Profile:
        """Return what was measured at one frequency of each processor, the nearest to its own.

        Nearest by ratio. Of processors that are not named, the highest.
        """
        nearest = {
            name: min(
                clocks_hz, key=lambda hz: abs(log(hz / frequencies_hz.get(name, max(clocks_hz))))
            )
            for name, clocks_hz in self.clocks_hz.items()
        }
        measurements = (m for m in self.measurements if m.frequency_hz == nearest[m.processor])
        return Profile(self.name, tuple(measurements), self.path)


def shipped_profiles(platform: str) -> tuple[Profile, ...]:
    """Return the profiles that come with parapipe for the named platform, by backend's name.

    Intermediate tables (`*.rows.csv`) are no profiles.

    Raises
    ------
    CostError
        If one of them is wrong.
    """
    return _shipped(data_folder("profiles") / platform)


def profiles_beside(platform_file: str | Path, platform: str) -> tuple[Profile, ...]:
    """Return the profiles that lie beside a platform's file: `profiles/PLATFORM/*.csv` there.

    Parameters
    ----------
    platform_file
        The file, or the platform's name.
    platform
        The platform's `profile_name`.

    Raises
    ------
    CostError
        If one of them is wrong.
    """
    from parapipe.platform.catalogue import shipped
    from parapipe.platform.load import file_of  # loads pydantic

    name = os.fspath(platform_file)
    file = Path(name) if name in shipped() else file_of(name)
    return _profiles_in(file.parent / "profiles" / platform)


def chosen_profiles(
    paths: Iterable[str | Path], *, beside: str | Path, platform: str
) -> tuple[Profile, ...] | None:
    """Return the profiles at the paths, else those beside a platform's file, else None.

    Raises
    ------
    CostError
        If one of them is wrong.
    """
    profiles = tuple(read_profile(path) for path in paths)
    return profiles or profiles_beside(beside, platform) or None


def _profiles_in(folder: Path) -> tuple[Profile, ...]:
    files = [p for p in sorted(folder.glob("*.csv")) if not p.name.endswith(".rows.csv")]
    return tuple(read_profile(path) for path in files)


_shipped = lru_cache(maxsize=8)(_profiles_in)


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
    return Profile(name, read_table(path, _KIND), str(path))


def write_profile(path: str | Path, measurements: Iterable[Measurement]) -> None:
    """Write a profile that `read_profile` reads; times are rounded to nanoseconds."""
    Path(path).write_text(profile_text(measurements), encoding="utf-8", newline="")


def profile_text(measurements: Iterable[Measurement]) -> str:
    """Return a profile as CSV text; optional columns only if a measurement says something there."""
    measurements = tuple(measurements)
    optional = any(any(_optional_cells(m)) for m in measurements)
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    stated = ("state",) if any(m.state for m in measurements) else ()
    writer.writerow([*COLUMNS, *(OPTIONAL_COLUMNS if optional else ()), *stated])
    for m in measurements:
        signature = [getattr(m.signature, column) for column in SIGNATURE_COLUMNS]
        work = [m.operator_class, m.macs, m.size_bytes]
        times = [m.processor, f"{m.frequency_hz:.0f}", f"{m.time_s:.9f}"]
        rows = [m.rows, f"{m.spread:.4f}", m.method]
        writer.writerow(
            [
                *signature, *work, *times, *rows,
                *(_optional_cells(m) if optional else ()), *((m.state,) if stated else ()),
            ]
        )  # fmt: skip
    return text.getvalue()


def measurement_of(cells: Mapping[str, str]) -> Measurement:
    """Return the measurement that a row's cells say, by column.

    Raises
    ------
    CostError
        If they are wrong.
    """
    row = Cells(0, dict(cells))
    measurement = _measurement(row)
    if row.mistakes:
        raise CostError(f"a row of a profile is wrong: {'; '.join(row.mistakes)}")
    return measurement


def _optional_cells(m: Measurement) -> tuple[str, ...]:
    observed = "" if m.observed_hz is None else f"{m.observed_hz:.0f}"
    load = "" if m.load is None else f"{m.load:.2f}"
    return m.then, observed, load, "1" if m.noisy else "", m.weights


def _measurement(cells: Cells) -> Measurement:
    return Measurement(
        signature=signature_in(cells),
        operator_class=cells.one_of("class", OPERATOR_CLASSES),
        macs=int(cells.number("macs", whole=True)),
        size_bytes=int(cells.number("size_bytes", whole=True)),
        processor=cells.text("processor"),
        frequency_hz=cells.number("frequency_hz", positive=True),
        time_s=cells.number("time_s", positive=True),
        rows=int(cells.number("rows", positive=True, whole=True)),
        spread=cells.number("spread"),
        method=cells.one_of("method", METHODS),
        then=cells.text("then", empty=True),
        observed_hz=cells.optional("observed_hz"),
        load=cells.optional("load"),
        noisy=cells.text("noisy", empty=True) not in ("", "0"),
        weights=cells.one_of("weights", WEIGHTS) if cells.text("weights", empty=True) else "",
        state=cells.one_of("state", STATES) if cells.text("state", empty=True) else "",
        line=cells.line,
    )


def signature_in(cells: Cells) -> Signature:
    """Return the signature that a line's cells say."""
    may_be_empty = ("kernel", "strides", "attributes")
    words = {name: cells.text(name, empty=name in may_be_empty) for name in SIGNATURE_COLUMNS}
    return Signature(**words)


def _key(m: Measurement) -> tuple[tuple[_Key, float, str], str]:
    text = f"{m.signature}{f' then {m.then}' if m.then else ''}"
    return (
        (m.signature, m.then, m.processor),
        m.frequency_hz,
        m.state,
    ), f"{text} on '{m.processor}'"


_KIND = TableKind("profile", COLUMNS, (*OPTIONAL_COLUMNS, "state"), _measurement, _key)
