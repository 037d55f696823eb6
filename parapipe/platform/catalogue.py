"""The platforms that come with parapipe."""

from __future__ import annotations

from pathlib import Path

from parapipe.errors import PlatformError
from parapipe.files.shipped import data_folder
from parapipe.platform.mistake import did_you_mean


def shipped() -> tuple[str, ...]:
    """Return the names of all shipped platforms, sorted."""
    return tuple(sorted(path.stem for path in data_folder("platforms").glob("*.yaml")))


def find(name: str) -> Path:
    """Return the file of a shipped platform.

    Raises
    ------
    PlatformError
        If none has that name.
    """
    names = shipped()
    if name not in names:
        raise PlatformError(
            f"no platform '{name}' is shipped and no such file exists; shipped: "
            f"{', '.join(names)}{did_you_mean(name, names)}"
        )
    return data_folder("platforms") / f"{name}.yaml"
