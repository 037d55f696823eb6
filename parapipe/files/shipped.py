"""Where the shipped data lies: beside the package in a checkout, inside it once installed."""

from __future__ import annotations

from pathlib import Path

from parapipe.errors import ParapipeError


def data_folder(kind: str) -> Path:
    """Return the folder of shipped data files.

    Parameters
    ----------
    kind
        `platforms` or `profiles`.

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
