"""Reading platform files: a name or a path in, a Platform or all mistakes out."""

from __future__ import annotations

from pathlib import Path

from parapipe.errors import PlatformError
from parapipe.platform.catalogue import find, shipped
from parapipe.platform.consistency import contradictions
from parapipe.platform.platform import Platform
from parapipe.platform.yaml_file import FileKind, parsed_as, text_of


def load_platform(name_or_path: str) -> Platform:
    """Load a shipped platform by its name, or a platform file by its path.

    A shipped name wins over a file of the same name; write `./name` for the file.

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
    if path.suffix not in (".yaml", ".yml") and len(path.parts) == 1 and not path.exists():
        return find(name_or_path)
    return path


def platform_text(path: Path) -> str:
    """Return the text of a platform file.

    Raises
    ------
    PlatformError
        If it cannot be read.
    """
    return text_of(path, _kind())


def read_platform(text: str, file: str) -> Platform:
    """Read a platform from YAML text.

    Parameters
    ----------
    file
        What to call the text in error messages.

    Raises
    ------
    PlatformError
        If anything is wrong; `mistakes` holds every mistake.
    """
    return parsed_as(Platform, text, file, _kind())


def _kind() -> FileKind:
    names = ", ".join(shipped())
    return FileKind(
        "platform file",
        PlatformError,
        f"give the path of a YAML file or one of the shipped names: {names}",
        contradictions,
    )
