"""A configuration: a mapping that a search found, what it takes, and why it is shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from parapipe.pipeline.evaluate import Evaluated
from parapipe.pipeline.mapping import Mapping

if TYPE_CHECKING:
    from parapipe.pipeline.served import Served
    from parapipe.pipeline.split_model import SplitModel

CLOSE = 1e-6  # share within which a bound proves: programmes are solved, and times rounded, to that


@dataclass(frozen=True, slots=True)
class Least:
    """What no configuration is below that the options of `map` allow.

    Of operators split, that is said of the ways to split that were found.

    Parameters
    ----------
    period_s
        Whatever its latency.
    latency_s, energy_j
        If its period is at most that of the configuration; 0 if nothing is known.
    rounding_s
        What the latency may be above its bound by, since times count in whole nanoseconds.
    """

    period_s: float
    latency_s: float = 0.0
    energy_j: float = 0.0
    rounding_s: float = 0.0

    def gap(self, found: Evaluated) -> float:
        """Return the share by which it is above the least where that is nearest."""
        near = (
            self.period_s / found.period_s,
            self.latency_s / found.latency_s,
            self.energy_j / found.energy_j,
        )
        gap = 1 - max(near)
        rounded = found.latency_s <= self.latency_s + self.rounding_s
        return 0.0 if gap <= CLOSE or rounded else gap


@dataclass(frozen=True, slots=True)
class Configuration:
    """A mapping that is worth showing.

    Parameters
    ----------
    mapping
        Where and when everything runs.
    evaluated
        What it takes.
    proven, gap
        Whether every schedule's objective is proven, and the largest of their gaps; where frames
        are interleaved, how far it is from the nearest bound in `least`, 0 if proven.
    names
        Names it has ("hybrid-L", ...), in a fixed order; may be empty.
    pareto
        Whether it is on the front of latency, throughput and energy.
    pareto_latency_throughput
        Whether it is on the paper's front, of latency and throughput alone.
    table
        Which cost table it was found with: 0 is the first.
    split
        The model with operators split into parts, which the mapping is of; None if it is of the
        model as it is.
    robust
        Whether it is on the front of a quantile of its figures, if that was asked for.
    several
        What each model gets, if the mapping is of several.
    least
        Bounds, where frames are interleaved.
    """

    mapping: Mapping
    evaluated: Evaluated
    proven: bool
    gap: float
    names: tuple[str, ...]
    pareto: bool
    pareto_latency_throughput: bool
    table: int
    split: SplitModel | None = None
    robust: bool = False
    several: Served | None = None
    least: Least | None = None
