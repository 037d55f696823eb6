"""Where a platform's numbers stand: file, line, key, and what the section says of its source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from parapipe.files.mistake import KeyPath, key_text
from parapipe.files.yaml_file import Expansion
from parapipe.files.yaml_text import Document, parse_yaml
from parapipe.platform.expand import expanded
from parapipe.platform.load import file_of, platform_text, read_platform
from parapipe.platform.platform import Platform


@dataclass(frozen=True, slots=True)
class Place:
    """Where a number stands.

    Parameters
    ----------
    line
        From 1.
    key
        As in `processors[2].launch.overhead_s`.
    source
        Provenance and title of the section's source.
    """

    file: str
    line: int
    key: str
    source: str


@dataclass(frozen=True, slots=True)
class PlacedPlatform:
    """A platform, and the text that it was read from.

    Parameters
    ----------
    expansion
        The text's values in full form.
    """

    platform: Platform
    file: Path
    document: Document
    expansion: Expansion

    def place(self, path: KeyPath) -> Place:
        """Return where the value at a path stands.

        Parameters
        ----------
        path
            Keys and list indices from the top of the file.
        """
        line = self.document.line(self.expansion.origin(path))
        return Place(str(self.file), line, key_text(path), self._source(path))

    def _source(self, path: KeyPath) -> str:
        """Say what the innermost section around a path that names a source says of it."""
        named, value = "", self.expansion.value
        key = "voltage_source" if path[-1:] == ("voltage_v",) else "source"
        for step in (*path, None):
            if isinstance(value, Mapping):
                named = value.get(key, value.get("source", named))
                value = value.get(step)
            elif isinstance(value, tuple) and isinstance(step, int):
                value = value[step]
        found = self.platform.sources.get(named)
        return f"{found.provenance}: {found.title}" if found else ""


def load_placed(name_or_path: str) -> PlacedPlatform:
    """Load a platform as `load_platform` does, with the lines of its numbers.

    Raises
    ------
    PlatformError
        As `load_platform`.
    """
    file = file_of(name_or_path)
    text = platform_text(file)
    document = parse_yaml(text)
    expansion = expanded(document.value)
    return PlacedPlatform(read_platform(text, str(file)), file, document, expansion)
