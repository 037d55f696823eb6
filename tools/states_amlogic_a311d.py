"""The states of the board that the A311D's platforms describe, and what leads from one to another.

Blocks were timed in two runs: those of GoogLeNet and the three larger Inceptions in 2024, those of
the other networks in 2025, as all whole runs were. In 2025 the big cluster took 1.112 times as long
for GoogLeNet's blocks; profiles/SOURCES.md has the evidence. A state says how the times of each run
are scaled: every platform in `STATES` is that of one of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

PROFILES = Path(__file__).parents[1] / "profiles"
MEASURED = PROFILES / "amlogic-a311d/measured"
RUN_2024, RUN_2025 = "parapipe-2024", "revision-2025"
BIG_SLOWER_IN_2025 = 1.112
IDLE_W = {RUN_2024: 2.19, RUN_2025: 2.02}
"""Watts of the idle board in each run: the 5th percentile of the samples between blocks."""


@dataclass(frozen=True, slots=True)
class State:
    """How the board was when it was measured.

    Parameters
    ----------
    platform
        Name of the platform and of the folder of its profile.
    factors
        By run and processor: what the times of its blocks are multiplied with; 1 where none stands.
    idle_w
        Watts of the idle board.
    """

    platform: str
    factors: Mapping[tuple[str, str], float]
    idle_w: float

    @property
    def folder(self) -> Path:
        """Where the profile stands."""
        return PROFILES / self.platform

    def factor(self, run: str, processor: str) -> float:
        """Return what a run's times on a processor are multiplied with."""
        return self.factors.get((run, processor), 1.0)


STATES = {
    state.platform: state
    for state in (
        State("amlogic-a311d", {(RUN_2024, "big"): BIG_SLOWER_IN_2025}, IDLE_W[RUN_2025]),
        State("amlogic-a311d-2024", {}, IDLE_W[RUN_2024]),
    )
}
