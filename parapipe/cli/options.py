"""Options that several commands share, and the forms their values take."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])
LONGEST_NUMBER = 18  # digits; an ONNX dimension is a signed 64-bit integer


def dims_given(ctx: click.Context, param: click.Parameter, values: Sequence[str]) -> dict[str, int]:
    """Read values of the form NAME=VALUE."""
    dims = {}
    for value in values:
        name, _, number = value.rpartition("=")
        if not name or not _is_dimension(number):
            raise click.BadParameter(
                f"'{value}' is not NAME=VALUE with a whole number, as in batch=1", ctx, param
            )
        dims[name] = int(number)
    return dims


def shapes_given(
    ctx: click.Context, param: click.Parameter, values: Sequence[str]
) -> dict[str, tuple[int, ...]]:
    """Read values of the form INPUT=1x3x224x224."""
    shapes = {}
    for value in values:
        name, _, text = value.rpartition("=")
        numbers = text.lower().split("x")
        if not name or not all(_is_dimension(number) for number in numbers):
            raise click.BadParameter(
                f"'{value}' is not INPUT=SHAPE with whole numbers, as in data=1x3x224x224",
                ctx,
                param,
            )
        shapes[name] = tuple(int(number) for number in numbers)
    return shapes


def seconds_given(ctx: click.Context, param: click.Parameter, value: float) -> float:
    """Take a positive finite number of seconds."""
    if not (0 < value < math.inf):
        raise click.BadParameter(f"'{value}' is not a positive number of seconds", ctx, param)
    return value


def share_given(ctx: click.Context, param: click.Parameter, value: float) -> float:
    """Take a share, as in 0.05 for 5 %."""
    if not 0 <= value <= 1:
        raise click.BadParameter(f"'{value}' is not a share between 0 and 1", ctx, param)
    return value


def _is_dimension(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= LONGEST_NUMBER and int(text) > 0


def model_options(command: Command) -> Command:
    """Add --dim, --shape and --rules, which say what a model leaves open."""
    shape = click.option(
        "--shape",
        "shapes",
        metavar="INPUT=1x3x224x224",
        multiple=True,
        callback=shapes_given,
        help="Give an input its whole shape, or a result that depends on values; may be repeated.",
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
