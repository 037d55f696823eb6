"""What a front was made of, and the command that makes it again, from the options given."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from parapipe.formats.front_inputs import Inputs
from parapipe.graph.input_shapes import shape_text
from parapipe.pipeline.options import MapOptions, flag, idle_options

IDLE = ("jobs", "cache")
"""Options that change no figure."""


def map_command(
    model: str | Path | Mapping[str, str], platform: str | Path, options: MapOptions
) -> str:
    """Return the command as a line for a shell, without options that are at their defaults.

    Parameters
    ----------
    model
        Several of them by name.
    """
    given, default = options.to_dict(), MapOptions().to_dict()
    models = [f"{model}"]
    if several := isinstance(model, Mapping):
        models = [f"{name}={each}" for name, each in model.items()]
    words = ["parapipe", "map", *models, "--platform", f"{platform}"]
    left_out = {*IDLE, *idle_options(given), *(("draws",) if several else ())}
    changed = [n for n in given if given[n] != default[n] and n not in left_out]
    for name in sorted(changed, key=lambda name: _rank(given[name])):
        words += _words(name, given[name])
    return shlex.join(words)


def _rank(value: object) -> int:
    """Return the place of an option: values come first, then flags, then what may be repeated."""
    if isinstance(value, str):
        return 0
    return 2 if isinstance(value, Mapping | Sequence) else value is True


def _words(name: str, value: object) -> Iterator[str]:
    match value:
        case True:
            yield flag(name)
        case Mapping():
            for key, each in value.items():
                yield from (flag(name), f"{key}={_text(name, each)}")
        case tuple() | list():
            for each in value:
                yield from (flag(name), f"{each}")
        case _:
            yield from (flag(name), _text(name, value))


def _text(name: str, value: Any) -> str:  # noqa: ANN401 - of any option
    """Return a value as the command line takes it."""
    if name == "shapes":
        return shape_text(value)
    if name == "deadline_s":
        return f"{value}s"
    return f"{value:.17g}B" if name == "max_memory_bytes" else f"{value}"


def inputs_of(platform: str | Path, options: MapOptions) -> Inputs:
    """Return what costs depend on."""
    return Inputs(
        platform=os.fspath(platform),
        profiles=tuple(os.fspath(path) for path in options.profiles),
        dims=dict(options.dims or {}),
        shapes=dict(options.shapes or {}),
        rules=None if options.rules is None else os.fspath(options.rules),
    )
