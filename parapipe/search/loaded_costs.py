"""Costs under an expected load, for the coarse decisions of a search.

A search that adds up times of operators cannot know what will run beside each. It is given times as
if all of some processors were always busy, each with what the network is on average there; times
that were measured under load let a search choose better than those alone (BetterTogether, IISWC
2025). What it then finds is evaluated exactly.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from parapipe.cost.co_run import CoRunLaw, Running
from parapipe.cost.cost_table import CostTable
from parapipe.cost.price import OperatorCost
from parapipe.platform.fields import named_value
from parapipe.platform.support import Refusal

MOST_LOADS = 8  # sets of busy processors that are looked at


def without_law(costs: CostTable) -> CostTable:
    """Return costs of processors that do not slow each other down."""
    return costs if costs.co_run is None else replace(costs, co_run=None)


def expected_loads(processors: int) -> list[tuple[int, ...]]:
    """Return sets of processors that may be busy together: of few all, of many the largest."""
    sizes = range(processors, 1, -1)
    every = [some for size in sizes for some in combinations(range(processors), size)]
    return every[:MOST_LOADS]


@dataclass(frozen=True, slots=True)
class ExpectedLoad:
    """Processors that are taken to be always busy, each with what a network is on average there.

    Parameters
    ----------
    costs
        Of the network's operators, when each runs alone.
    typical
        That average, by index of a busy processor; None where nothing takes time. All others are to
        stay empty.
    """

    law: CoRunLaw
    costs: CostTable
    typical: Mapping[int, Running | None]

    @classmethod
    def of(cls, costs: CostTable, law: CoRunLaw, busy: Sequence[int]) -> ExpectedLoad:
        """Return the load of some processors, by their indices."""
        return cls(law, without_law(costs), {p: _typical(costs, p) for p in busy})

    def slowed(self, cost: OperatorCost | Refusal, p: int) -> OperatorCost | Refusal:
        """Return what an operator, or a part of one, costs under the load on a processor."""
        if p not in self.typical:
            return Refusal(self.costs.processors[p], "it is to stay empty")
        if isinstance(cost, Refusal):
            return cost
        beside = [each for q, each in self.typical.items() if q != p and each]
        own = Running(self.costs.wholes[p], cost.moved_bytes, cost.time_s)
        return _slowed(cost, self.law.slowdowns([own, *beside])[0])

    def table(self, costs: CostTable | None = None) -> CostTable:
        """Return costs under the load: the network's, or those of it with operators split."""
        alone = costs or self.costs
        rows = (tuple(self.slowed(cost, p) for p, cost in enumerate(row)) for row in alone.entries)
        return replace(alone, entries=tuple(rows), co_run=None)


def _slowed(cost: OperatorCost, factor: float) -> OperatorCost:
    parts = tuple(
        replace(
            part,
            time=part.time * named_value("slowdown", factor, ""),
            power=part.power * named_value("share", 1 / factor, ""),  # no energy goes to waiting
        )
        for part in cost.parts
    )
    return OperatorCost(parts, cost.moved_bytes, cost.data_type)


def _typical(costs: CostTable, p: int) -> Running | None:
    """Return an operator that is what the network is on average on a processor."""
    some = [*_supported(costs, p)]
    time_s = sum(cost.time_s for cost in some)
    if not time_s:
        return None
    return Running(costs.wholes[p], sum(cost.moved_bytes for cost in some), time_s)


def _supported(costs: CostTable, p: int) -> Iterator[OperatorCost]:
    for row in costs.entries:
        if isinstance(cost := row[p], OperatorCost):
            yield cost
