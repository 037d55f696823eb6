"""How many processes and threads work at the same time. It is decided here and nowhere else."""

from __future__ import annotations

import os

ALONE = 1
"""Workers of what is itself one of several that run at the same time."""
SOLVER_THREADS = 1
"""Of a solver: more are not reproducible, and other problems use the cores."""


def worker_count(jobs: int | None, *, tasks: int | None = None) -> int:
    """Return how many work at the same time.

    Parameters
    ----------
    jobs
        At most, as the user says; one per core of this machine if None.
    tasks
        That are to be done: there are no more workers than these, and at least one.
    """
    most = jobs or os.cpu_count() or 1
    return most if tasks is None else max(1, min(most, tasks))
