"""Two folders that change places in one step, where the system can do that."""

from __future__ import annotations

import ctypes
import os
from functools import cache
from pathlib import Path
from typing import Any

_FROM_WORKING_FOLDER = -100  # AT_FDCWD of Linux
_EXCHANGE = 2  # RENAME_EXCHANGE, since Linux 3.15


def exchange(one: Path, other: Path) -> bool:
    """Give two files or folders each other's names, in one step; return whether that was done.

    A process that is killed leaves what was before or what is after. It is not done, and nothing
    has changed, where the system, its C library or the file system has no such step, if one of
    them is not there, and if the system refuses it.
    """
    if (call := _renameat2()) is None:
        return False
    names = _FROM_WORKING_FOLDER, os.fsencode(one), _FROM_WORKING_FOLDER, os.fsencode(other)
    return bool(call(*names, _EXCHANGE) == 0)


@cache
def _renameat2() -> Any:  # noqa: ANN401 - a function of the C library
    """Return the C library's function; None where it has none, as outside of Linux."""
    if call := getattr(ctypes.CDLL(None), "renameat2", None):
        text = ctypes.c_char_p
        call.argtypes = (ctypes.c_int, text, ctypes.c_int, text, ctypes.c_uint)
    return call
