"""The command of an exported folder: `python3 run.py`."""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any, NoReturn, TextIO

from .executor import Executor
from .expected import Expected
from .folder import RunError, open_folder
from .frames import cycle_frames, frames_in, random_frames
from .machine import OtherLoad, busy_note, cores_of
from .record import chrome_trace
from .results import ResultFile, check_place, figure_lines, measured_figures, write_atomically

FIRST_EXIT_CODE = 128  # plus the signal's number, as shells count it


class Stopped(BaseException):
    """A signal came that asks to end."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run this folder's plan; return the exit code."""
    options = _options(arguments)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _stop)
    try:
        stuck = _run(options)
    except RunError as error:
        return _report_end(str(error).replace("`cores`", "--cores"), 1)
    except Stopped as stopped:
        ended_by = int(stopped.args[0])
        return _report_end(f"ended by {signal.Signals(ended_by).name}", FIRST_EXIT_CODE + ended_by)
    except OSError as error:
        return _report_end(f"{error.filename or 'a file'}: {error.strerror or error}", 1)
    if stuck:
        sys.stderr.flush()
        os._exit(1)  # a thread that does not end would keep the process
    return 0


def _report_end(sentence: str, code: int) -> int:
    """Say why it ends; return the exit code."""
    try:
        sys.stderr.write(f"run.py: {sentence}\n")
        sys.stderr.flush()
    except OSError:  # it may go to the disk that is full
        _abandon(sys.stderr)
    return code


def _abandon(stream: TextIO) -> None:
    """Let what a stream still holds go nowhere, or Python would try again on its way out."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, stream.fileno())
    os.close(nothing)


def _own_output() -> TextIO:
    """Return standard output; what libraries print there goes to standard error from now on."""
    sys.stdout.flush()
    own = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return own


def _print(text: str, output: TextIO) -> None:
    """Print figures; RunError if standard output takes no more, as on a full disk."""
    try:
        output.write(text)
        output.flush()
    except OSError as error:
        _abandon(output)
        raise RunError(f"standard output: cannot be written ({error.strerror})") from error


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.saturate and options.period is not None:
        parser.error("--saturate admits frames as fast as it can: it takes no --period")
    if options.check and options.input is not None:
        parser.error("--check runs the frames that are saved: it takes no --input")
    try:
        options.cores = cores_of(options.cores)
    except ValueError as error:
        parser.error(f"argument --cores: {error}")
    return options


def _run(options: argparse.Namespace) -> tuple[str, ...]:
    _check_places(options)
    output = _own_output() if options.json else sys.stdout
    folder = open_folder(options.folder)
    if options.cores:
        folder = folder.on_cores(options.cores)
    expected = Expected(folder) if options.check else None
    source = expected.sample if expected else options.input
    input_frames = None if source is None else frames_in(source, folder)
    count = options.frames or (len(input_frames) if input_frames is not None else 100)

    def frames(number: int) -> Any:  # noqa: ANN401
        return (
            cycle_frames(input_frames, number)
            if input_frames is not None
            else random_frames(folder, number)
        )

    executor = Executor(
        folder, queue=options.queue, patience_s=options.patience, arena=options.arena
    )
    for _ in executor.run(frames(options.warmup)):
        pass
    pace_s = None if options.saturate else options.period or folder.predicted.period_s
    result_file = ResultFile(options.keep)
    others = OtherLoad()
    names = ", ".join(processor.name for processor in folder.processors)
    try:
        with result_file, closing(executor.run(frames(count), period_s=pace_s)) as run:
            sys.stderr.write(f"running {count} frames of {folder.model.name} on {names}\n")
            for results in run:
                result_file.add(results)
                if expected:
                    expected.add(results)
    finally:
        if options.trace:
            trace = chrome_trace(executor.record, f"{folder.model.name} on {folder.platform}")
            write_atomically(options.trace, json.dumps(trace).encode())
    other_share = others.share()
    for note in _notes(executor, other_share):
        sys.stderr.write(f"run.py: note: {note}\n")
    figures = {
        **measured_figures(folder, executor.record, executor.used),
        "pace_s": pace_s,
        "other_programs": other_share,
        "providers": [asdict(each) for each in executor.used],
        "peak_tensor_bytes": executor.record.peak_tensor_bytes,
        "arenas": asdict(executor.in_arenas) if executor.in_arenas else None,
        "differences": expected.differences if expected else None,
    }
    if options.json:
        _print(json.dumps(figures, indent=2) + "\n", output)
    else:
        _print("".join(f"{line}\n" for line in figure_lines(figures, pace_s=pace_s)), output)
    if expected:
        expected.check()
        sys.stderr.write(f"run.py: {expected.sentence()}\n")
    return executor.stuck


def _check_places(options: argparse.Namespace) -> None:
    for place in (options.keep, options.trace):
        if place is not None:
            check_place(place)


def _notes(executor: Executor, other_share: float | None) -> Iterator[str]:
    """Yield what is to be known of a run."""
    for each in executor.used:
        yield from each.sentences()
    if executor.in_arenas:
        yield executor.in_arenas.sentence()
    yield from executor.folder.notes()
    if busy := busy_note(other_share):
        yield busy


def _parser() -> argparse.ArgumentParser:
    description = "Run this folder's plan, and print what was measured."
    parser = argparse.ArgumentParser(prog="run.py", description=description)
    add = parser.add_argument
    here = Path(sys.argv[0]).resolve().parent
    add("folder", nargs="?", type=Path, default=here, help="the folder (default: this one)")
    add("--frames", type=_at_least(1), help="how many (default: those of --input, or 100)")
    add("--input", type=_parse_input, metavar="random|FILE.npz", help="default: random")
    add("--check", action="store_true", help="compare results with those that the export saved")
    add(
        "--warmup", type=_at_least(0), default=3, help="frames run before, not counted (default: 3)"
    )
    add("--saturate", action="store_true", help="admit frames as fast as the pipeline takes them")
    add(
        "--period",
        type=_parse_seconds,
        help="seconds between frames (default: the predicted period)",
    )
    add("--queue", type=_at_least(2), help="slots of each queue (default: as the plan says)")
    add("--arena", action="store_true", help="let tensors lie at the plan's offsets in an arena")
    add("--cores", action="append", default=[], metavar="PROCESSOR=0,2-3", help="use other cores")
    add(
        "--patience",
        type=_parse_seconds,
        help="seconds without progress to give up at (default: a minute)",
    )
    add("--trace", type=Path, help="write a Chrome trace, for ui.perfetto.dev")
    add("--keep", type=Path, help="write the results, an .npz file")
    add("--json", action="store_true", help="print figures as JSON")
    return parser


def _stop(number: int, frame: object) -> NoReturn:
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_DFL)  # the next one ends the process at once
    raise Stopped(number)


def _parse_seconds(text: str) -> float:
    try:
        time_s = float(text)
    except ValueError:
        time_s = math.nan
    if not 0 < time_s < math.inf:
        raise argparse.ArgumentTypeError(f"'{text}' is not a positive number of seconds")
    return time_s


def _at_least(least: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        if not (text.isascii() and text.isdigit()) or int(text) < least:
            raise argparse.ArgumentTypeError(f"'{text}' is no whole number from {least}")
        return int(text)

    return number


def _parse_input(text: str) -> Path | None:
    return None if text == "random" else Path(text)
