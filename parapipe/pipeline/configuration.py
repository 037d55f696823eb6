"""A configuration: a mapping that a search found, what it takes, and why it is shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from parapipe.pipeline.evaluate import Evaluated
from parapipe.pipeline.mapping import Mapping

if TYPE_CHECKING:
    from parapipe.pipeline.served import Served
    from parapipe.pipeline.split_model import SplitModel


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
        Whether every schedule's objective is proven, and the largest of their gaps.
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
