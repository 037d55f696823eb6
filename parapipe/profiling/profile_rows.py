"""The rows of a profile's file, and the file that they stand in while some are measured."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import astuple
from pathlib import Path
from typing import NamedTuple

from parapipe.cost.profile import Measurement, profile_text, read_profile
from parapipe.errors import CostError, OutputError
from parapipe.files.atomic import write_atomically
from parapipe.files.mistakes import listed_sentences
from parapipe.platform.divided import named_processors
from parapipe.platform.platform import Platform

Key = tuple[str, ...]
Rows = dict[Key, Measurement]
UNFINISHED = ".unfinished"


class UnfinishedProfile(NamedTuple):
    """A profile that is being measured.

    Parameters
    ----------
    path
        Where the rows stand meanwhile.
    done
        Keys of rows that need not be measured.
    """

    path: Path
    done: Collection[Key]


@contextmanager
def unfinished_profile(
    path: Path, platform: Platform, *, again: bool
) -> Iterator[UnfinishedProfile]:
    """Measure in here: the file at `path` is replaced at the end, once all is measured.

    What is measured so far stands in a file beside it. If the work is interrupted, that file stays,
    and the next time goes on from it, unless the profile was written meanwhile.

    Parameters
    ----------
    again
        Whether rows that the profile has are measured again.

    Raises
    ------
    CostError
        The file that is there is wrong, or was measured on another platform.
    OutputError
        A file cannot be written.
    """
    old = rows_in(path, platform)
    unfinished = path.with_name(path.name + UNFINISHED)
    new = _unfinished_rows(unfinished, path, platform)
    replaced = {key for key, _ in _times_of(new).items() - _times_of(old).items()}
    make_folder(path)
    write_rows(unfinished, ({**old, **new} if again else {**new, **old}).values())
    try:
        yield UnfinishedProfile(unfinished, replaced if again else {*new, *old})
    except BaseException:
        with suppress(OSError, CostError):
            if _times_of(rows_in(unfinished, platform)) == _times_of(old):
                unfinished.unlink()  # nothing to go on from
        raise
    write_atomically(path, unfinished.read_bytes())
    unfinished.unlink()


def _times_of(rows: Rows) -> dict[Key, float]:
    return {key: row.time_s for key, row in rows.items()}


def _unfinished_rows(unfinished: Path, path: Path, platform: Platform) -> Rows:
    """Return the rows of a measurement that was interrupted, if they are of any use."""
    with suppress(OSError, CostError):
        if not path.exists() or unfinished.stat().st_mtime_ns >= path.stat().st_mtime_ns:
            return rows_in(unfinished, platform)
    return {}


def key_of(m: Measurement) -> Key:
    """Return what tells a row from others."""
    state = (m.state,) if m.state else ()
    return (*map(str, astuple(m.signature)), m.then, m.processor, *state)


def rows_in(path: Path, platform: Platform) -> Rows:
    """Return the rows of a file, none if it is not there; errors as `checked_rows`."""
    return {key_of(m): m for m in checked_rows(path, platform)} if path.exists() else {}


def checked_rows(path: Path, platform: Platform) -> Sequence[Measurement]:
    """Return a file's measurements, all of them of processors as the platform has them.

    Raises
    ------
    CostError
        Others are; it names all of them. Or the file is wrong.
    """
    measurements = read_profile(path).measurements
    clocks = {name: p.point.frequency_hz for name, p in named_processors(platform).items()}
    names = ", ".join(clocks)
    mistakes = []
    for m in measurements:
        clock_hz = clocks.get(m.processor)
        if clock_hz is None:
            mistakes.append(f"{path}:{m.line}: no processor is called '{m.processor}' ({names})")
        elif m.frequency_hz != clock_hz:
            mistakes.append(
                f"{path}:{m.line}: '{m.processor}' is at {m.frequency_hz / 1e6:g} MHz, and at "
                f"{clock_hz / 1e6:g} MHz in the platform"
            )
    if mistakes:
        raise CostError(
            f"profile '{path}' was not measured on platform '{platform.name}' as it stands: "
            f"{listed_sentences(mistakes)}; give its own platform, or another file"
        )
    return measurements


def make_folder(path: Path) -> None:
    """Make the folder of a file; raise an OutputError if that fails."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(
            f"{path}: cannot be written ({error.strerror}); choose another `out`"
        ) from error


def write_rows(path: Path, rows: Iterable[Measurement]) -> None:
    """Write a profile's file."""
    write_atomically(path, profile_text(rows).encode())
