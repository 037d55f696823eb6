"""Where the shipped data lies, and that only regular files are read."""

from __future__ import annotations

import stat
from errno import EINVAL
from pathlib import Path

from parapipe.errors import ParapipeError


def require_regular(path: Path) -> None:
    """Raise an OSError if a path is a pipe, a device or a socket, or cannot be looked at."""
    mode = path.stat().st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):  # a folder is told by whoever opens it
        raise OSError(EINVAL, "it is a pipe or a device, and must be a file", str(path))


def path_exists(path: Path) -> bool:
    """Whether there is such a path; a name that no file can have names none."""
    try:
        return path.exists()
    except OSError:  # as of a name that is too long
        return False


def data_folder(kind: str) -> Path:
    """Return the folder of shipped data files.

    Parameters
    ----------
    kind
        `platforms`, `profiles` or `runtimes`.

    Raises
    ------
    ParapipeError
        If the folder is missing from the installation.
    """
    package = Path(__file__).resolve().parents[1]
    installed = package / "_data" / kind
    checkout = package.parent
    if not installed.is_dir() and (checkout / "pyproject.toml").is_file():
        installed = checkout / kind
    if not installed.is_dir():
        raise ParapipeError(
            f"parapipe's own folder '{kind}' is missing from '{package}'; install parapipe again"
        )
    return installed
