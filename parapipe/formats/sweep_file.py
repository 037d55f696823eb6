"""The file of a sweep: models, platforms, and options by name, in YAML."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from parapipe.errors import ArgumentError, SweepError
from parapipe.files.mistake import Mistake, did_you_mean
from parapipe.files.yaml_file import FileKind, WholeFile, parsed_as, text_of
from parapipe.pipeline.options import MapOptions, option_names
from parapipe.platform.fields import Many, Name, Text

DEFAULT = "default"
"""Name of the options of a sweep that names none."""
_KIND = FileKind("sweep file", SweepError, "give the path of a YAML file, as docs/sweep.md shows")


class SweepFile(WholeFile):
    """A sweep as it is written down.

    Parameters
    ----------
    models, platforms
        As for `map`; paths are relative to the folder of the file.
    options
        Options of `map` by their names in Python, such as `time_limit_s`, under a name for them.
        Each model is mapped on each platform with each of them.
    """

    format: Literal["parapipe/sweep/1"] = Field(alias="schema")
    models: Annotated[Many[Text], Field(min_length=1)]
    platforms: Annotated[Many[Text], Field(min_length=1)]
    options: dict[Name, dict[str, Any]] = Field(default={DEFAULT: {}}, min_length=1)

    @classmethod
    def contradictions(cls, raw: object) -> Iterable[Mistake]:
        """Find what is wrong with the options of `map`."""
        options = raw.get("options") if isinstance(raw, dict) else None
        for name, given in options.items() if isinstance(options, dict) else ():
            if isinstance(given, dict):
                yield from _mistakes(str(name), given)


def _mistakes(name: str, given: Mapping[str, Any]) -> Iterable[Mistake]:
    known = option_names(lambda option: option.changes_results)
    unknown = [each for each in given if each not in known]
    for each in unknown:
        text = f"is no option of map that a sweep takes{did_you_mean(str(each), known)}"
        yield Mistake(("options", name, each), text)
    try:
        MapOptions(**{each: value for each, value in given.items() if each not in unknown})
    except ArgumentError as error:
        yield Mistake(("options", name), error.complaint)


def load_sweep_file(path: Path) -> SweepFile:
    """Read a sweep file.

    Raises
    ------
    SweepError
        It cannot be read or is wrong; then `mistakes` holds every mistake with its line.
    """
    return parsed_as(SweepFile, text_of(path, _KIND), str(path), _KIND)
