"""Strategies by name. A new one is one file, and a line here or an entry point of a package.

One that is in no package is named MODULE:CLASS; the module is found as Python finds it.
"""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, Final, cast

from parapipe.errors import StrategyError
from parapipe.files.plug_ins import Registry
from parapipe.strategies.failures import FAILURES, call_of, describe_error

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


def strategy(reference: str | type) -> tuple[str, type[Strategy]]:
    """Return a strategy's name and class, given its name, MODULE:CLASS, or the class itself.

    Raises
    ------
    StrategyError
        If there is none, or it lacks what a strategy has.
    """
    if isinstance(reference, type):
        return _check_members(f"{reference.__module__}:{reference.__qualname__}", reference)
    if ":" not in reference:
        if STRATEGIES.has(reference):
            return _check_members(reference, STRATEGIES.load(reference))
        names = STRATEGIES.names()
        close = get_close_matches(reference, names, 1)
        meant = f"; did you mean '{close[0]}'?" if close else ""
        raise StrategyError(
            f"there is no strategy '{reference}'; choose one of {', '.join(names)}, or name "
            f"one of your own as MODULE:CLASS{meant}"
        )
    module, _, wanted = reference.partition(":")
    try:
        member = getattr(import_module(module), wanted, None)
    except FAILURES as error:
        lacks = isinstance(error, ModuleNotFoundError) and f"{module}.".startswith(f"{error.name}.")
        raise StrategyError(
            f"the strategy '{reference}' cannot be imported ({describe_error(error)})"
            f"{'; put its folder on PYTHONPATH' if lacks else ''}"
        ) from error
    if not isinstance(member, type):
        raise StrategyError(f"the strategy '{reference}': module {module} has no class '{wanted}'")
    return _check_members(reference, member)


def check_several(name: str, chosen: type[Strategy], plans: int) -> None:
    """Raise a StrategyError if a strategy cannot take the work of so many plans."""
    if plans == 0:
        raise StrategyError("there is no plan to run: give one or more")
    if plans > 1 and chosen.follows_plan:
        raise StrategyError(
            f"the strategy '{name}' follows one plan, and {plans} are given: take ready-pool, or "
            "another one that follows none"
        )


def _check_members(name: str, candidate: type) -> tuple[str, type[Strategy]]:
    with call_of(name, "schedule or follows_plan"):
        lacking = [each for each in ("schedule", "follows_plan") if not hasattr(candidate, each)]
    if lacking:
        raise StrategyError(
            f"the strategy {STRATEGIES.label(name)} has no {' and no '.join(lacking)}: "
            "docs/strategies.md says what a strategy has"
        )
    return name, cast("type[Strategy]", candidate)
