"""Reading platform files, and where each number of a platform stands in its file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from parapipe.errors import PlatformError
from parapipe.files.mistakes import KeyPath, did_you_mean, key_text
from parapipe.files.shipped import data_folder, path_exists
from parapipe.files.yaml_file import (
    Document,
    Expansion,
    FileKind,
    parse_as,
    parse_yaml,
    read_yaml_text,
)
from parapipe.platform.catalogue import catalogue, platforms, shipped
from parapipe.platform.excluded import without_processors
from parapipe.platform.expand import expansion_of
from parapipe.platform.platform import Platform


def find_platform(name: str) -> Path:
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
    chip = catalogue().spelling_of("chips", name)
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
    path = find_platform(name_or_path) if name_or_path in shipped() else Path(name_or_path)
    if path.suffix not in (".yaml", ".yml") and len(path.parts) == 1 and not path_exists(path):
        return find_platform(name_or_path)
    return path


def platform_text(path: Path) -> str:
    """Return the text of a platform file; PlatformError if it cannot be read."""
    return read_yaml_text(path, _file_kind())


def read_platform(text: str, file: str) -> Platform:
    """Read a platform from YAML text, which error messages call `file`.

    Raises
    ------
    PlatformError
        If anything is wrong; `mistakes` holds every mistake.
    """
    return parse_as(Platform, text, file, _file_kind(), expansion_of)


def _file_kind() -> FileKind:
    names = ", ".join(shipped())
    advice = f"give the path of a YAML file or one of the shipped names: {names}"
    return FileKind("platform file", PlatformError, advice)


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
    kept
        By section of which entries are left out: the places of the others in the text's list.
    """

    platform: Platform
    file: Path
    document: Document
    expansion: Expansion
    kept: Mapping[KeyPath, Sequence[int]] = field(default_factory=dict)

    def without(self, names: Sequence[str]) -> PlacedPlatform:
        """Return it without processors; errors are those of `without_processors`."""
        reduced, whole = without_processors(self.platform, names), self.platform
        ends = ({each.sender, each.receiver} for each in whole.links)
        kept: dict[KeyPath, Sequence[int]] = {
            ("processors",): [i for i, p in enumerate(whole.processors) if p.name not in names],
            ("links",): [i for i, pair in enumerate(ends) if pair.isdisjoint(names)],
        }
        return replace(self, platform=reduced, kept=kept)

    def place(self, path: KeyPath) -> Place:
        """Return where the value at a path stands.

        Parameters
        ----------
        path
            Keys and list indices from the top of the file.
        """
        if path[:1] in self.kept and isinstance(index := path[1], int):
            path = (path[0], self.kept[path[:1]][index], *path[2:])
        line = self.document.line(self.expansion.origin(path))
        return Place(str(self.file), line, key_text(path), self._source_text(path))

    def _source_text(self, path: KeyPath) -> str:
        """Say what the innermost section around a path that names a source says of it."""
        name, value = "", self.expansion.value
        key = "voltage_source" if path[-1:] == ("voltage_v",) else "source"
        for step in (*path, None):
            if isinstance(value, Mapping):
                name = value.get(key, value.get("source", name))
                value = value.get(step)
            elif isinstance(value, tuple) and isinstance(step, int):
                value = value[step]
        source = self.platform.sources.get(name)
        return f"{source.provenance}: {source.title}" if source else ""


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
    expansion = expansion_of(document.value)
    return PlacedPlatform(read_platform(text, str(file)), file, document, expansion)
