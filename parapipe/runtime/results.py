"""Results kept in a file, those of an unfinished run too."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from .folder import RunError


class Kept:
    """Results of frames in order, written at the end of a `with`, however it ends.

    Parameters
    ----------
    path
        An `.npz` file: an array for each graph output, the first axis that of frames. Nothing is
        kept if it is None.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._frames: list[Mapping[str, Any]] = []

    def add(self, results: Mapping[str, Any]) -> None:
        """Keep the results of the next frame."""
        if self._path is not None:
            self._frames.append(results)

    def __enter__(self) -> Kept:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._path is not None:
            buffer = io.BytesIO()
            with zipfile.ZipFile(buffer, "w") as file:  # numpy.savez takes not all names
                for name in self._frames[0] if self._frames else ():
                    with file.open(f"{name}.npy", "w") as entry:
                        array = np.stack([results[name] for results in self._frames])
                        np.lib.format.write_array(entry, array, allow_pickle=False)
            write_whole(self._path, buffer.getbuffer())


def check_place(path: Path) -> None:
    """Refuse a place where no file can be written, before work is done for it.

    Raises
    ------
    RunError
        If it is a folder or no regular file, or its folder is missing or may not be written.
    """
    beside = path.parent
    if path.is_dir():
        raise RunError(f"{path}: is a folder; name a file")
    if path.exists() and not path.is_file():
        raise RunError(f"{path}: is no regular file; name another file")
    if not beside.is_dir():
        raise RunError(f"{path}: there is no folder {beside}; name one that exists")
    if not os.access(beside, os.W_OK | os.X_OK):
        raise RunError(f"{path}: the folder {beside} may not be written; name another one")


def write_whole(path: Path, content: bytes | memoryview) -> None:
    """Write a file, whole or not at all.

    Raises
    ------
    RunError
        If it cannot be written.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        beside.write_bytes(content)
        beside.replace(path)
    except BaseException as failure:  # a signal, too, leaves nothing beside it
        beside.unlink(missing_ok=True)
        if isinstance(failure, OSError):
            raise RunError(f"{path}: cannot be written ({failure.strerror})") from failure
        raise
