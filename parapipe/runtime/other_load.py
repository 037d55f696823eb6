"""How much of the machine other programs take, of which times that were measured hold a part.

This file needs the standard library only, so that it can stand beside a runner on a device.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

NOTEWORTHY = 0.05


def busy_s() -> tuple[float, float] | None:
    """Return seconds of cores that all programs have used so far, and this process."""
    try:
        first = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()
        user, nice, system, _idle, _wait, irq, soft, steal = map(int, first[1:9])
    except (OSError, ValueError):
        return None
    own = os.times()
    ticks = user + nice + system + irq + soft + steal
    return ticks / os.sysconf("SC_CLK_TCK"), own.user + own.system


class OtherLoad:
    """Counts from when it is made.

    Parameters
    ----------
    busy_s
        Returns seconds of cores that all programs have used so far, and this process; None if the
        system does not tell.
    clock
        Returns seconds.
    """

    def __init__(
        self,
        busy_s: Callable[[], tuple[float, float] | None] = busy_s,
        clock: Callable[[], float] = perf_counter,
    ) -> None:
        self._busy_s, self._clock = busy_s, clock
        self._begin, self._begin_s = busy_s(), clock()

    def share(self) -> float | None:
        """Return the share of all cores' time that other programs took; None if none tells."""
        begin, end = self._begin, self._busy_s()
        took_s = self._clock() - self._begin_s
        if begin is None or end is None or not took_s:
            return None
        others_s = (end[0] - begin[0]) - (end[1] - begin[1])
        return min(max(others_s / (took_s * (os.cpu_count() or 1)), 0.0), 1.0)


def busy_note(share: float | None) -> str:
    """Return what is to be known of other programs' share; empty if that is nothing."""
    if share is None or share < NOTEWORTHY:
        return ""
    return (
        f"other programs used {share:.0%} of this machine meanwhile: measured times include "
        "waiting for them"
    )
