"""Mappers by name. A new one is a new function, and a line here or an entry point of a package.

One that is in no package is named MODULE:FUNCTION; the module is found as Python finds it.
"""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module
from inspect import signature
from typing import TYPE_CHECKING, cast

from parapipe.errors import MappingError
from parapipe.files.plug_ins import Registry

if TYPE_CHECKING:
    from parapipe.solvers.schedule import Mapper


def _misfit(mapper: object) -> str:
    if not callable(mapper):
        return "is no function"
    try:
        signature(mapper).bind(None, time_limit_s=1.0, seed=0)
    except TypeError as error:
        return f"cannot be called as mapper(problem, time_limit_s=…, seed=…) ({error})"
    return ""


# Names, so that listing the mappers loads no solver.
MAPPERS = Registry(
    "mapper",
    "parapipe.mappers",
    {
        "auto": "parapipe.solvers.auto:map",
        "coarse": "parapipe.solvers.coarse:map",
        "cpop": "parapipe.solvers.lists:cpop",
        "fine": "parapipe.solvers.fine.mapper:map",
        "fine_milp": "parapipe.reference_mappers.fine_milp:map",
        "heft": "parapipe.solvers.lists:heft",
        "heft_cpop": "parapipe.solvers.lists:heft_cpop",
        "layer_switched": "parapipe.reference_mappers.layer_switched:map",
        "peft": "parapipe.solvers.lists:peft",
        "streams": "parapipe.solvers.streams:map",
    },
    MappingError,
    _misfit,
)
# With these a search also gets schedules that are longer: such as use all processors, and with
# energy as an objective such as take less of it.
_PROVING = frozenset({"auto", "fine"})


def mapper(name: str) -> Mapper:
    """Return the mapper of that name.

    Raises
    ------
    MappingError
        If there is none; lists the names there are.
    """
    check_name(name)
    return _import_mapper(name) if is_own(name) else cast("Mapper", MAPPERS.load(name))


def check_name(name: str) -> None:
    """Raise the error of `mapper` if there is no mapper of that name; import none of parapipe's."""
    if is_own(name):
        _import_mapper(name)
    elif not MAPPERS.has(name):
        names = MAPPERS.names()
        close = get_close_matches(name, names, 1)
        meant = f"; did you mean '{close[0]}'?" if close else ""
        raise MappingError(
            f"there is no mapper '{name}'; choose one of {', '.join(names)}, or name one of your "
            f"own as MODULE:FUNCTION{meant}"
        )
    elif name not in MAPPERS.own:
        MAPPERS.load(name)


def is_own(name: str) -> bool:
    """Tell whether a name is of the form MODULE:FUNCTION: a user's own mapper."""
    module, _, function = name.partition(":")
    return function.isidentifier() and all(map(str.isidentifier, module.split(".")))


def _import_mapper(name: str) -> Mapper:
    module, _, function = name.partition(":")
    try:
        loaded = getattr(import_module(module), function, None)
    except ImportError as error:
        raise MappingError(
            f"the mapper '{name}' cannot be imported ({error}); put its folder on PYTHONPATH"
        ) from error
    if not callable(loaded):
        raise MappingError(f"the mapper '{name}': module {module} has no function '{function}'")
    return cast("Mapper", loaded)


def proves_shortest(name: str) -> bool:
    """Tell whether a mapper proves that no schedule is shorter than its own."""
    return name in _PROVING
