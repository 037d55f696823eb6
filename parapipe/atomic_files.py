"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from parapipe.errors import OutputError


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file beside its place, then rename it: a reader sees the old bytes or the new ones.

    A link is followed, and what it points to is replaced. The folder must exist.

    Parameters
    ----------
    path
        Where the file shall be; one that is there is replaced.

    Raises
    ------
    OutputError
        If the place is no regular file, the folder is missing or takes no file, or the disk is
        full. Then what was there before still is, and nothing is left beside it.
    """
    place = Path(os.path.realpath(path))
    # A name of its own length: one made from the file's could be too long for the disk.
    beside = place.parent / f".parapipe-{secrets.token_hex(8)}.part"
    try:
        if place.exists() and not place.is_file():
            kind = "a folder" if place.is_dir() else "not a regular file"
            raise OutputError(f"{path}: cannot be written, it is {kind}; name another file")
        _write_through(beside, content)
        beside.replace(place)
        _sync_folder(place.parent)
    except OSError as error:
        raise OutputError(
            f"{path}: cannot be written ({error.strerror}); choose a folder that exists, may be "
            "written and has room"
        ) from error
    finally:
        with suppress(OSError):
            beside.unlink()


def _write_through(path: Path, content: bytes) -> None:
    """Write a new file and wait until the disk has it."""
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    """Make the rename last, where the file system can; the file is whole in any case."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def write_folder(folder: Path, files: Mapping[Path, bytes]) -> None:
    """Write several files of a folder, which is made if need be: all of them or none.

    All are written beside their places first, then renamed; only the renaming of many files is
    not one step.

    Parameters
    ----------
    files
        Content by path relative to the folder.

    Raises
    ------
    OutputError
        As for `write_atomically`; folders made on the way are removed again.
    """
    made: list[Path] = []
    beside = folder / f".parapipe-{secrets.token_hex(8)}.part"
    try:
        for place in (folder, *(folder / path.parent for path in files)):
            _make(place, made)
        beside.mkdir()
        for number, content in enumerate(files.values()):
            _write_through(beside / str(number), content)
        for number, path in enumerate(files):
            (beside / str(number)).replace(folder / path)
        made.clear()
    except OSError as error:
        raise OutputError(
            f"{folder}: cannot be written ({error.strerror}); choose a folder that may be written "
            "and has room"
        ) from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)
        for place in reversed(made):
            with suppress(OSError):
                place.rmdir()


def _make(folder: Path, made: list[Path]) -> None:
    """Make a folder and those above it, noting which were not there."""
    if not folder.is_dir():
        if folder.parent != folder:
            _make(folder.parent, made)
        folder.mkdir(exist_ok=True)
        made.append(folder)
