"""Options that commands make from what the API's verbs may be told, and the forms values take."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from parapipe.cli.quantities import JOULES, SECONDS, WATTS, Quantity
from parapipe.errors import ParapipeError

if TYPE_CHECKING:
    from parapipe.api.parameters import Parameter

Shape = tuple[int, ...]
Command = TypeVar("Command", bound=Callable[..., Any])
LONGEST_NUMBER = 18  # digits; an ONNX dimension is a signed 64-bit integer
FILE = click.Path(path_type=Path)
DEMANDS = (
    "min_throughput_fps", "max_latency_s", "max_energy_j", "max_power_w", "board", "sustained",
)  # fmt: skip


class VerbCommand(click.Command):
    """A command whose options are made when they are asked for: its verb may take time to load."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the arguments and options, --help included."""
        made = [each() if isinstance(each, partial) else [each] for each in self.params]
        self.params = [each for several in made for each in several]
        return super().get_params(ctx)


def options(verb: str, *names: str, **changes: dict[str, Any]) -> Callable[[Command], Command]:
    """Add to a `VerbCommand` an option for each named parameter of a verb, or field of a record.

    Parameters
    ----------
    verb
        Its name in `parapipe`.
    changes
        Settings of click by parameter, in place of those made from its type; `flag` names it
        otherwise.
    """

    def add(command: Command) -> Command:
        params = command.__dict__.setdefault("__click_params__", [])
        params.append(partial(_options, verb, names, changes))
        return command

    return add


def _options(
    verb: str, names: Sequence[str], changes: Mapping[str, Mapping[str, Any]]
) -> list[click.Parameter]:
    import parapipe
    from parapipe.api.parameters import flag, parameters_of

    known = parameters_of(getattr(parapipe, verb))
    made: list[click.Parameter] = []
    for name in names:
        settings = {"help": known[name].help, **_settings(known[name])}
        settings |= {**_FORMS.get(name, {}), **changes.get(name, {})}
        made.append(click.Option([settings.pop("flag", flag(name)), name], **settings))
    return made


def json_option(command: Command) -> Command:
    """Add --json."""
    return click.option(
        "--json", "as_json", is_flag=True, help="Print one JSON document and nothing else."
    )(command)


def quiet_option(command: Command) -> Command:
    """Add --quiet."""
    return click.option("--quiet", is_flag=True, help="Show no progress.")(command)


def given_options() -> frozenset[str]:
    """Return the names of the options that the user gave."""
    context = click.get_current_context()
    return frozenset(
        name
        for name in context.params
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    )


def _settings(parameter: Parameter) -> dict[str, Any]:
    """Return what click wants to know of an option."""
    bounds = parameter.bounds
    if parameter.choices:
        settings: dict[str, Any] = {"type": click.Choice(parameter.choices)}
    elif parameter.type is bool:
        return {"is_flag": True}
    elif parameter.type is int:
        settings = {"type": click.IntRange(min=None if bounds.ge is None else int(bounds.ge))}
    elif parameter.type is float:
        settings = {"type": _Finite(bounds.gt, bounds.ge, bounds.lt, bounds.le)}
        settings["metavar"] = "SECONDS" if parameter.name.endswith("_s") else "SHARE"
    else:
        settings = {"type": FILE if parameter.type is Path else str}
    if parameter.repeated:
        return {**settings, "multiple": True}
    return {**settings, "default": parameter.default, "show_default": parameter.default is not None}


class _Finite(click.FloatRange):
    """A number between bounds, and no other way to write one."""

    def __init__(
        self, gt: float | None, ge: float | None, lt: float | None, le: float | None
    ) -> None:
        least, most = (ge if gt is None else gt), (le if lt is None else lt)
        super().__init__(least, most, min_open=gt is not None, max_open=lt is not None)

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Take a finite number in the range."""
        number = float(super().convert(value, param, ctx))  # type: ignore[arg-type]
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number


class Name(click.ParamType):  # type: ignore[type-arg] # older clicks take none
    """A name; help lists all there are, and one that is none of them is a usage error.

    Parameters
    ----------
    module, names, check
        The module of `parapipe.api` and its functions that list the names and refuse a wrong one.
    """

    def __init__(self, module: str, names: str, check: str) -> None:
        self.name = "name"
        self._functions = module, names, check

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        """Return all names; asked for by --help only."""
        module, names, _ = self._functions
        return f"[{'|'.join(_function(module, names)())}]"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Take a name, or fail with those there are."""
        module, _, check = self._functions
        if ":" in value:  # a user's own, perhaps in the working folder
            sys.path.insert(0, str(Path.cwd()))
        try:
            _function(module, check)(value)
        except ParapipeError as error:
            self.fail(str(error), param, ctx)
        return value


def _function(module: str, name: str) -> Callable[..., Any]:
    from importlib import import_module

    found: Callable[..., Any] = getattr(import_module(f"parapipe.api.{module}"), name)
    return found


def _dims(ctx: click.Context, param: click.Parameter, values: Sequence[str]) -> dict[str, int]:
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


def _shapes(
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


def _is_dimension(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= LONGEST_NUMBER and int(text) > 0


def _percent(ctx: click.Context, param: click.Parameter, value: str) -> float:
    """Take a share as in 5% or 0.05, less than 100 %."""
    text, scale = (value[:-1], 100) if value.endswith("%") else (value, 1)
    try:
        share = float(text) / scale
    except ValueError:
        share = math.nan
    if not 0 <= share < 1:
        raise click.BadParameter(f"'{value}' is not a share below 100 %, as in 5%", ctx, param)
    return share


_FORMS: dict[str, dict[str, Any]] = {
    "platform": {"type": str},
    "model": {"type": str},
    "mapper": {"type": Name("map", "mapper_names", "check_mapper")},
    "dims": {"type": str, "metavar": "NAME=VALUE", "multiple": True, "callback": _dims},
    "shapes": {"type": str, "metavar": "NAME=1x3x224x224", "multiple": True, "callback": _shapes},
    "jitter": {"type": str, "default": "0%", "metavar": "SHARE", "callback": _percent},
    "min_throughput_fps": {
        "flag": "--min-fps", "type": Quantity({"": 1.0, "fps": 1.0}, "8"), "metavar": "FPS",
        "show_default": False,
    },
    "max_latency_s": {
        "type": Quantity(SECONDS, "150ms"), "metavar": "TIME", "show_default": False
    },
    "max_energy_j": {
        "flag": "--max-energy", "type": Quantity(JOULES, "120mJ"), "metavar": "ENERGY",
        "show_default": False,
    },
    "max_power_w": {
        "flag": "--max-power", "type": Quantity(WATTS, "4W"), "metavar": "POWER",
        "show_default": False,
    },
}  # fmt: skip
"""Forms in which the command line takes some parameters."""
