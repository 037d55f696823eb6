"""Mappers that end the process they run in, as a machine does that has no memory left."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from parapipe.solvers.coarse import map as coarse

MARK = "PARAPIPE_TEST_MARK"
"""Names the file that says that a process has been ended."""


def always(*_given, **_options):
    """End the process."""
    os.kill(os.getpid(), signal.SIGKILL)


def once(problem, **options):
    """End the process if none has been ended, else map."""
    mark = Path(os.environ[MARK])
    if not mark.exists():
        mark.touch()
        always()
    return coarse(problem, **options)
