"""Which Python each compiler is installed in: the user's settings."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import yaml
from pydantic import TypeAdapter, ValidationError

from parapipe.compilers.contract import CompileError, Environment
from parapipe.errors import ArgumentError, OutputError
from parapipe.files.atomic import write_atomically
from parapipe.files.user_folders import settings_folder

FILE = "compilers.yaml"
VARIABLE = "PARAPIPE_COMPILER_"
_SETTINGS: TypeAdapter[dict[str, dict[str, str]]] = TypeAdapter(dict[str, dict[str, str]])


def environment(name: str) -> Environment:
    """Return where a compiler is installed.

    The variable PARAPIPE_COMPILER_NAME goes before the user's settings.

    Raises
    ------
    CompileError
        If nobody has said that, or there is no such file.
    """
    variable = VARIABLE + name.upper().replace("-", "_")
    stated = os.environ.get(variable) or _read_settings().get(name, {}).get("python")
    if not stated:
        raise CompileError(
            f"nobody has said where the compiler '{name}' is installed; install it in a Python "
            f"environment of its own (docs/compilers.md says how), then run `parapipe compilers "
            f"use {name} --python PATH`",
            "missing",
        )
    python = Path(stated).expanduser().absolute()
    if not os.access(python, os.X_OK) or python.is_dir():
        raise CompileError(
            f"the compiler '{name}' should be in {python}, where there is no Python; name it anew "
            f"by `parapipe compilers use {name} --python PATH`",
            "missing",
        )
    return Environment(python)


def stated_environment(python: Path) -> Environment:
    """Return the environment of a Python interpreter; ArgumentError if it is no program."""
    if not os.access(python, os.X_OK) or python.is_dir():
        raise ArgumentError(f"{python}: is no program; give the path of a Python interpreter")
    return Environment(python.absolute())


def use(name: str, python: Path) -> Path:
    """Keep in the user's settings which Python has a compiler; return the file of settings.

    Raises
    ------
    OutputError
        If the settings cannot be written.
    """
    settings = {**_read_settings(), name: {"python": str(python.absolute())}}
    path = settings_folder() / FILE
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(
            f"{path.parent}: cannot be made ({error.strerror}); name another folder for settings "
            "by PARAPIPE_CONFIG"
        ) from error
    write_atomically(path, yaml.safe_dump(settings, sort_keys=True).encode())
    return path


def _read_settings() -> Mapping[str, Mapping[str, str]]:
    path = settings_folder() / FILE
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise ArgumentError(f"{path}: cannot be read ({error}); correct or delete it") from error
    try:
        return _SETTINGS.validate_python(content or {}, strict=True)
    except ValidationError as error:
        raise ArgumentError(
            f"{path}: is not a table of compilers with a `python` each; correct or delete it"
        ) from error
