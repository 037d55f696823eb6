"""What a front was made of, and the command that makes it again, from the arguments given."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator, Mapping
from inspect import signature
from typing import Any

from parapipe.formats.front import Inputs
from parapipe.graph.given_shapes import shape_text

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
    idle = _idle(given)
    for name, option in VALUES.items():
        if given[name] != defaults[name] and name not in idle:
            words += [option, f"{given[name]}"]
    words += [option for name, option in FLAGS.items() if given[name]]
    words += _repeated(given)
    return shlex.join(words)


def inputs_of(given: Mapping[str, Any]) -> Inputs:
    """Return what costs depend on, from all arguments of `api.map_model` by name."""
    return Inputs(
        platform=os.fspath(given["platform"]),
        profiles=tuple(os.fspath(path) for path in given["profiles"]),
        dims=dict(given["dims"] or {}),
        shapes=dict(given["shapes"] or {}),
        rules=None if given["rules"] is None else os.fspath(given["rules"]),
    )


def _idle(given: Mapping[str, Any]) -> frozenset[str]:
    """Return arguments that say nothing beside the others; the command refuses them."""
    idle = set() if given["dvfs"] else {"dvfs_points"}
    return frozenset(idle if "energy" in given["objectives"] else {*idle, "energy_resolution"})


def _repeated(given: Mapping[str, Any]) -> Iterator[str]:
    for name, size in (given["dims"] or {}).items():
        yield from ("--dim", f"{name}={size}")
    for name, shape in (given["shapes"] or {}).items():
        yield from ("--shape", f"{name}={shape_text(shape)}")
    for path in given["profiles"]:
        yield from ("--profile", f"{path}")
