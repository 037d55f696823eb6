"""Folders for unfinished work, which a later run clears away if this one is killed.

Whoever works in such a folder holds a lock on it (`flock`), which ends with the process, however
that ends. A folder with nobody's lock was left behind. Where a file system knows no locks, nothing
is cleared.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import secrets
import shutil
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from tempfile import gettempdir
from typing import Self

from parapipe.errors import OutputError

_TRIES = 20
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_NAME = re.compile(r"\.parapipe-[0-9a-f]{16}\.part")


class LockedFolder:
    """A new folder of one's own, removed with all it holds by `remove`, or when Python ends.

    As a context for temporary files, it raises an OutputError if these find no room.

    Parameters
    ----------
    parent
        Where it is made; the folder for temporary files if not given.

    Raises
    ------
    OSError
        It cannot be made.
    """

    def __init__(self, parent: Path | None = None) -> None:
        self._temporary = parent is None
        self.path = (parent or Path(gettempdir())) / f".parapipe-{secrets.token_hex(8)}.part"
        try:
            descriptor = _make_locked(self.path)
            self._finalizer = weakref.finalize(self, _remove, self.path, descriptor)
        except BaseException:  # a signal, too, leaves nothing behind
            shutil.rmtree(self.path, ignore_errors=True)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, raised: BaseException | None, _where: object) -> None:
        self.remove()
        if self._temporary and (full := self._full(raised)):
            raise OutputError(
                f"{self.path.parent}: has no room for temporary files ({full.strerror}); make "
                "room, or name another folder by TMPDIR"
            ) from raised

    def _full(self, raised: BaseException | None) -> OSError | None:
        """Return the error that says that a disk is full, if it was this folder's."""
        place = raised.path if isinstance(raised, OutputError) else None
        ours = place is not None and place.is_relative_to(self.path)
        error = raised.__cause__ if raised and ours else raised
        return error if isinstance(error, OSError) and error.errno in _FULL else None

    def remove(self) -> None:
        """Remove it; a second time does nothing."""
        if self._finalizer.alive:  # it runs once: were it interrupted, the folder would stay
            try:
                shutil.rmtree(self.path, ignore_errors=True)
            finally:
                self._finalizer()


def clear_abandoned(parent: Path) -> None:
    """Remove what killed runs have left unfinished in a folder; no trouble stops that."""
    with suppress(OSError):
        for entry in os.scandir(parent):
            if not _NAME.fullmatch(entry.name) or not entry.is_dir(follow_symlinks=False):
                continue
            with suppress(OSError), _locked(entry) as descriptor:
                if os.fstat(descriptor).st_uid == os.getuid():
                    shutil.rmtree(entry, ignore_errors=True)


@cache
def clear_abandoned_scratch() -> None:
    """Remove what killed runs have left in the folder for temporary files, once per process."""
    clear_abandoned(Path(gettempdir()))


def _make_locked(path: Path) -> int:
    """Make a folder and hold it; again if a run that clears away was quicker."""
    while True:
        path.mkdir(mode=0o700)
        with suppress(FileNotFoundError):
            descriptor = os.open(path, os.O_RDONLY)
            with suppress(OSError):  # no locks on this file system
                fcntl.flock(descriptor, fcntl.LOCK_EX)  # waits for a run that clears it away
            with suppress(OSError):
                if path.stat().st_ino == os.fstat(descriptor).st_ino:
                    return descriptor
            os.close(descriptor)


def _remove(path: Path, descriptor: int) -> None:
    for _ in range(_TRIES):  # a thread that an interruption has left may still write into it
        shutil.rmtree(path, ignore_errors=True)
        if not path.exists():
            break
    os.close(descriptor)


@contextmanager
def _locked(folder: os.PathLike[str]) -> Iterator[int]:
    """Hold a folder; OSError if somebody else does, or if there are no locks."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield descriptor
    finally:
        os.close(descriptor)
