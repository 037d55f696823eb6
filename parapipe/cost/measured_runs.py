"""Whole runs of networks on a board, as measured: what predictions are compared with."""

from __future__ import annotations

import csv
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from parapipe.files.csv_table import Cells, TableKind, read_table
from parapipe.files.regular import require_regular

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
    kind = TableKind("file of measured runs", COLUMNS, OPTIONAL, _ordinary)
    with suppress(OSError, UnicodeDecodeError, csv.Error, StopIteration):
        require_regular(path)
        with path.open(encoding="utf-8", newline="") as file:
            header = next(csv.reader(file))
        if "task_ms" in header:
            kind = TableKind("file of measured runs", _BOARD, _BOARD_IGNORED, _of_board)
    return read_table(path, kind)


def _ordinary(cells: Cells) -> MeasuredRun:
    return MeasuredRun(
        model=cells.text("model"),
        order=cells.text("order", empty=True).upper(),
        latency_s=cells.number("latency_s", positive=True),
        input_s=cells.optional("input_s", positive=True),
        longest_stage_s=cells.optional("longest_stage_s", positive=True),
        energy_j=cells.optional("energy_j", positive=True),
    )


def _of_board(cells: Cells) -> MeasuredRun:
    return MeasuredRun(
        model=cells.text("model"),
        order=cells.text(_ORDER).upper(),
        latency_s=cells.number("task_ms", positive=True) / 1e3,
        input_s=cells.number("input_ms") / 1e3,
        longest_stage_s=cells.number(_STAGE, positive=True) / 1e3,
        energy_j=cells.number("task_energy_mj", positive=True) / 1e3,
    )
