"""Strategies by name. A new one is one file, and a line here or an entry point of a package.

One that is in no package is named MODULE:CLASS; the module is found as Python finds it.
"""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, Final, cast

from parapipe.errors import StrategyError
from parapipe.files.plug_ins import Registry
from parapipe.strategies.failures import FAILURES, called, told

if TYPE_CHECKING:
    from parapipe.strategies.strategy import Strategy

PLAN: Final = "plan"
STRATEGIES = Registry(
    "strategy",
    "parapipe.strategies",
    {
        "barriers": "parapipe.strategies.order_of_plan:Barriers",
        "micro-batches": "parapipe.strategies.micro_batches:MicroBatches",
        PLAN: "parapipe.strategies.order_of_plan:Follow",
        "ready-pool": "parapipe.strategies.order_of_plan:ReadyPool",
        "steal": "parapipe.strategies.steal:Steal",
        "streams": "parapipe.strategies.streams:Streams",
    },
    StrategyError,
    lambda strategy: "" if isinstance(strategy, type) else "is no class",
)


def strategy(given: str | type) -> tuple[str, type[Strategy]]:
    """Return a strategy's name and class, given its name, MODULE:CLASS, or the class itself.

    Raises
    ------
    StrategyError
        If there is none, or it lacks what a strategy has.
    """
    if isinstance(given, type):
        return _checked(f"{given.__module__}:{given.__qualname__}", given)
    if ":" not in given:
        if STRATEGIES.has(given):
            return _checked(given, STRATEGIES.load(given))
        names = STRATEGIES.names()
        close = get_close_matches(given, names, 1)
        meant = f"; did you mean '{close[0]}'?" if close else ""
        raise StrategyError(
            f"there is no strategy '{given}'; choose one of {', '.join(names)}, or name "
            f"one of your own as MODULE:CLASS{meant}"
        )
    module, _, wanted = given.partition(":")
    try:
        found = getattr(import_module(module), wanted, None)
    except FAILURES as error:
        lacks = isinstance(error, ModuleNotFoundError) and f"{module}.".startswith(f"{error.name}.")
        raise StrategyError(
            f"the strategy '{given}' cannot be imported ({told(error)})"
            f"{'; put its folder on PYTHONPATH' if lacks else ''}"
        ) from error
    if not isinstance(found, type):
        raise StrategyError(f"the strategy '{given}': module {module} has no class '{wanted}'")
    return _checked(given, found)


def check_several(name: str, found: type[Strategy], plans: int) -> None:
    """Raise a StrategyError if a strategy cannot take the work of so many plans."""
    if plans == 0:
        raise StrategyError("there is no plan to run: give one or more")
    if plans > 1 and found.follows_plan:
        raise StrategyError(
            f"the strategy '{name}' follows one plan, and {plans} are given: take ready-pool, or "
            "another one that follows none"
        )


def _checked(name: str, found: type) -> tuple[str, type[Strategy]]:
    with called(name, "schedule or follows_plan"):
        lacking = [each for each in ("schedule", "follows_plan") if not hasattr(found, each)]
    if lacking:
        raise StrategyError(
            f"the strategy {STRATEGIES.label(name)} has no {' and no '.join(lacking)}: "
            "docs/strategies.md says what a strategy has"
        )
    return name, cast("type[Strategy]", found)
