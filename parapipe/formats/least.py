"""What is proven of configurations that the search with frames interleaved finds."""

from __future__ import annotations

from parapipe.formats.record import Row
from parapipe.plan.record import Figure


class LeastRow(Row):
    """What no mapping of whole operators is below, stages or not."""

    period_s: Figure
    """Whatever its latency."""
    latency_s: Figure
    """If its period is at most that of the configuration; 0 if nothing is known."""
    energy_j: Figure
    """If its period is at most that of the configuration; 0 if nothing is known."""
