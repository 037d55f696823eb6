"""What requests of several shapes take in draws of the costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from parapipe.cost.cost_table import CostTable
from parapipe.mappings.configuration import Configuration
from parapipe.several_shapes.combination import Combination
from parapipe.several_shapes.placed_shapes import PlacedShape
from parapipe.uncertainty.causes import HAND_OVERS, Array, Draws
from parapipe.uncertainty.samples import sampled_front


@dataclass(frozen=True, slots=True)
class SampledSteps:
    """Seconds of each shape's steps, and of what moves before them: a number for each draw.

    Parameters
    ----------
    steps_s, moved_s
        By shape, in their order.
    """

    steps_s: tuple[Array, ...]
    moved_s: tuple[Array, ...]

    @property
    def request_s(self) -> Array:
        """All of them, one after the other."""
        total: Array = np.sum([*self.steps_s, *self.moved_s], axis=0)
        return total


def sampled_requests(combinations: Sequence[Combination], draws: Draws) -> list[SampledSteps]:
    """Return what placements of several shapes take in each draw.

    The same cost has the same draws in all shapes, so that what is slower in one of them is slower
    in the others, too. Moves have those of all hand-overs.
    """
    steps_s: dict[tuple[str, int], Array] = {}
    for some in zip(*(each.placements for each in combinations), strict=True):
        steps_s |= _sampled_steps({each.number: each for each in some}, draws)
    (hand_overs,) = draws.of([HAND_OVERS])[:, 1:]
    sampled = []
    for each in combinations:
        moved_s = [np.zeros(draws.count) for _ in each.placements]
        for move in each.moves:
            spread = each.placements[move.begin].costs.spread
            share = 0.0 if spread is None else spread.transfers
            moved_s[move.end] += move.time_s * np.exp(share * hand_overs)
        own = tuple(steps_s[p.shape.name, p.number] for p in each.placements)
        sampled.append(SampledSteps(own, tuple(moved_s)))
    return sampled


def _sampled_steps(
    placements: Mapping[int, PlacedShape], draws: Draws
) -> dict[tuple[str, int], Array]:
    """Return the seconds of all steps of some placements of one shape, by its name and theirs."""
    every = [*placements.values()]
    shape = every[0].shape
    costs = {id(each.configuration): each.costs for each in every}

    def costs_of(configuration: Configuration) -> CostTable:
        return costs[id(configuration)]

    front = sampled_front([each.configuration for each in every], shape.graph, costs_of, draws)
    more = max(shape.steps - 1, 0)
    return {
        (shape.name, each.number): (latency_s + more * period_s) * bool(shape.steps)
        for each, latency_s, period_s in zip(every, front.latency_s, front.period_s, strict=True)
    }
