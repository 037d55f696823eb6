"""Options that several commands share, and the forms their values take."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from parapipe.errors import MappingError

Shape = tuple[int, ...]
Command = TypeVar("Command", bound=Callable[..., Any])
LONGEST_NUMBER = 18  # digits; an ONNX dimension is a signed 64-bit integer


def dims_given(ctx: click.Context, param: click.Parameter, values: Sequence[str]) -> dict[str, int]:
    """Read values of the form NAME=VALUE."""
    dims: dict[str, int] = {}
    for value in values:
        name, _, number = value.rpartition("=")
        if not name or not _is_dimension(number):
            raise click.BadParameter(
                f"'{value}' is not NAME=VALUE with a whole number, as in batch=1", ctx, param
            )
        if dims.setdefault(name, int(number)) != int(number):
            raise _twice(name, dims[name], number, ctx, param)
    return dims


def shapes_given(
    ctx: click.Context, param: click.Parameter, values: Sequence[str]
) -> dict[str, Shape | tuple[str, Shape]]:
    """Read values of the forms INPUT=1x3x224x224 and RESULT=float32:1x3x224x224."""
    shapes: dict[str, Shape | tuple[str, Shape]] = {}
    told: dict[str, str] = {}
    for value in values:
        name, _, text = value.rpartition("=")
        dtype, typed, sizes = text.lower().rpartition(":")
        numbers = sizes.split("x")
        if not name or bool(typed) != bool(dtype) or not all(map(_is_dimension, numbers)):
            raise click.BadParameter(
                f"'{value}' is not NAME=SHAPE with whole numbers, as in data=1x3x224x224 or "
                "result=float32:1x3x224x224",
                ctx,
                param,
            )
        shape = tuple(map(int, numbers))
        given = (dtype, shape) if typed else shape
        if shapes.setdefault(name, given) != given:
            raise _twice(name, told[name], text, ctx, param)
        told[name] = text
    return shapes


def _twice(
    name: str, first: object, second: object, ctx: click.Context, param: click.Parameter
) -> click.BadParameter:
    return click.BadParameter(
        f"'{name}' is given twice, as {first} and as {second}: say which", ctx, param
    )


def seconds_given(ctx: click.Context, param: click.Parameter, value: float) -> float:
    """Take a positive finite number of seconds."""
    if not (0 < value < math.inf):
        raise click.BadParameter(f"'{value}' is not a positive number of seconds", ctx, param)
    return value


class MapperName(click.ParamType):  # type: ignore[type-arg] # older clicks take none
    """The name of a mapper; help lists all there are."""

    name = "mapper"

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        """Return all names; asked for by --help only."""
        from parapipe import api

        return f"[{'|'.join(api.mapper_names())}]"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Take a name, or fail with those there are."""
        from parapipe import api

        if ":" in value:  # a user's own, perhaps in the working folder
            sys.path.insert(0, str(Path.cwd()))
        try:
            api.check_mapper(value)
        except MappingError as error:
            self.fail(str(error), param, ctx)
        return value


def share_given(ctx: click.Context, param: click.Parameter, value: float) -> float:
    """Take a share, as in 0.05 for 5 %."""
    if not 0 <= value <= 1:
        raise click.BadParameter(f"'{value}' is not a share between 0 and 1", ctx, param)
    return value


def percent_given(ctx: click.Context, param: click.Parameter, value: str) -> float:
    """Take a share as in 5% or 0.05, less than 100 %."""
    text, scale = (value[:-1], 100) if value.endswith("%") else (value, 1)
    try:
        share = float(text) / scale
    except ValueError:
        share = math.nan
    if not 0 <= share < 1:
        raise click.BadParameter(f"'{value}' is not a share below 100 %, as in 5%", ctx, param)
    return share


def contention_given(ctx: click.Context, param: click.Parameter, value: str | None) -> float | bool:
    """Take nothing, the word platform, or a positive number."""
    if value is None or value == "platform":
        return value is not None
    try:
        share = float(value)
    except ValueError:
        share = math.nan
    if not 0 < share < math.inf:
        raise click.BadParameter(
            f"'{value}' is not a positive number, as in 0.3; write PLAN first, then --contention",
            ctx,
            param,
        )
    return share


def _is_dimension(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= LONGEST_NUMBER and int(text) > 0


def model_options(command: Command) -> Command:
    """Add --dim, --shape and --rules, which say what a model leaves open."""
    shape = click.option(
        "--shape",
        "shapes",
        metavar="NAME=1x3x224x224",
        multiple=True,
        callback=shapes_given,
        help="Give an input its whole shape, or a result that depends on values; "
        "RESULT=float32:1x3x224x224 gives a data type, too. May be repeated.",
    )
    dim = click.option(
        "--dim",
        "dims",
        metavar="NAME=VALUE",
        multiple=True,
        callback=dims_given,
        help="Give a named dimension its value; may be repeated.",
    )
    rules = click.option(
        "--rules",
        type=click.Path(path_type=Path),
        help="YAML file that says the work of operators that parapipe does not know.",
    )
    return dim(shape(rules(command)))


def json_option(command: Command) -> Command:
    """Add --json."""
    return click.option(
        "--json", "as_json", is_flag=True, help="Print one JSON document and nothing else."
    )(command)
