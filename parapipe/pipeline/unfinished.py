"""What an exploration that was ended early has left undone, and how good a front can be at most."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import inf

import numpy as np

from parapipe.cost.cost_table import CostTable
from parapipe.digits import plain
from parapipe.pipeline.mapping_bounds import EnergyBounds


@dataclass(frozen=True, slots=True)
class Unfinished:
    """What was left undone.

    Parameters
    ----------
    reasons
        A sentence each.
    latency_s, period_s, energy_j
        No configuration that the options allow has less; of those with operators split, none in
        one of the ways to split that were found.
    """

    reasons: tuple[str, ...]
    latency_s: float
    period_s: float
    energy_j: float


def least_energy_j(operators: int, tables: Iterable[CostTable]) -> float:
    """Return joules per frame that no configuration is below, whatever table it rests on."""
    anyhow = (
        EnergyBounds.of(operators, costs, np.zeros(1 << len(costs.processors))) for costs in tables
    )
    return min(each.at(inf) for each in anyhow)


def left_out(
    units: int, most_cuts: int, energy_cuts: int | None, resolution: float
) -> Iterator[str]:
    """Yield what is left out of the front of a network of many units, a sentence each.

    Parameters
    ----------
    most_cuts, energy_cuts
        Boundaries of the search for times and of that with energy: 0 if there is none, and None if
        energy is no objective.
    resolution
        Of the configurations that are shown.
    """
    if units > most_cuts:
        yield f"stages begin and end at {most_cuts - 1} of {units - 1} possible places"
    energy = ""
    if energy_cuts is not None:
        places = f"by stages at {energy_cuts - 1} places" if energy_cuts else "nowhere"
        energy = f"energy is traded {places}, and "
    yield (
        f"{energy}of configurations that match to within a share of {plain(resolution, 3)} one is "
        "shown"
    )
