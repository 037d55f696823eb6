"""How long a solve may take: by the clock, or by work done, which is the same on every machine."""

from __future__ import annotations

from dataclasses import dataclass, field
from time import perf_counter


@dataclass(slots=True)
class Budget:
    """What is left of a time limit.

    Parameters
    ----------
    limit_s
        Seconds of wall time, or of CP-SAT's deterministic time.
    deterministic
        Count work instead of wall time.
    began_s
        When wall time began, on the clock of `time.perf_counter`.
    """

    limit_s: float
    deterministic: bool = False
    began_s: float = field(default_factory=perf_counter)
    _worked_s: float = 0.0

    @property
    def left_s(self) -> float:
        """Seconds left, at least 0."""
        spent_s = self._worked_s if self.deterministic else perf_counter() - self.began_s
        return max(self.limit_s - spent_s, 0.0)

    def work(self, deterministic_s: float) -> None:
        """Note work that was done."""
        self._worked_s += deterministic_s
