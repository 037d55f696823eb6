"""List schedules that count what the time of each processor is worth, varied at random."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from random import Random

from parapipe.mapping.fine.bounds import Bounds
from parapipe.mapping.fine.placement import Placement, list_schedule

WEIGHTS = (0.0, 0.5, 1.0, 2.0, 3.0, 5.0, 8.0, 12.0, 20.0)
NOISE = 0.1  # share by which a priority varies


def priced_list_schedules(bounds: Bounds, prices: Sequence[int], seed: int) -> Iterator[Placement]:
    """Yield list schedules without end: first each weight as it is, then at random.

    Where loads bound the makespan, an operator should not go where it ends first if its time there
    is worth more than elsewhere: to ends is added weight × (λ_p w_vp − least λ_q w_vq), with the
    prices λ of the load bound.
    """
    problem, processors = bounds.problem, range(bounds.problem.processors)
    scale = problem.processors / sum(prices)
    extra: list[list[float]] = []
    ways_units: list[int] = []
    for row, tails, choices in zip(
        problem.time_units, bounds.tail_units, problem.choices, strict=True
    ):
        least = min(prices[p] * row[p] for p in choices)
        extra.append([scale * (prices[p] * row[p] - least) for p in processors])
        ways_units.append(min(row[p] + tails[p] for p in choices))

    def schedule(priority: Sequence[float], weight: float, tail_share: float) -> Placement:
        behind = [
            [tail_share * tail + weight * more for tail, more in zip(*rows, strict=True)]
            for rows in zip(bounds.tail_units, extra, strict=True)
        ]
        return list_schedule(problem, priority, behind)

    for weight, tail_share in product(WEIGHTS, (0.0, 1.0)):
        yield schedule(ways_units, weight, tail_share)
    random = Random(seed)
    while True:
        priority = [way_units * random.uniform(1 - NOISE, 1 + NOISE) for way_units in ways_units]
        yield schedule(priority, random.choice(WEIGHTS), random.choice((0.0, 0.5, 1.0)))
