"""A program of higher priority that takes a known share of a core, in short turns."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

PRIORITY = 50
PROGRAM = """
import os, sys, time
core, share, turn_s = int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])
os.sched_setaffinity(0, {core})
parent = os.getppid()
while os.getppid() == parent:
    end = time.perf_counter() + share * turn_s
    while time.perf_counter() < end:
        pass
    time.sleep((1 - share) * turn_s)
"""


@contextmanager
def rival(core: int, share: float, turn_s: float) -> Iterator[None]:
    """Let another program take a share of a core, in turns of so many seconds.

    It ends with this process, however that ends.

    Raises
    ------
    click.ClickException
        If this process may not raise a program's priority.
    """
    given = (str(core), str(share), str(turn_s))
    process = subprocess.Popen([sys.executable, "-c", PROGRAM, *given])
    try:
        os.sched_setscheduler(process.pid, os.SCHED_FIFO, os.sched_param(PRIORITY))
        yield
    except PermissionError as error:
        raise click.ClickException(
            "a core can be slowed only with the right to raise a program's priority; run this as "
            "root"
        ) from error
    finally:
        process.kill()
        process.wait()
