"""The rows of profiles that hold for an operator or a run of operators.

A profile keeps one time per signature. The table beside it (`NAME.rows.csv` beside `NAME.csv`)
keeps each operator that was measured, so that one can leave out a network, and knows which
operators were timed together: the times of a block's rows add up to the time of the block.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median_low

from parapipe.cost.profile import SIGNATURE_COLUMNS, Measurement, Profile, signature_in
from parapipe.cost.signature import Signature
from parapipe.errors import CostError
from parapipe.files.csv_table import Cells, TableKind, read_table
from parapipe.files.shipped import require_regular

APPORTIONED = "apportioned"


@dataclass(frozen=True, slots=True)
class Row:
    """One measured operator.

    Parameters
    ----------
    network, block, layer
        Where it stands.
    times_s
        By processor.
    factors
        By processor: what is in the time because the row was measured in another state of the
        board; none for a processor whose time is as it was measured.
    line
        In the file.
    """

    network: str
    block: int
    layer: str
    signature: Signature
    times_s: Mapping[str, float] = field(hash=False)
    factors: Mapping[str, float] = field(default_factory=dict, hash=False)
    line: int = field(default=0, compare=False)


def rows_path(profile: Path) -> Path:
    """Return where the rows behind a profile's file stand, if there are any."""
    return profile.with_suffix(".rows.csv")


def rows_behind(profile: Profile, *, complete: bool = False) -> tuple[Row, ...]:
    """Return the rows behind a profile; none if there is no such table beside it.

    Parameters
    ----------
    complete
        As for `read_rows`.

    Raises
    ------
    CostError
        If the table is wrong, or has signatures that the profile does not have.
    """
    path = rows_path(Path(profile.path)) if profile.path else None
    if path is None or not path.is_file():
        return ()
    rows = read_rows(path, profile.processors, complete=complete)
    profiled = {m.signature for m in profile.measurements}
    strange = sorted(map(str, {row.signature for row in rows} - profiled))
    if strange:
        raise CostError(
            f"table of measured rows '{path}' has {len(strange)} signatures that profile "
            f"'{profile.path}' lacks, one of them {strange[0]}; make both from the same data"
        )
    return rows


def read_rows(path: Path, processors: Sequence[str], *, complete: bool = False) -> tuple[Row, ...]:
    """Read a table with the columns model, block, index, layer, a signature's, and PROCESSOR_s.

    PROCESSOR_factor may stand beside PROCESSOR_s: a positive number, or empty for none.

    Parameters
    ----------
    complete
        Whether an empty time is a mistake, and index may be missing; else the row was not measured
        on that processor.

    Raises
    ------
    CostError
        If the file cannot be read, or has mistakes: all of them, each with file and line.
    """
    index, times = ("index",), {f"{name}_s": name for name in processors}
    factors = {f"{name}_factor": name for name in processors}

    def read(cells: Cells) -> Row:
        return Row(
            network=cells.text("model"),
            block=int(cells.number("block", whole=True)),
            layer=cells.text("layer"),
            signature=signature_in(cells),
            times_s={
                name: cells.number(column)
                for column, name in times.items()
                if cells.cells.get(column) or (complete and column in cells.cells)
            },
            factors={
                name: cells.number(column, positive=True)
                for column, name in factors.items()
                if cells.cells.get(column)
            },
            line=cells.line,
        )

    columns = ("model", "block", "layer", *SIGNATURE_COLUMNS, *(() if complete else index))
    kind = TableKind("table of measured rows", columns, (*index, *times, *factors), read)
    return read_table(path, kind)


def blocks_of(rows: Sequence[Row], processor: str) -> dict[tuple[str, int], list[Row]]:
    """Return the rows of each block that ran on the processor, by network and block."""
    blocks: dict[tuple[str, int], list[Row]] = defaultdict(list)
    for row in rows:
        if processor in row.times_s:
            blocks[row.network, row.block].append(row)
    return dict(blocks)


def is_apportioned(profile: Profile, processor: str) -> bool:
    """Tell whether the processor's times are shares of the times of blocks."""
    return any(m.method == APPORTIONED for m in profile.measurements if m.processor == processor)


def without_factors(rows: Sequence[Row]) -> tuple[Row, ...]:
    """Return the rows with the times that were measured, factors taken out."""
    return tuple(
        replace(
            row,
            times_s={name: t / row.factors.get(name, 1) for name, t in row.times_s.items()},
            factors={},
        )
        if row.factors
        else row
        for row in rows
    )


def profile_of_rows(profile: Profile, rows: Sequence[Row]) -> Profile:
    """Return what the profile would be if only these rows had been measured.

    A signature's time is the lower median of its rows, as in the profile. Rows of no time (a view
    in a block that was timed as one) are left out.
    """
    times: dict[tuple[Signature, str], list[float]] = defaultdict(list)
    for row in rows:
        for name, time_s in row.times_s.items():
            if time_s > 0:
                times[row.signature, name].append(time_s)
    measurements: list[Measurement] = []
    for m in profile.measurements:
        if times_s := times[m.signature, m.processor]:
            middle = median_low(times_s)
            spread = (max(times_s) - min(times_s)) / middle
            measurements.append(replace(m, time_s=middle, rows=len(times_s), spread=spread))
    return replace(profile, measurements=tuple(measurements))


COLUMNS = ("model", "latency_s")
OPTIONAL = ("order", "input_s", "longest_stage_s", "energy_j", "source")
"""Columns of a file of measured runs; times in seconds, joules of the whole board for a frame."""

_ORDER = "order(block->processor)"
_STAGE = "stage_time_ms(pipelined)"
_BOARD = ("model", _ORDER, "input_ms", "task_ms", _STAGE, "task_energy_mj")
_BOARD_IGNORED = (
    "platform", "board", "framework", "run", "output_ms", "latency_ms",
    "input_board_power_mw", "task_board_power_mw", "input_energy_mj", "total_energy_mj",
    "frames_per_joule", "source_path",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class MeasuredRun:
    """One run of a whole network.

    Parameters
    ----------
    model
        As the measurements call it.
    order
        A letter for each block; empty if that is not said.
    latency_s
        One frame through the network, loading and reading not included.
    input_s
        Loading the frame, if it was measured.
    longest_stage_s
        The longest stage of the pipelined run, with the loading of the frame in the first one.
    energy_j
        Joules of the board for a frame, one frame at a time, loading and reading not included.
    """

    model: str
    order: str
    latency_s: float
    input_s: float | None = None
    longest_stage_s: float | None = None
    energy_j: float | None = None

    @property
    def label(self) -> str:
        """What people call it."""
        return f"{self.model} {self.order}".strip()


def read_measured_runs(path: Path) -> tuple[MeasuredRun, ...]:
    """Read runs from a CSV file with `COLUMNS` and perhaps some of `OPTIONAL`.

    Files with the columns of ARM-CO-UP's evaluations (`task_ms` and the like) are read as well.

    Raises
    ------
    CostError
        If the file cannot be read, or has mistakes: all of them, each with file and line.
    """
    kind = TableKind("file of measured runs", COLUMNS, OPTIONAL, _plain_run)
    with suppress(OSError, UnicodeDecodeError, csv.Error, StopIteration):
        require_regular(path)
        with path.open(encoding="utf-8", newline="") as file:
            header = next(csv.reader(file))
        if "task_ms" in header:
            kind = TableKind("file of measured runs", _BOARD, _BOARD_IGNORED, _board_run)
    return read_table(path, kind)


def _plain_run(cells: Cells) -> MeasuredRun:
    return MeasuredRun(
        model=cells.text("model"),
        order=cells.text("order", empty=True).upper(),
        latency_s=cells.number("latency_s", positive=True),
        input_s=cells.optional("input_s", positive=True),
        longest_stage_s=cells.optional("longest_stage_s", positive=True),
        energy_j=cells.optional("energy_j", positive=True),
    )


def _board_run(cells: Cells) -> MeasuredRun:
    return MeasuredRun(
        model=cells.text("model"),
        order=cells.text(_ORDER).upper(),
        latency_s=cells.number("task_ms", positive=True) / 1e3,
        input_s=cells.number("input_ms") / 1e3,
        longest_stage_s=cells.number(_STAGE, positive=True) / 1e3,
        energy_j=cells.number("task_energy_mj", positive=True) / 1e3,
    )
