"""What an exploration that was ended early has left undone, and how good a front can be at most."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import inf

import numpy as np

from parapipe.cost.cost_table import CostTable
from parapipe.digits import plain
from parapipe.files.record import Figure, Row
from parapipe.pipeline.mapping_bounds import EnergyBounds


class UnfinishedRow(Row):
    """What was left undone, and how good a configuration can be at most.

    The bounds hold for all configurations that may be listed with the front's options, and with any
    budget. Of operators split, they hold for the ways to split that were found.
    """

    reasons: tuple[str, ...]
    """A sentence each."""
    latency_s: Figure
    """No configuration has less latency: proven."""
    period_s: Figure
    """No configuration has a shorter period: proven."""
    energy_j: Figure
    """No configuration takes less energy per frame: proven."""


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
