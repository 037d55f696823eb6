"""Mappers by name. A new one is a new module with a function `map`, and a line here."""

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
# Those whose schedules are proven shortest; with energy as an objective they also get schedules
# that take longer and less energy.
_TRADING = frozenset({"auto", "fine"})


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
    check_name(name)
    return cast("Mapper", import_module(_MODULES[name]).map)


def check_name(name: str) -> None:
    """Raise the error of `mapper` if there is no mapper of that name; import none."""
    if name not in _MODULES:
        close = get_close_matches(name, names(), 1)
        meant = f"; did you mean '{close[0]}'?" if close else ""
        raise MappingError(
            f"there is no mapper '{name}'; choose one of {', '.join(names())}{meant}"
        )


def trades_energy(name: str) -> bool:
    """Tell whether schedules that take less energy go with a mapper's shortest ones."""
    return name in _TRADING
