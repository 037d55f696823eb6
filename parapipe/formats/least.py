"""What is proven of configurations that the search with frames interleaved finds."""

from __future__ import annotations

from parapipe.files.record import Figure, Row


class LeastRow(Row):
    """What no configuration is below that may be listed with the front's options: proven.

    That is stages, replicated or not, and frames interleaved, on processors as they are or divided,
    at any operating point. Of operators split, it is said of the ways to split that were found.
    """

    period_s: Figure
    """Whatever its latency. Of stages the period is the longest one."""
    latency_s: Figure
    """If its period is at most that of the configuration; 0 if nothing is known."""
    energy_j: Figure
    """If its period is at most that of the configuration; 0 if nothing is known."""
