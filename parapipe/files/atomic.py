"""Files that appear whole or not at all, and folders that are exchanged in one step."""

from __future__ import annotations

import ctypes
import os
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

from parapipe.errors import OutputError
from parapipe.files.locked_folders import LockedFolder, clear_abandoned
from parapipe.files.mistakes import listed

_FROM_WORKING_FOLDER = -100  # AT_FDCWD of Linux
_EXCHANGE = 2  # RENAME_EXCHANGE, since Linux 3.15


def exchange(one: Path, other: Path) -> bool:
    """Give two files or folders each other's names, in one step; return whether that was done.

    A process that is killed leaves what was before or what is after. It is not done, and nothing
    has changed, where the system, its C library or the file system has no such step, if one of
    them is not there, and if the system refuses it.
    """
    if (call := _renameat2()) is None:
        return False
    names = _FROM_WORKING_FOLDER, os.fsencode(one), _FROM_WORKING_FOLDER, os.fsencode(other)
    return bool(call(*names, _EXCHANGE) == 0)


@cache
def _renameat2() -> Any:  # noqa: ANN401 - a function of the C library
    """Return the C library's function; None where it has none, as outside of Linux."""
    if call := getattr(ctypes.CDLL(None), "renameat2", None):
        text = ctypes.c_char_p
        call.argtypes = (ctypes.c_int, text, ctypes.c_int, text, ctypes.c_uint)
    return call


def write_atomically(path: Path, content: bytes, *, executable: bool = False) -> None:
    """Write a file beside its place, then rename it: a reader sees the old bytes or the new ones.

    A link is followed, and what it points to is replaced. The folder must exist.

    Parameters
    ----------
    path
        Where the file shall be; one that is there is replaced.
    executable
        Whether all may run it.

    Raises
    ------
    OutputError
        If the place is no regular file, the folder is missing or takes no file, or the disk is
        full. Then what was there before still is, and nothing is left beside it.
    """
    place = Path(os.path.realpath(path))
    with _errors_as_output(path):
        if place.exists() and not place.is_file():
            kind = "a folder" if place.is_dir() else "not a regular file"
            raise OutputError(f"{path}: cannot be written, it is {kind}; name another file")
        with LockedFolder(place.parent) as beside:
            _write_through(beside.path / "0", content)
            if executable:
                (beside.path / "0").chmod(0o755)
            (beside.path / "0").replace(place)
        _sync_folder(place.parent)


def refuse_changed(path: Path, content: bytes | None = None) -> None:
    """Raise an OutputError if a file is there already, unless it has the content that is new."""
    if path.is_file() and (content is None or path.read_bytes() != content):
        raise OutputError(
            f"{path}: is there already, and may have been edited; name another file, or replace it "
            "with `force`"
        )


@contextmanager
def _errors_as_output(path: Path) -> Iterator[list[Path]]:
    """Raise an OSError as an OutputError; in the end remove folders that the body lists as made."""
    new_folders: list[Path] = []
    try:
        yield new_folders
    except OSError as error:
        raise OutputError(
            f"{path}: cannot be written ({error.strerror or error}); choose a folder that exists, "
            "may be written and has room",
            path,
        ) from error
    finally:
        for folder in reversed(new_folders):
            with suppress(OSError):
                folder.rmdir()


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


def write_folder(
    folder: Path,
    files: Mapping[Path, bytes],
    made: Iterable[tuple[Path, bytes]] = (),
    places: Collection[Path] = (),
) -> None:
    """Write several files of a folder, which is made if need be: all of them or none.

    All are written beside their places first, then renamed. Only the renaming of many files is not
    one step; if it fails or is interrupted, what was renamed is taken back.

    Parameters
    ----------
    files
        Content by path relative to the folder.
    made
        Further files and their content, each written when it comes, so that they need not be in
        memory together.
    places
        Their paths, all of which come once.

    Raises
    ------
    OutputError
        As for `write_atomically`; folders made on the way are removed again.
    """
    with _errors_as_output(folder) as new_folders:
        paths = [*files, *places]
        numbers = {path: str(number) for number, path in enumerate(paths)}
        _make_folders(folder, paths, new_folders)
        clear_abandoned(folder)
        with LockedFolder(folder) as beside:
            for path, content in chain(files.items(), made):
                _write_through(beside.path / numbers[path], content)
            _refuse_folders(folder, paths)
            _rename_files(beside.path, [folder / path for path in paths])
        new_folders.clear()


def _rename_files(beside: Path, places: Sequence[Path]) -> None:
    """Rename the files 0, 1, … to their places; if that fails, put back what was there."""
    old = beside / "old"
    old.mkdir()
    for number, place in enumerate(places):
        if os.path.lexists(place):
            _link_or_copy(place, old / str(number))
    try:
        for number, place in enumerate(places):
            (beside / str(number)).replace(place)
    except BaseException:  # a signal, too
        for number, place in enumerate(places):
            if os.path.lexists(old / str(number)):
                (old / str(number)).replace(place)
            elif not (beside / str(number)).exists():
                place.unlink()
        raise


def _link_or_copy(path: Path, other: Path) -> None:
    """Give a file another name; copy it where the file system or its rights refuse that."""
    try:
        os.link(path, other, follow_symlinks=False)
    except OSError:
        shutil.copy2(path, other, follow_symlinks=False)


@contextmanager
def atomic_folder(folder: Path) -> Iterator[Path]:
    """Make a folder that appears whole or not at all, in the place of the one that is there.

    Where the system cannot exchange two folders in one step, one that is killed between two
    renamings loses what was there.

    Yields
    ------
    Path
        An empty folder beside the place, which is renamed at the end if nothing was raised.

    Raises
    ------
    OutputError
        If the place is no folder or cannot be written, and if the body raises an OSError. Then
        what was there before still is; folders made on the way are removed again.
    """
    place = Path(os.path.realpath(folder))
    with _errors_as_output(folder) as new_folders:
        if place.exists() and not place.is_dir():
            raise OutputError(f"{folder}: is a file; name a folder")
        _make_folder(place.parent, new_folders)
        clear_abandoned(place.parent)
        with LockedFolder(place.parent) as beside:
            fresh = beside.path / "new"
            fresh.mkdir()
            yield fresh
            if not exchange(fresh, place):
                _replace_folder(fresh, place, beside.path / "old")
        _sync_folder(place.parent)
        new_folders.clear()


def _replace_folder(fresh: Path, place: Path, old: Path) -> None:
    """Rename a new folder to its place, in two steps if there is one: `old` is its name then."""
    try:
        if place.is_dir():
            place.rename(old)
        fresh.rename(place)
    except BaseException:  # a signal, too, leaves what was there before
        if old.is_dir() and not place.exists():
            old.rename(place)
        raise


def check_folder(folder: Path, paths: Sequence[Path]) -> None:
    """Try whether `write_folder` could write these files; leave everything as it was.

    Raises
    ------
    OutputError
        As for `write_folder`, but for a disk that has too little room.
    """
    with _errors_as_output(folder) as new_folders:
        _make_folders(folder, paths, new_folders)
        _refuse_folders(folder, paths)
        with LockedFolder(folder):
            pass


def _refuse_folders(folder: Path, paths: Iterable[Path]) -> None:
    folders = [str(folder / path) for path in paths if (folder / path).is_dir()]
    if folders:
        raise OutputError(
            f"{listed(folders)}: cannot be written, a folder has that name; remove it or choose "
            "another folder"
        )


def _make_folders(folder: Path, paths: Iterable[Path], new_folders: list[Path]) -> None:
    for place in (folder, *(folder / path.parent for path in paths)):
        _make_folder(place, new_folders)


def _make_folder(folder: Path, new_folders: list[Path]) -> None:
    """Make a folder and those above it, noting which were not there."""
    if not folder.is_dir():
        if folder.exists():
            raise OutputError(f"{folder}: is a file, not a folder; name another folder")
        if folder.parent != folder:
            _make_folder(folder.parent, new_folders)
        new_folders.append(folder)  # first, so that a signal leaves nothing that is not noted
        folder.mkdir(exist_ok=True)
