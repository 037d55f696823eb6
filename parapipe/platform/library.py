"""The platforms that come with parapipe, and those of other packages by name."""

from __future__ import annotations

from pathlib import Path

from parapipe.errors import PlatformError
from parapipe.files.plug_ins import Registry
from parapipe.files.shipped import data_folder
from parapipe.files.yaml_file import parse_yaml


def _misfit(path: object) -> str:
    return "" if isinstance(path, Path) and path.is_file() else "is no path of a file"


def platforms() -> Registry:
    """Return the registry of platforms; that of a package is the `Path` of its file."""
    own = dict.fromkeys(shipped(), "")
    return Registry("platform", "parapipe.platforms", own, PlatformError, _misfit)


def shipped() -> tuple[str, ...]:
    """Return the names of all shipped platforms, sorted."""
    return tuple(sorted(path.stem for path in data_folder("platforms").glob("*.yaml")))


def shipped_values(name: str) -> object:
    """Return the plain values of a shipped platform's file.

    Parameters
    ----------
    name
        One of `shipped()`.
    """
    text = (data_folder("platforms") / f"{name}.yaml").read_text(encoding="utf-8")
    return parse_yaml(text).value
