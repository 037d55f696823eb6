"""Only files are read: a pipe would make a command wait, and a device never ends."""

from __future__ import annotations

import stat
from errno import EINVAL
from pathlib import Path


def require_regular(path: Path) -> None:
    """Raise an OSError if a path is a pipe, a device or a socket, or cannot be looked at."""
    mode = path.stat().st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):  # a folder is told by whoever opens it
        raise OSError(EINVAL, "it is a pipe or a device, and must be a file", str(path))


def is_there(path: Path) -> bool:
    """Whether there is such a path; a name that no file can have names none."""
    try:
        return path.exists()
    except OSError:  # as of a name that is too long
        return False
