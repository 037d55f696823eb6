"""Mappers by name. A new one is a new module with a function `map`, and a line here.

One that is no part of parapipe is named MODULE:FUNCTION; the module is found as Python finds it.
"""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, cast

from parapipe.errors import MappingError

if TYPE_CHECKING:
    from parapipe.mapping.schedule import Mapper

# Names of modules, so that listing the mappers loads no solver.
_MODULES = {
    "auto": "parapipe.mapping.auto",
    "coarse": "parapipe.mapping.coarse",
    "cpop": "parapipe.mapping.cpop",
    "fine": "parapipe.mapping.fine.mapper",
    "fine_milp": "parapipe.mapping.fine_milp",
    "heft": "parapipe.mapping.heft",
    "heft_cpop": "parapipe.mapping.heft_cpop",
    "layer_switched": "parapipe.mapping.layer_switched",
    "peft": "parapipe.mapping.peft",
}
# With these a search also gets schedules that are longer: such as use all processors, and with
# energy as an objective such as take less of it.
_PROVING = frozenset({"auto", "fine"})


def names() -> tuple[str, ...]:
    """Names of all mappers, sorted."""
    return tuple(sorted(_MODULES))


def mapper(name: str) -> Mapper:
    """Return the mapper of that name.

    Raises
    ------
    MappingError
        If there is none; lists the names there are.
    """
    if is_own(name):
        return _own(name)
    check_name(name)
    return cast("Mapper", import_module(_MODULES[name]).map)


def check_name(name: str) -> None:
    """Raise the error of `mapper` if there is no mapper of that name; import own ones only."""
    if is_own(name):
        _own(name)
    elif name not in _MODULES:
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


def _own(name: str) -> Mapper:
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
