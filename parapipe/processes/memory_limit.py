"""How much memory this machine has, how much the processes of a command take, and their limit.

Memory is counted as it is resident: all of this process, and what other processes that it has
started share with nobody. Where the system has no `/proc`, it is the most that this process alone
has ever taken.
"""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from time import perf_counter

SHARE = 0.25  # of the machine's memory, where no limit is given
NEAR = 0.75  # of a limit: from there on what work is at, and what follows it, has the rest
LOOK_S = 0.1  # from one look at the memory to the next
WORKER_BYTES = 250e6  # that a worker process takes, its solvers included
WORKERS_SHARE = 0.5  # of a limit, that is for them
SHORT_OF_MEMORY = (
    "the search came near the memory that it may take, and ended with the best so far; with a "
    "greater memory limit there may be better ones"
)


def machine_bytes(root: Path = Path("/")) -> float:
    """Return the memory of this machine, or of its part that control groups leave this process.

    Parameters
    ----------
    root
        Folder that holds `proc` and `sys`.
    """
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return float(min(physical, *_group_limits(root), inf))


def _group_limits(root: Path) -> Iterator[float]:
    """Yield the limits of the control groups of this process, of both versions, outer ones too."""
    with suppress(OSError):
        for line in (root / "proc/self/cgroup").read_text().splitlines():
            _, controllers, own = line.split(":", 2)
            mount, name = root / "sys/fs/cgroup", "memory.max"
            if controllers:
                mount, name = mount / "memory", "memory.limit_in_bytes"
            if controllers and "memory" not in controllers.split(","):
                continue
            inner = Path(own.lstrip("/"))
            for group in (inner, *inner.parents):  # the last of them is the outermost
                with suppress(OSError, ValueError):  # "max" is no limit
                    yield float(int((mount / group / name).read_text()))


def used_bytes() -> int:
    """Return the memory of this process and of all that it has started."""
    try:
        return _resident_bytes("self", shared=True) + sum(
            _resident_bytes(each, shared=False) for each in _descendants("self")
        )
    except OSError:
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024


def _resident_bytes(process: str, *, shared: bool) -> int:
    try:
        _, resident, common, *_ = map(int, Path(f"/proc/{process}/statm").read_text().split())
    except (OSError, ValueError):
        if process == "self":
            raise
        return 0  # it has just ended
    return (resident - (0 if shared else common)) * os.sysconf("SC_PAGE_SIZE")


def _descendants(process: str) -> Iterator[str]:
    with suppress(OSError):  # it has just ended
        for task in Path(f"/proc/{process}/task").iterdir():
            with suppress(OSError):
                for child in (task / "children").read_text().split():
                    yield child
                    yield from _descendants(child)


@dataclass(slots=True)
class MemoryLimit:
    """The most memory that work may take, beside what was taken before it began.

    Parameters
    ----------
    limit_bytes
        See `limit_of`.
    used
        Returns the memory that is taken now.
    look_s
        Seconds from one look at it to the next.
    """

    limit_bytes: float
    used: Callable[[], float] = used_bytes
    look_s: float = LOOK_S
    _before: float = field(init=False)
    _looked_s: float = field(default=-inf, init=False)
    _reached: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self._before = self.used()

    @property
    def reached(self) -> bool:
        """Whether work is to end: it has come near the limit once."""
        now_s = perf_counter()
        if not self._reached and now_s >= self._looked_s + self.look_s:
            self._looked_s = now_s
            self._reached = self.used() - self._before >= NEAR * self.limit_bytes
        return self._reached


def limit_of(limit_bytes: float | None) -> float:
    """Return a limit as it was given, or a quarter of the machine's memory."""
    return SHARE * machine_bytes() if limit_bytes is None else limit_bytes


def workers_within(limit_bytes: float | None) -> int:
    """Return how many worker processes a limit has room for; at least one."""
    return max(1, int(WORKERS_SHARE * limit_of(limit_bytes) / WORKER_BYTES))
