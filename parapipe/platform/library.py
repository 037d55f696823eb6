"""The platforms that come with parapipe."""

from __future__ import annotations

from parapipe.files.shipped import data_folder
from parapipe.files.yaml_text import parse_yaml


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
