"""Folders of the user: for what is kept between runs, and for settings."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """Return the user's cache folder: PARAPIPE_CACHE, or parapipe's in XDG_CACHE_HOME or ~/.cache.

    Raises
    ------
    RuntimeError
        The user has no home directory.
    """
    return _folder("PARAPIPE_CACHE", "XDG_CACHE_HOME", ".cache")


def settings_folder() -> Path:
    """Return the folder of settings: PARAPIPE_CONFIG, or one in XDG_CONFIG_HOME or ~/.config.

    Raises
    ------
    RuntimeError
        The user has no home directory.
    """
    return _folder("PARAPIPE_CONFIG", "XDG_CONFIG_HOME", ".config")


def _folder(own_variable: str, shared_variable: str, beside: str) -> Path:
    if own := os.environ.get(own_variable):
        return Path(own)
    shared = Path(os.environ.get(shared_variable, ""))
    # the specification has it that a relative path is ignored
    return (shared if shared.is_absolute() else Path.home() / beside) / "parapipe"
