"""Options of `map` for several shapes of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from parapipe.cli.options import A_DIMENSION, DIMENSION, by_name, read_dimension, read_shape
from parapipe.cli.output import Row

_A_SHAPE_SET = "prefill:sequence_length=512,past_sequence_length=0"
_A_MIX = "prefill=1,decode=200"


def _dimensions(text: str) -> int | tuple[int, ...]:
    """Return the value of a dimension, or several: one for each shape."""
    values = tuple(map(read_dimension, text.split(",")))
    return values[0] if len(values) == 1 else values


def _read_sizes(text: str) -> dict[str, Any]:
    """Return what makes a shape: dimensions, and shapes of inputs, which have an x or a type."""
    sizes: dict[str, Any] = {}
    for each in text.split(","):
        name, equals, value = each.rpartition("=")
        if not (equals and name) or name in sizes:
            raise ValueError
        sizes[name] = read_shape(value) if {"x", ":"} & {*value} else read_dimension(value)
    return sizes


def _shape_sets(
    ctx: click.Context, param: click.Parameter, values: Sequence[str]
) -> dict[str, dict[str, Any]]:
    sets: dict[str, dict[str, Any]] = {}
    for value in values:
        name, colon, text = value.partition(":")
        try:
            sizes = _read_sizes(text) if name and colon else {}
        except ValueError:
            sizes = {}
        if not sizes:
            wrong = f"'{value}' is not NAME:SIZE=VALUE,SIZE=VALUE, as in {_A_SHAPE_SET}"
            raise click.BadParameter(wrong, ctx, param)
        if name in sets:
            raise click.BadParameter(f"the shape '{name}' is given twice", ctx, param)
        sets[name] = sizes
    return sets


def _mix(
    ctx: click.Context, param: click.Parameter, values: Sequence[str]
) -> dict[str, Any] | None:
    take = by_name(read_dimension, f"NAME=NUMBER,NAME=NUMBER, as in {_A_MIX}")
    return take(ctx, param, [each for value in values for each in value.split(",")]) or None


def split_lists(dims: Mapping[str, Any], shape_sets: Row) -> tuple[Row, Row]:
    """Return dimensions of one value, and the shapes that a list of values stands for.

    A list of the dimension `sequence` stands for shapes called sequence-128, sequence-512, ...
    """
    lists = {name: each for name, each in dims.items() if isinstance(each, tuple)}
    if not lists:
        return {**dims}, shape_sets
    if len(lists) > 1 or shape_sets:
        raise click.UsageError(
            "one --dim alone may have several values; say shapes that differ in more by "
            "--shape-set NAME:SIZE=VALUE,SIZE=VALUE"
        )
    ((name, values),) = lists.items()
    single = {key: each for key, each in dims.items() if key not in lists}
    return single, {f"{name}-{value}": {name: value} for value in values}


SHAPE_SETS: dict[str, Any] = {
    "section": "model", "metavar": "NAME:SIZE=VALUE,...", "callback": _shape_sets,
    "example": f"{_A_SHAPE_SET} or decode:input_ids=1x1",
}  # fmt: skip
MIX: dict[str, Any] = {
    "section": "model", "metavar": "NAME=NUMBER,...", "callback": _mix,
    "example": f"{_A_MIX} or, of buckets, 100=5,300=2",
}  # fmt: skip
DIMS: dict[str, Any] = {
    "metavar": "NAME=VALUE[,VALUE...]",
    "callback": by_name(_dimensions, f"{DIMENSION}, or several, as in sequence=128,512,2048"),
    "example": f"{A_DIMENSION}. Several values are shapes of their own, as in "
    "sequence=128,512,2048",
}
"""Settings of click for the options."""
