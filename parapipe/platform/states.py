"""A platform as it is cold, or in long runs."""

from __future__ import annotations

from collections.abc import Iterator

from parapipe.errors import PlatformError
from parapipe.platform.platform import Platform
from parapipe.platform.thermal_state import State


def in_state(platform: Platform, state: State | None = None) -> Platform:
    """Return the platform in a state.

    In long runs, processors are at their sustained clocks, and no faster point is theirs.

    Parameters
    ----------
    state
        None: the one that its file says.

    Raises
    ------
    PlatformError
        If it is to be in long runs, and nothing is said of them.
    """
    state = state or platform.state
    if state == "cold":
        return platform if platform.state == state else platform.model_copy(update={"state": state})
    says = platform.power_budget is not None or platform.state == "sustained"
    if not says and all(p.clock.sustained_frequency_hz is None for p in platform.processors):
        raise PlatformError(
            f"platform '{platform.name}' says nothing of long runs: give processors their "
            "clock.sustained_frequency_hz, or a power_budget; see docs/co-runs.md"
        )
    processors = tuple(p.sustained() for p in platform.processors)
    sustained = platform.model_copy(update={"state": state, "processors": processors})
    sustained._with_controllers = platform._with_controllers
    return sustained


def unknown_clocks(platform: Platform) -> Iterator[str]:
    """Yield a sentence for each processor whose times at its sustained clock must be measured."""
    for each in platform.processors:
        clock = each.clock
        if clock.scaling or clock.sustained_frequency_hz in (None, clock.default_frequency_hz):
            continue
        yield (
            f"'{each.name}' states a sustained_frequency_hz and no clock.scaling, so its times in "
            "long runs are those that a profile has at that frequency; add clock.scaling for others"
        )
