"""What a verb may be told, for a command line: from its signature, its types and its docstring."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from parapipe.api.checked import types_of
from parapipe.files.checked_arguments import Must
from parapipe.pipeline.options import flag, idle_options

__all__ = ["Parameter", "flag", "idle_options", "parameters_of"]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a verb.

    Parameters
    ----------
    type
        bool, int, float, Path or str; of a list, that of its elements.
    bounds
        Of a number.
    choices
        All values there are, if it is a choice.
    default
        None if there is none.
    help
        What the docstring says of it.
    """

    name: str
    type: type
    bounds: Must
    choices: tuple[str, ...]
    repeated: bool
    default: Any
    help: str


def parameters_of(verb: Callable[..., object]) -> dict[str, Parameter]:
    """Return the parameters of a verb, or the fields of a record, by name."""
    types, told = types_of(verb), _described(inspect.getdoc(verb) or "")
    return {
        name: _parameter(name, types[name], parameter.default, told.get(name, ""))
        for name, parameter in inspect.signature(verb).parameters.items()
        if name in types
    }


def _parameter(name: str, hint: object, default: object, told: str) -> Parameter:
    parts = tuple(_parts(hint))
    types = [part for part in parts if isinstance(part, type)]
    known = [each for each in (bool, Path, int, float) if each in types]
    bounds = [part for part in parts if isinstance(part, Must)]
    return Parameter(
        name=name,
        type=known[0] if known else str,
        bounds=bounds[-1] if bounds else Must(""),
        choices=tuple(part for part in parts if isinstance(part, str)),
        repeated=Sequence in [get_origin(part) for part in (hint, *get_args(hint))],
        default=None if default is inspect.Parameter.empty else default,
        help=told,
    )


def _parts(hint: object) -> Iterator[object]:
    """Yield the types, bounds and choices that a type is made of."""
    if get_origin(hint) in (Annotated, Union, UnionType, Literal) or get_origin(hint) in (
        Sequence,
        Mapping,
    ):
        for part in get_args(hint):
            yield from _parts(part)
    else:
        yield hint


def _described(text: str) -> Mapping[str, str]:
    """Return what a docstring says of each parameter, in one line."""
    section = re.search(r"^Parameters\n-+\n(.*?)(?=^\w+\n-+\n|\Z)", text, re.M | re.S)
    told = {}
    entry = r"^(\w.*)\n((?: +.*\n?|\n)+)"
    for names, body in re.findall(entry, section[1] if section else "", re.M):
        words = " ".join(body.split()).replace("`", "")
        told.update(dict.fromkeys(names.split(", "), words))
    return told
