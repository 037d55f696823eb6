"""Options and arguments that several commands share, and the values that they take."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from parapipe.errors import ParapipeError

Shape = tuple[int, ...]
_QUANTITY = re.compile(r"\s*(-?[0-9.]+(?:[eE][-+]?[0-9]+)?)\s*([A-Za-zµ]*)\s*")
LONGEST_NUMBER = 18  # digits; an ONNX dimension is a signed 64-bit integer


class _File(click.Path):
    """A path that is not empty, as that of a variable of the shell that is not set."""

    def convert(
        self,
        value: str | PathLike[str],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> str | bytes | PathLike[str]:
        if value == "":
            self.fail("the path is empty", param, ctx)
        return super().convert(value, param, ctx)


FILE = _File(path_type=Path)
json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document and nothing else."
)
_TRACE = "Write a trace for chrome://tracing and ui.perfetto.dev."
trace_option = click.option("--trace", type=FILE, metavar="FILE", help=_TRACE)
quiet_option = click.option("--quiet", is_flag=True, help="Show no progress.")


def explicit_options() -> frozenset[str]:
    """Return the names of the options that the user gave."""
    context = click.get_current_context()
    return frozenset(
        name
        for name in context.params
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    )


class Name(click.ParamType):  # type: ignore[type-arg] # older clicks take none
    """A name; help lists all there are, and one that is none of them is a usage error.

    Functions of a module of `parapipe.api`, given by name, list the names and refuse a wrong one.
    """

    name = "name"

    def __init__(self, module: str, names: str, check: str) -> None:
        self.module, self.names, self.check = f"parapipe.api.{module}", names, check

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        """Return all names; asked for by --help only."""
        return f"[{'|'.join(getattr(import_module(self.module), self.names)())}]"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Take a name, or fail with those there are."""
        if ":" in value:  # a user's own, perhaps in the working folder
            sys.path.insert(0, str(Path.cwd()))
        try:
            getattr(import_module(self.module), self.check)(value)
        except ParapipeError as error:
            self.fail(str(error), param, ctx)
        return value


def by_name(read: Callable[[str], object], form: str) -> Callable[..., dict[str, Any]]:
    """Return what reads values of the form NAME=TEXT; `read` raises ValueError at a wrong text."""

    def take(
        ctx: click.Context, param: click.Parameter, values: Sequence[str]
    ) -> dict[str, object]:
        values_by_name: dict[str, tuple[object, str]] = {}
        for value in values:
            name, _, text = value.rpartition("=")
            try:
                each = read(text)
            except ValueError:
                name = ""
            if not name:
                raise click.BadParameter(f"'{value}' is not {form}", ctx, param)
            earlier, as_text = values_by_name.get(name, (each, text))
            if earlier != each:
                twice = f"'{name}' is given twice, as {as_text} and as {text}: say which"
                raise click.BadParameter(twice, ctx, param)
            values_by_name[name] = each, text
        return {name: each for name, (each, _) in values_by_name.items()}

    return take


def read_dimension(text: str) -> int:
    """Return a whole number of at least 0; ValueError if it is none."""
    if not (text.isascii() and text.isdigit() and len(text) <= LONGEST_NUMBER):
        raise ValueError
    return int(text)


def _read_count(text: str) -> int:
    try:
        if count := read_dimension(text):
            return count
    except ValueError:
        pass
    raise ValueError(f"'{text}' is not a whole number of at least 1, as in 8")


def read_shape(text: str) -> Shape | tuple[str, Shape]:
    """Return a shape, with a data type if it has one before it; ValueError if it is none."""
    dtype, typed, sizes = text.lower().rpartition(":")
    if typed and not dtype:
        raise ValueError
    shape = tuple(map(read_dimension, sizes.split("x")))
    return (dtype, shape) if typed else shape


def number(text: str) -> float:
    """Return the number that a text says; NaN, which fits no bounds, if it says none."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def _read_share(text: str) -> float:
    share = number(text[:-1]) / 100 if text.endswith("%") else number(text)
    if not 0 <= share < 1:
        raise ValueError
    return share


def _read_percent(text: str) -> float:
    """Return a share as in 5% or 0.05; ValueError says what is wrong."""
    try:
        return _read_share(text)
    except ValueError:
        raise ValueError(f"'{text}' is not a share below 100 %, as in 5%") from None


def _jitter(ctx: click.Context, param: click.Parameter, value: str) -> float:
    try:
        return _read_percent(value)
    except ValueError as error:
        raise click.BadParameter(f"{error}", ctx, param) from None


def _read_quantity(text: str, units: Mapping[str, float], example: str) -> float:
    """Return a positive number with a unit in the base unit; ValueError says what is wrong."""
    match = _QUANTITY.fullmatch(text)
    size, unit = match.groups() if match else ("", "?")
    if match and not number(size) > 0:
        raise ValueError(f"'{text}' is not positive and finite, as {example} is")
    if match and not unit and "" not in units:
        first, second = (f"{size}{each}" for each in list(units)[:2])
        raise ValueError(f"'{text}' has no unit: give one, as in {first} or {second}")
    if unit not in units:
        names = " or ".join(filter(None, units))
        unit_text = f" in {names}" if names else ""
        raise ValueError(f"'{text}' is not a number{unit_text}, as in {example}")
    if not 0 < (value := number(size) * units[unit]) < math.inf:
        raise ValueError(f"'{text}' is not positive and finite, as {example} is")
    return value


_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6}
_LIMITS = {"": 1.0, "s": 1.0, "min": 60.0, "h": 3600.0}
_BYTES = {
    "MB": 1e6, "GB": 1e9, "kB": 1e3, "B": 1.0, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30
}  # fmt: skip
_QUANTITIES: Mapping[str, tuple[Mapping[str, float], str]] = {
    "limit": (_LIMITS, "TIME"),
    "time": (_SECONDS, "TIME"),
    "rate": ({"": 1.0, "fps": 1.0}, "FPS"),
    "tokens": ({"": 1.0}, "NUMBER"),
    "energy": ({"J": 1.0, "mJ": 1e-3}, "ENERGY"),
    "power": ({"W": 1.0, "mW": 1e-3}, "POWER"),
    "memory": (_BYTES, "SIZE"),
}
"""Units of quantities, each in the base unit, and what help calls them."""


def quantity_form(quantity: str, example: str) -> dict[str, Any]:
    """Return the settings of a positive number with a unit, which is told in the base unit.

    Parameters
    ----------
    quantity
        What it is a number of: a key of `_QUANTITIES`.
    """
    units, metavar = _QUANTITIES[quantity]

    def take(ctx: click.Context, param: click.Parameter, value: object) -> float | None:
        if value is None or isinstance(value, float):
            return value
        try:
            return _read_quantity(str(value), units, example)
        except ValueError as error:
            raise click.BadParameter(f"{error}", ctx, param) from None

    return {
        "type": click.UNPROCESSED, "metavar": metavar, "show_default": False,
        "callback": take, "example": example,
    }  # fmt: skip


def _for_all_or_by_name(
    read: Callable[[str], float], what: str, whose: str, every: str, example: str
) -> Callable[..., float | dict[str, float] | None]:
    """Return what reads one value for all, or values of the form NAME=VALUE; None if none is given.

    Parameters
    ----------
    read
        Raises a ValueError that says what is wrong with a value.
    what, whose, every
        What a value is, of what one is named, and all of these: share, figure, all figures.
    """

    def take(
        ctx: click.Context, param: click.Parameter, values: Sequence[str]
    ) -> float | dict[str, float] | None:
        named: dict[str, float] = {}
        for value in values:
            name, equals, text = value.rpartition("=")
            if equals and not name:
                wrong = f"'{value}' names no {whose}: give {example} or NAME={example}"
                raise click.BadParameter(wrong, ctx, param)
            try:
                each = read(text)
            except ValueError as error:
                raise click.BadParameter(f"{error}", ctx, param) from None
            if named.setdefault(name, each) != each:
                twice = f"'{name}'" if name else f"the {what} of {every}"
                raise click.BadParameter(f"{twice} is given twice: say which", ctx, param)
        if "" in named and len(named) > 1:
            wrong = f"give one {what} for {every}, or {what}s by name, not both"
            raise click.BadParameter(wrong, ctx, param)
        return named.get("", named or None)

    return take


MAX_LOSS: dict[str, Any] = {
    "type": str, "metavar": "SHARE|FIGURE=SHARE", "multiple": True,
    "callback": _for_all_or_by_name(_read_percent, "share", "figure", "all figures", "2%"),
    "help": "Exit with 1 if the best latency, throughput, energy or memory is worse by more than "
    "this, as in 2% or throughput=2%.",
}  # fmt: skip
"""Settings of click for what a new front may be worse by."""


def _by_model(read: Callable[[str], float], metavar: str, example: str) -> dict[str, Any]:
    """Return the settings of positive numbers by the names of models."""

    def positive(text: str) -> float:
        if not 0 < (value := read(text)) < math.inf:
            raise ValueError
        return value

    return {
        "metavar": metavar,
        "callback": by_name(positive, f"{metavar} with a positive number, as in {example}"),
        "example": example,
    }  # fmt: skip


_DISTURBED = "PROCESSOR=SHARE with a share below 100 %, as in big=50%"


def _name(text: str) -> str:
    if not text:
        raise ValueError
    return text


_A_STATE = "past_0=present_0"
_A_PIN = "conv1=npu or 'head/*=gpu'"
A_DIMENSION, _A_SHAPE = "batch=1", "data=1x3x224x224 or result=float32:1x3x224x224"
DIMENSION = f"NAME=VALUE with a whole number of at least 0, as in {A_DIMENSION}"
_SHAPE = f"NAME=SHAPE with whole numbers of at least 0, as in {_A_SHAPE}"
FORMS: dict[str, dict[str, Any]] = {
    "cache": {"is_flag": False, "type": FILE, "default": None},
    "platform": {"type": str},
    "model": {"type": str},
    "strategy": {"type": Name("simulate", "strategy_names", "check_strategy")},
    "mapper": {"type": Name("map", "mapper_names", "check_mapper")},
    "search": {"type": Name("map", "search_names", "check_search"), "metavar": "NAME"},
    "dims": {
        "metavar": "NAME=VALUE", "callback": by_name(read_dimension, DIMENSION),
        "example": A_DIMENSION,
    },
    "shapes": {
        "metavar": "NAME=1x3x224x224", "callback": by_name(read_shape, _SHAPE), "example": _A_SHAPE,
    },
    "states": {
        "metavar": "INPUT=OUTPUT",
        "callback": by_name(_name, f"INPUT=OUTPUT, as in {_A_STATE}; a chip's is --thermal-state"),
        "example": _A_STATE,
    },
    "pins": {
        "metavar": "OPERATOR|PATTERN=PROCESSOR",
        "callback": by_name(_name, f"OPERATOR=PROCESSOR, as in {_A_PIN}"),
        "example": _A_PIN,
    },
    "rates": {
        "metavar": "FPS|NAME=FPS", "callback": _for_all_or_by_name(
            lambda text: _read_quantity(text, _QUANTITIES["rate"][0], "30"),
            "rate", "model", "a single model", "30",
        ),
        "example": "30 or, of several models, detect=30",
    },
    "deadline_s": _by_model(
        lambda text: _read_quantity(text.lower(), _SECONDS, "40ms"), "NAME=TIME", "detect=40ms"
    ),
    "priority": _by_model(number, "NAME=NUMBER", "detect=2"),
    "jitter": {"type": str, "default": "0%", "metavar": "SHARE", "callback": _jitter},
    "disturb": {
        "metavar": "PROCESSOR=SHARE", "callback": by_name(_read_share, _DISTURBED),
    },
    "budget_s": quantity_form("limit", "60s"),
    "compile_time_s": quantity_form("limit", "10min"),
    "patience_s": quantity_form("limit", "60s"),
    "p99_latency_s": quantity_form("time", "45ms"),
    "p99_period_s": quantity_form("time", "20ms"),
    "max_memory_bytes": {
        "metavar": "SIZE|NAME=SIZE", "callback": _for_all_or_by_name(
            lambda text: _read_quantity(text, _BYTES, "64MB"),
            "size", "memory", "all memories together", "64MB",
        ),
        "example": "64MB or dram=64MB",
    },
    "memory_limit_bytes": quantity_form("memory", "2GB"),
    "max_segments": {
        "metavar": "NUMBER|NAME=NUMBER", "callback": _for_all_or_by_name(
            _read_count, "number", "processor", "every processor", "8"
        ),
        "example": "8 or npu=8",
    },
}  # fmt: skip
"""Settings of click for parameters that the command line takes in a form of its own."""
