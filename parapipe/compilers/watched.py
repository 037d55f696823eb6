"""Runs a script that ends with the process that has started it, however that ends.

Standard input is a pipe from that process. Its end means that the process is no more: then all of
the group is killed, since a compiler that nobody waits for may take hours and gigabytes. This file
runs in the compiler's own environment and imports nothing of parapipe.
"""

from __future__ import annotations

import ctypes
import os
import runpy
import signal
import sys
from contextlib import suppress
from threading import Thread

_IOLBF = 1  # of stdio.h: a line at a time


def _end_with_parent() -> None:
    """Wait for the end of standard input, then kill this process and all it has started."""
    while os.read(0, 1):
        pass
    os.killpg(0, signal.SIGKILL)


def _write_lines() -> None:
    """Let C and Python write whole lines, so that neither cuts those of the other one."""
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    with suppress(AttributeError, ValueError):  # a C library that has it under another name
        libc = ctypes.CDLL(None)
        libc.setvbuf(ctypes.c_void_p.in_dll(libc, "stdout"), None, _IOLBF, 0)


if __name__ == "__main__":
    Thread(target=_end_with_parent, daemon=True).start()
    _write_lines()
    sys.argv = sys.argv[1:]
    runpy.run_path(sys.argv[0], run_name="__main__")
