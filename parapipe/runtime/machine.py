"""Cores, denormal numbers and other load of the machine that a plan runs on.

Numbers below the normal range, 1.2e-38 in float32, are computed many times slower by some
processors. ONNX Runtime's option `session.set_denormal_as_zero` reaches the threads that a session
starts, and of those that run sessions only the one that opened the first session of the process.
The others are switched here, by the C library's floating-point environment.

This file needs the standard library only, so that it can stand beside a runner on a device.
"""

from __future__ import annotations

import ctypes
import os
import platform
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter

_PART = re.compile(r"([0-9]{1,4})(?:-([0-9]{1,4}))?")


def cores_of(values: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """Return the cores of each processor, from values as big=0,2-3.

    Raises
    ------
    ValueError
        If one is not of this form or names a core twice, or if two of them contradict each other.
    """
    chosen: dict[str, tuple[int, ...]] = {}
    for value in values:
        name, _, listed = value.rpartition("=")
        cores = tuple(core for part in listed.split(",") for core in _core_range(part, value))
        twice = sorted({core for core in cores if cores.count(core) > 1})
        if not name:
            raise ValueError(_form_sentence(value))
        if twice:
            raise ValueError(f"'{value}' names core {', '.join(map(str, twice))} twice")
        if chosen.setdefault(name, cores) != cores:
            raise ValueError(f"'{name}' is given twice, with different cores: say which")
    return chosen


def _core_range(part: str, value: str) -> range:
    match = _PART.fullmatch(part)
    if match is None:
        raise ValueError(_form_sentence(value))
    first, last = int(match[1]), int(match[2] or match[1])
    if last < first:
        raise ValueError(f"'{value}' holds the range {part}, which ends before it begins")
    return range(first, last + 1)


def _form_sentence(value: str) -> str:
    return f"'{value}' is not PROCESSOR=CORES, as in big=0,1 or big=0-3"


# Which 32-bit word of the C library's `fenv_t` holds the control register on Linux, and its bits
# for denormal results and operands: MXCSR's FTZ and DAZ, FPCR's FZ.
_CONTROL: Mapping[str, tuple[int, int]] = {"x86_64": (7, 1 << 15 | 1 << 6), "aarch64": (0, 1 << 24)}
MANY = 0.01  # of a tensor's numbers
SHOWN = 5
_WORDS = 16  # no less than an environment takes


def denormals_note(denormals: Iterable[tuple[str, int, int]]) -> str:
    """Return what is to be known of weights that are denormal; empty if they are few.

    Parameters
    ----------
    denormals
        Names of tensors, how many of their numbers are denormal, and how many they have.
    """
    many = sorted((each for each in denormals if each[1] >= MANY * each[2]), key=lambda it: -it[1])
    if not many:
        return ""
    listed = ", ".join(f"{count:,} of {of:,} in '{name}'" for name, count, of in many[:SHOWN])
    more = f" and {len(many) - SHOWN} more" if len(many) > SHOWN else ""
    return (
        f"weights are denormal, smaller than the normal range ({listed}{more}): they count as zero "
        "here, and slow down a runtime that does not do so"
    )


@contextmanager
def denormals_to_zero() -> Iterator[None]:
    """Let denormal numbers count as zero on the calling thread, and on threads that it starts.

    On other systems than Linux, and other processors than x86-64 and ARMv8, nothing changes.
    """
    at = _CONTROL.get(platform.machine()) if platform.system() == "Linux" else None
    library = ctypes.CDLL(None) if at else None
    if at is None or library is None or not hasattr(library, "fesetenv"):
        yield
        return
    before = (ctypes.c_uint32 * _WORDS)()
    library.fegetenv(before)
    changed = (ctypes.c_uint32 * _WORDS)(*before)
    changed[at[0]] |= at[1]
    library.fesetenv(changed)
    try:
        yield
    finally:
        library.fesetenv(before)


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
