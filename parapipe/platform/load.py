"""Reading platform files: a name or a path in, a Platform or all mistakes out."""

from __future__ import annotations

from pathlib import Path

from parapipe.errors import PlatformError
from parapipe.files.mistake import did_you_mean
from parapipe.files.regular import is_there
from parapipe.files.shipped import data_folder
from parapipe.files.yaml_file import FileKind, parsed_as, text_of
from parapipe.platform.catalogue import catalogue
from parapipe.platform.expand import expanded
from parapipe.platform.library import platforms, shipped
from parapipe.platform.platform import Platform


def find(name: str) -> Path:
    """Return the file of a platform that is shipped, or that another package has.

    Raises
    ------
    PlatformError
        If none has that name.
    """
    if name in shipped():
        return data_folder("platforms") / f"{name}.yaml"
    registry = platforms()
    if registry.has(name):
        file: Path = registry.load(name)
        return file
    names = registry.names()
    chip = catalogue().named("chips", name)
    near = did_you_mean(name, names)
    if chip:
        near = f"; 'parapipe platforms new --chip {chip} --out {chip}.yaml' makes a file of it"
    raise PlatformError(
        f"no platform '{name}' is shipped and no such file exists; shipped: "
        f"{', '.join(names)}{near}"
    )


def load_platform(name_or_path: str) -> Platform:
    """Load a platform by its name, or a platform file by its path.

    A shipped name wins over a file of the same name; write `./name` for the file. A file wins over
    the name of a platform of another package.

    Raises
    ------
    PlatformError
        If there is no such platform, the file cannot be read, or it is wrong; then `mistakes`
        holds every mistake as `file:line: key: what is wrong, what to do`.
    """
    path = file_of(name_or_path)
    return read_platform(platform_text(path), str(path))


def file_of(name_or_path: str) -> Path:
    """Return the file that `load_platform` reads.

    Raises
    ------
    PlatformError
        If it can only be a name, and none such is shipped.
    """
    path = find(name_or_path) if name_or_path in shipped() else Path(name_or_path)
    if path.suffix not in (".yaml", ".yml") and len(path.parts) == 1 and not is_there(path):
        return find(name_or_path)
    return path


def platform_text(path: Path) -> str:
    """Return the text of a platform file; PlatformError if it cannot be read."""
    return text_of(path, _kind())


def read_platform(text: str, file: str) -> Platform:
    """Read a platform from YAML text, which error messages call `file`.

    Raises
    ------
    PlatformError
        If anything is wrong; `mistakes` holds every mistake.
    """
    return parsed_as(Platform, text, file, _kind(), expanded)


def _kind() -> FileKind:
    names = ", ".join(shipped())
    advice = f"give the path of a YAML file or one of the shipped names: {names}"
    return FileKind("platform file", PlatformError, advice)
