"""What a front was made of, and the command that makes it again, from the options given."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from parapipe.formats.front_inputs import Inputs
from parapipe.pipeline.options import (
    MapOptions,
    flag,
    idle_options,
    option_names,
    option_traits,
)


def map_command(
    model: str | Path | Mapping[str, str], platform: str | Path, options: MapOptions
) -> str:
    """Return the command as a line for a shell, without options that are at their defaults.

    Parameters
    ----------
    model
        Several of them by name.
    """
    left_out = [*idle_options(options.to_dict())]
    models = [f"{model}"]
    if isinstance(model, Mapping):
        models = [f"{name}={each}" for name, each in model.items()]
        left_out += option_names(lambda option: option.several == "no effect")
    words = ["parapipe", "map", *models, "--platform", f"{platform}"]
    changed = {name: each for name, each in options.changed().items() if name not in left_out}
    for name in sorted(changed, key=lambda name: _rank(changed[name])):
        words += _words(name, changed[name])
    return shlex.join(words)


def _rank(value: object) -> int:
    """Return the place of an option: values come first, then flags, then what may be repeated."""
    if isinstance(value, str):
        return 0
    return 2 if isinstance(value, Mapping | Sequence) else value is True


def _words(name: str, value: object) -> Iterator[str]:
    text = option_traits()[name].text
    match value:
        case True:
            yield flag(name)
        case Mapping():
            for key, each in value.items():
                yield from (flag(name), f"{key}={text(each)}")
        case tuple() | list():
            for each in value:
                yield from (flag(name), text(each))
        case _:
            yield from (flag(name), text(value))


def inputs_of(platform: str | Path, options: MapOptions) -> Inputs:
    """Return what costs depend on."""
    return Inputs(
        platform=os.fspath(platform),
        profiles=tuple(os.fspath(path) for path in options.profiles),
        dims=dict(options.dims or {}),
        shapes=dict(options.shapes or {}),
        rules=None if options.rules is None else os.fspath(options.rules),
    )
