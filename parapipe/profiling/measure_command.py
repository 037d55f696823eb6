"""The command of a folder that measures on a board: `python3 measure.py`.

It measures what `tasks.json` lists, into `results.csv` beside it. Started again, it goes on where
it was. With `--under-load`, it measures operators while other processors run the model, too, with
`--co-runs` kernels of stated intensity, into files of their own. As `measure`, it needs onnxruntime
and numpy, nothing of parapipe.
"""

from __future__ import annotations

import csv
import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from .measure import KEY, Row, rows_measured
from .under_load import COLUMNS, kernel_rows, operator_rows

FORMAT = "parapipe/profile-tasks/1"
FIRST_EXIT_CODE = 128  # plus the signal's number, as shells count it
REMEDY = "make the folder again"
CO_RUNS = {
    "--under-load": ("under-load.csv", operator_rows),
    "--co-runs": ("co-runs.csv", kernel_rows),
}
"""What may be asked for instead: the file that it writes, and what measures."""


class Stopped(BaseException):
    """A signal came that asks to end."""


def main() -> int:
    """Measure what the folder of the script that was started lists; return the exit code."""
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _raise_stopped)
    folder, options = Path(sys.argv[0]).resolve().parent, sys.argv[1:]
    if options and (len(options) > 1 or options[0] not in CO_RUNS):
        return _report(f"takes nothing, or one of {', '.join(CO_RUNS)}", 2)
    try:
        return _measure_folder(folder, *options)
    except Stopped as stopped:
        name = signal.Signals(stopped.args[0]).name
        return _report(
            f"ended by {name}; start it again, and it goes on", FIRST_EXIT_CODE + stopped.args[0]
        )
    except OSError as error:
        place = error.filename or folder
        problem = f"{place}: cannot be read or written ({error.strerror or error})"
        return _report(f"{problem}; what was measured before is kept", 1)


def _measure_folder(folder: Path, option: str = "") -> int:
    try:
        tasks = json.loads((folder / "tasks.json").read_text(encoding="utf-8"))
        readable = tasks["format"] == FORMAT
    except (ValueError, KeyError, TypeError):
        readable = False
    if not readable:
        return _report(f"tasks.json is not {FORMAT}; {REMEDY}", 1)
    cores = {core for each in tasks["processors"] for core in each["cores"]}
    if missing := sorted(cores - os.sched_getaffinity(0)):
        return _report(f"cores {missing} are not there; {REMEDY} for this machine", 1)
    if option:
        return _measure_co_runs(folder, tasks, option)
    path = folder / "results.csv"
    rows = _earlier_rows(path, tasks["columns"])
    done = {tuple(row[column] for column in KEY) for row in rows}
    failures: list[str] = []
    for measured in rows_measured(tasks, folder, done, _progress, failures.append):
        rows += measured
        _write_rows(path, tasks["columns"], rows)
    _report(f"{path}: {len(rows)} rows, {len(failures)} operators did not run", 0)
    for sentence in failures:
        sys.stderr.write(f"  {sentence}\n")
    return 0


def _measure_co_runs(folder: Path, tasks: Mapping[str, Any], option: str) -> int:
    """Measure processors beside each other, from the beginning."""
    name, rows_of = CO_RUNS[option]
    rows: list[Row] = []
    failures: list[str] = []
    for measured in rows_of(tasks, folder, _progress, failures.append):
        rows += measured
        _write_rows(folder / name, COLUMNS, rows)
    for sentence in failures:
        sys.stderr.write(f"\n  {sentence}")
    if not rows:
        return _report("nothing ran beside anything else: fewer than two processors run here", 1)
    return _report(f"{folder / name}: {len(rows)} rows", 0)


def _progress(count: int, total: int) -> None:
    sys.stderr.write(f"\rmeasured {count} of {total}")
    sys.stderr.flush()


def _report(sentence: str, code: int) -> int:
    """Say it in a line of its own, below that of the progress; return the exit code."""
    try:
        sys.stderr.write(f"\nmeasure.py: {sentence}\n")
        sys.stderr.flush()
    except OSError:  # it may go to the disk that is full; Python would try again on its way out
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, sys.stderr.fileno())
        os.close(nothing)
    return code


def _raise_stopped(number: int, frame: object) -> NoReturn:
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_DFL)  # the next one ends the process at once
    raise Stopped(number)


def _earlier_rows(path: Path, columns: Sequence[str]) -> list[Row]:
    """Return the whole rows that an earlier run has left."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        lines = list(csv.reader(file))
    if not lines or lines[0] != list(columns):
        return []
    # The last line may have been cut short when the run was stopped.
    return [dict(zip(columns, line)) for line in lines[1:] if len(line) == len(columns)]  # noqa: B905


def _write_rows(path: Path, columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> None:
    """Write all rows, or leave those that stand there."""
    beside = path.with_suffix(".part")
    try:
        with beside.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(columns), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except BaseException as failure:  # a signal, too, leaves nothing beside it
        with suppress(OSError):
            beside.unlink()
        if isinstance(failure, OSError):
            raise OSError(failure.errno, failure.strerror, str(path)) from failure
        raise
