"""The command that makes a front again, from the arguments that it was made with."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping
from inspect import signature
from typing import Any

VALUES = {
    "mapper": "--mapper",
    "granularity": "--granularity",
    "time_limit_s": "--time-limit",
    "objectives": "--objectives",
    "resolution": "--resolution",
    "energy_resolution": "--energy-resolution",
    "dvfs_points": "--dvfs-points",
    "seed": "--seed",
    "rules": "--rules",
}
"""Option of `parapipe map` by argument of `api.map_model`. What changes no figure is left out:
jobs, executor and cache."""
FLAGS = {"dvfs": "--dvfs", "deterministic": "--deterministic"}


def map_command(function: Callable[..., object], given: Mapping[str, Any]) -> str:
    """Return the command as a line for a shell, without options that are at their defaults.

    Parameters
    ----------
    function, given
        `api.map_model` and all its arguments by name.
    """
    defaults = {name: each.default for name, each in signature(function).parameters.items()}
    words = ["parapipe", "map", f"{given['model']}", "--platform", f"{given['platform']}"]
    for name, option in VALUES.items():
        if given[name] != defaults[name]:
            words += [option, f"{given[name]}"]
    words += [option for name, option in FLAGS.items() if given[name]]
    words += _repeated(given)
    return shlex.join(words)


def _repeated(given: Mapping[str, Any]) -> Iterator[str]:
    for name, size in (given["dims"] or {}).items():
        yield from ("--dim", f"{name}={size}")
    for name, shape in (given["shapes"] or {}).items():
        yield from ("--shape", f"{name}={'x'.join(map(str, shape))}")
    for path in given["profiles"]:
        yield from ("--profile", f"{path}")
