"""Costs under an expected load, for the coarse decisions of a search.

A search that adds up times of operators cannot know what will run beside each. It is given times as
if all of some processors were always busy, each with what the network is on average there; times
that were measured under load let a search choose better than those alone (BetterTogether, IISWC
2025). What it then finds is evaluated exactly.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
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


def loaded_costs(costs: CostTable, law: CoRunLaw, busy: Sequence[int]) -> CostTable:
    """Return costs on some processors alone, with times as if all of these were always busy."""
    typical = {p: _typical(costs, p) for p in busy}
    rows = []
    for row in costs.entries:
        made: list[OperatorCost | Refusal] = []
        for p, cost in enumerate(row):
            if p not in typical:
                made.append(Refusal(costs.processors[p], "it is to stay empty"))
            elif isinstance(cost, Refusal):
                made.append(cost)
            else:
                beside = [each for q, each in typical.items() if q != p and each]
                own = Running(costs.wholes[p], cost.moved_bytes, cost.time_s)
                factor = law.slowdowns([own, *beside])[0]
                made.append(_slowed(cost, factor))
        rows.append(tuple(made))
    return replace(costs, entries=tuple(rows), co_run=None)


def _slowed(cost: OperatorCost, factor: float) -> OperatorCost:
    parts = tuple(
        replace(part, time=part.time * named_value("slowdown", factor, "")) for part in cost.parts
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
