"""Mappers by name. A new one is a new function, and a line here.

One that is no part of parapipe is named MODULE:FUNCTION; the module is found as Python finds it.
"""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, cast

from parapipe.errors import MappingError

if TYPE_CHECKING:
    from parapipe.mapping.schedule import Mapper

# Names, so that listing the mappers loads no solver.
_FUNCTIONS = {
    "auto": "parapipe.mapping.auto:map",
    "coarse": "parapipe.mapping.coarse:map",
    "cpop": "parapipe.mapping.lists:cpop",
    "fine": "parapipe.mapping.fine.mapper:map",
    "fine_milp": "parapipe.reference_mappers.fine_milp:map",
    "heft": "parapipe.mapping.lists:heft",
    "heft_cpop": "parapipe.mapping.lists:heft_cpop",
    "layer_switched": "parapipe.reference_mappers.layer_switched:map",
    "peft": "parapipe.mapping.lists:peft",
    "streams": "parapipe.mapping.streams.mapper:map",
}
# With these a search also gets schedules that are longer: such as use all processors, and with
# energy as an objective such as take less of it.
_PROVING = frozenset({"auto", "fine"})


def names() -> tuple[str, ...]:
    """Names of all mappers, sorted."""
    return tuple(sorted(_FUNCTIONS))


def mapper(name: str) -> Mapper:
    """Return the mapper of that name.

    Raises
    ------
    MappingError
        If there is none; lists the names there are.
    """
    check_name(name)
    return _imported(_FUNCTIONS.get(name, name))


def package(name: str) -> str:
    """Return the name of the package that a mapper of parapipe's is in."""
    return _FUNCTIONS[name].partition(":")[0].rpartition(".")[0]


def check_name(name: str) -> None:
    """Raise the error of `mapper` if there is no mapper of that name; import own ones only."""
    if is_own(name):
        _imported(name)
    elif name not in _FUNCTIONS:
        close = get_close_matches(name, names(), 1)
        meant = f"; did you mean '{close[0]}'?" if close else ""
        raise MappingError(
            f"there is no mapper '{name}'; choose one of {', '.join(names())}, or name one of your "
            f"own as MODULE:FUNCTION{meant}"
        )


def is_own(name: str) -> bool:
    """Tell whether a name is of the form MODULE:FUNCTION: a user's own mapper."""
    module, _, function = name.partition(":")
    return function.isidentifier() and all(map(str.isidentifier, module.split(".")))


def _imported(name: str) -> Mapper:
    module, _, function = name.partition(":")
    try:
        found = getattr(import_module(module), function, None)
    except ImportError as error:
        raise MappingError(
            f"the mapper '{name}' cannot be imported ({error}); put its folder on PYTHONPATH"
        ) from error
    if not callable(found):
        raise MappingError(f"the mapper '{name}': module {module} has no function '{function}'")
    return cast("Mapper", found)


def proves_shortest(name: str) -> bool:
    """Tell whether a mapper proves that no schedule is shorter than its own."""
    return name in _PROVING
