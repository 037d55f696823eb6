"""Measures operators on this machine, or takes in what a board has measured."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from time import monotonic

from parapipe.cost.profile import RUN, Measurement, measurement_of
from parapipe.errors import CostError, PlatformError, ProfilingError
from parapipe.files.atomic import write_folder
from parapipe.files.locked_folders import LockedFolder, clear_abandoned_scratch
from parapipe.files.mistakes import listed_sentences
from parapipe.files.progress import Progress
from parapipe.files.script import start_script
from parapipe.platform.platform import Platform
from parapipe.profiling.profile_report import ProfileReport
from parapipe.profiling.profile_rows import (
    Key,
    Rows,
    UnfinishedProfile,
    checked_rows,
    key_of,
    make_folder,
    rows_in,
    write_rows,
)
from parapipe.profiling.providers import onnx_runtime
from parapipe.profiling.tasks import Tasks

CLOCK_TOLERANCE = 0.05
PACKAGE = "parapipe_profiling"  # of a bundle's modules
WholeRuns = Callable[[Collection[str], Callable[[str], None]], Iterable[Measurement]]


def profile_here(
    tasks: Tasks,
    platform: Platform,
    at: UnfinishedProfile,
    *,
    whole: WholeRuns | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> ProfileReport:
    """Measure on this machine; the file holds what is measured so far at any moment.

    Parameters
    ----------
    at
        Where the rows stand. Those that are done are kept and not measured again.
    whole
        Takes the operators' times out of runs of the whole model, when all operators are measured.
        It is given the processors of which some rows are of operators by themselves, and what takes
        notes, and returns rows that replace those.

    Raises
    ------
    RuntimeMissingError
        If ONNX Runtime is not installed.
    ProfilingError
        If this is no Linux, or cores of the platform are not there.
    CostError
        If the file that is there is wrong, or was measured on another platform.
    OutputError
        If the file cannot be written.
    """
    onnx_runtime()
    check_cores(platform, tasks)
    from parapipe.profiling.measure import rows_measured

    path = at.path
    rows = rows_in(path, platform)
    begin_s = monotonic()

    def tell(done: int, total: int) -> None:
        if progress:
            progress(Progress(done, total, 0.0, monotonic() - begin_s, phase="measuring"))

    notes = [*tasks.left_out, *tasks.notes]
    new: Rows = {}
    clear_abandoned_scratch()
    with LockedFolder() as scratch:
        write_folder(scratch.path, tasks.files())
        for chunk in rows_measured(tasks.document, scratch.path, {*at.done}, tell, notes.append):
            new |= {key_of(m): m for m in map(measurement_of, chunk)}
            rows |= new
            write_rows(path, rows.values())
    requested = tasks.keys()
    alone = {m.processor: None for key, m in rows.items() if key in requested and m.method != RUN}
    if whole and alone:
        new |= {key_of(m): m for m in whole(tuple(alone), notes.append)}
        rows |= new
        write_rows(path, rows.values())
    return _report(path, rows, new, requested | set(new), notes)


def write_bundle(tasks: Tasks, platform: Platform, folder: Path) -> None:
    """Write a folder that measures by itself on a board with onnxruntime and numpy.

    Raises
    ------
    OutputError
        If it cannot be written.
    """
    readme = README.format(
        model=tasks.document["model"],
        platform=platform.name,
        count=len(tasks.document["operators"]),
        cores="\n".join(
            f"- `{each['name']}`: cores {', '.join(map(str, each['cores']))} at "
            f"{each['frequency_hz'] / 1e6:g} MHz, {each['provider']}"
            for each in tasks.document["processors"]
        ),
    )
    purpose = "Measure what tasks.json lists, into results.csv beside it"
    command = start_script("measure.py", purpose, f"{PACKAGE}.measure_command", "onnxruntime numpy")
    modules = {
        Path(PACKAGE) / name: Path(__file__).with_name(name).read_bytes()
        for name in ("__init__.py", "measure.py", "measure_command.py", "under_load.py")
    }
    files = {Path("measure.py"): command, Path("README.md"): readme.encode(), **modules}
    write_folder(folder, {**files, **tasks.files()})


def import_rows(source: Path, platform: Platform, path: Path) -> ProfileReport:
    """Take the rows that a board has measured into a profile, replacing equal ones.

    Raises
    ------
    CostError
        If rows are wrong, or are not of this platform; all of them are told.
    OutputError
        If the file cannot be written.
    """
    measurements = checked_rows(source, platform)
    if not measurements:
        raise CostError(f"profile '{source}' holds no rows; was the measurement run to its end?")
    return take_in(measurements, platform, path)


def take_in(measurements: Iterable[Measurement], platform: Platform, path: Path) -> ProfileReport:
    """Add rows to a profile, in place of those of equal operators; errors as for `import_rows`."""
    new = {key_of(m): m for m in measurements}
    rows = rows_in(path, platform) | new
    make_folder(path)
    write_rows(path, rows.values())
    return _report(path, rows, new, new)


def _report(
    path: Path, rows: Rows, new: Rows, requested: Collection[Key], notes: Sequence[str] = ()
) -> ProfileReport:
    """Report on a profile's rows of the keys asked for; those that are new replaced older ones."""
    own = [m for key, m in rows.items() if key in requested]
    spreads = [m.spread for m in own if m.noisy]
    return ProfileReport(
        path,
        measured=len(new),
        kept=len(own) - len(new),
        others=len(rows) - len(own),
        noisy=len(spreads),
        least_spread=min(spreads, default=None),
        most_spread=max(spreads, default=None),
        notes=(*notes, *clock_notes(new.values())),
    )


def check_cores(platform: Platform, tasks: Tasks) -> None:
    """Refuse cores that this process may not use.

    Raises
    ------
    PlatformError
        Names all processors that have any.
    ProfilingError
        If this is no Linux.
    """
    if not hasattr(os, "sched_getaffinity"):
        raise ProfilingError(
            "this system does not let a program choose its cores; profile on Linux, by `bundle`"
        )
    allowed = os.sched_getaffinity(0)
    missing = [
        f"'{each['name']}' has cores {each['cores']}"
        for each in tasks.document["processors"]
        if not allowed.issuperset(each["cores"])
    ]
    if missing:
        raise PlatformError(
            f"platform '{platform.name}' is not this machine, which lends cores "
            f"{sorted(allowed)}: {listed_sentences(missing)}; "
            "measure on the board with `bundle` DIR"
        )


def clock_notes(measurements: Iterable[Measurement]) -> tuple[str, ...]:
    """Say of each processor whose clock was seen off the platform's how far it was off."""
    off: dict[str, list[float]] = {}
    stated_hz: dict[str, float] = {}
    for m in measurements:
        stated_hz[m.processor] = m.frequency_hz
        if m.observed_hz and abs(m.observed_hz / m.frequency_hz - 1) > CLOCK_TOLERANCE:
            off.setdefault(m.processor, []).append(m.observed_hz)
    return tuple(
        f"processor '{name}' was seen at {_megahertz_text(clocks_hz)} MHz in "
        f"{len(clocks_hz)} {'row' if len(clocks_hz) == 1 else 'rows'}, not at "
        f"{stated_hz[name] / 1e6:.0f} MHz as the platform says: fix its clock"
        for name, clocks_hz in off.items()
    )


def _megahertz_text(clocks_hz: Sequence[float]) -> str:
    """Return the range of some frequencies; one number where they are the same to a megahertz."""
    return " to ".join(dict.fromkeys(f"{hz / 1e6:.0f}" for hz in (min(clocks_hz), max(clocks_hz))))


README = """\
# Measuring {model} on {platform}

{count} operators, each by itself, on these processors:

{cores}

Copy this folder to the board. It needs Python 3.8 or newer, `onnxruntime` and `numpy`, and Linux.
Fix the clocks to the frequencies above, end what else is running, then

    python3 measure.py

It writes `results.csv`; if it is stopped, start it again, and it goes on where it was. Bring that
file back and take it in:

    parapipe profile --import results.csv --platform PLATFORM

How much processors slow each other down is measured by

    python3 measure.py --co-runs
    python3 measure.py --under-load

The first runs a compute-bound and a memory-bound kernel on each processor beside the others, into
`co-runs.csv`, in some minutes at most. The second runs each operator while the other processors run
the model's operators in turn, into `under-load.csv`. Either file becomes a section of the platform:

    parapipe fit slowdowns co-runs.csv --platform PLATFORM
"""
