"""Long work: how far it has come, and how many processes and threads do it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Phase = Literal[
    "mapping", "searching", "trading", "splitting", "interleaving", "writing", "measuring", "whole",
    "split", "running", "sweeping", "compiling", "building",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the work has come.

    Parameters
    ----------
    done, total
        Subgraphs solved, cuts searched, subgraphs whose time was traded for energy, sets of
        processors that operators were split over, plans written, operators measured, runs of a
        whole model, frames run, models mapped on platforms, segments compiled or percent of a
        runtime built: what, says the phase.
    largest_gap
        Largest optimality gap so far.
    elapsed_s
        Seconds since the phase began.
    cached
        How many of those done were solved by an earlier run.
    best_latency_s, best_period_s
        The least of the front so far; 0 as long as there is none.
    """

    done: int
    total: int
    largest_gap: float
    elapsed_s: float
    cached: int = 0
    phase: Phase = "mapping"
    best_latency_s: float = 0.0
    best_period_s: float = 0.0


Tell = Callable[[Progress], None]


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
