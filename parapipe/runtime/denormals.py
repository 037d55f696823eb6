"""Threads on which denormal numbers count as zero.

Numbers below the normal range, 1.2e-38 in float32, are computed many times slower by some
processors. ONNX Runtime's option `session.set_denormal_as_zero` reaches the threads that a session
starts, and of those that run sessions only the one that opened the first session of the process.
The others are switched here, by the C library's floating-point environment.

This file needs the standard library only, so that it can stand beside a runner on a device.
"""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

# Which 32-bit word of the C library's `fenv_t` holds the control register on Linux, and its bits
# for denormal results and operands: MXCSR's FTZ and DAZ, FPCR's FZ.
_CONTROL: Mapping[str, tuple[int, int]] = {"x86_64": (7, 1 << 15 | 1 << 6), "aarch64": (0, 1 << 24)}
MANY = 0.01  # of a tensor's numbers
SHOWN = 5
_WORDS = 16  # no less than an environment takes


def sentence(found: Iterable[tuple[str, int, int]]) -> str:
    """Return what is to be known of weights that are denormal; empty if they are few.

    Parameters
    ----------
    found
        Names of tensors, how many of their numbers are denormal, and how many they have.
    """
    many = sorted((each for each in found if each[1] >= MANY * each[2]), key=lambda it: -it[1])
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
