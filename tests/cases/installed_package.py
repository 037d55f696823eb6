"""Installs a package as pip does from a wheel: its files, and a folder .dist-info beside them."""

from __future__ import annotations

import shutil
import tomllib
from collections.abc import Mapping
from pathlib import Path

EXAMPLE = Path(__file__).parents[1] / "plug_in"
"""The package that docs/plug-ins.md shows."""


def install_example(site: Path) -> None:
    """Install the package of the tests, as its pyproject.toml says."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    shutil.copytree(EXAMPLE / "parapipe_example", site / "parapipe_example")
    install(site, project["name"], project["version"], project["entry-points"])


def install(site: Path, name: str, version: str, groups: Mapping[str, Mapping[str, str]]) -> None:
    """Write what tells Python that a package is installed, and which entry points it has."""
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    (info / "METADATA").write_text(metadata, encoding="utf-8")
    lines = []
    for group, entries in groups.items():
        lines += [f"[{group}]", *(f"{key} = {value}" for key, value in entries.items())]
    (info / "entry_points.txt").write_text("\n".join(lines), encoding="utf-8")
