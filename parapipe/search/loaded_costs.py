"""Costs under an expected load, for the coarse decisions of a search.

A search that adds up times of operators cannot know what will run beside each. It is given times as
if all of some processors were always busy, each with what the network is on average there; times
that were measured under load let a search choose better than those alone (BetterTogether, IISWC
2025). Nor can it know where captured graphs begin: mostly where a tensor arrives from another
processor. So it is given hand-overs that are longer by a launch. What it then finds is evaluated
exactly.
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


def is_additive(costs: CostTable) -> bool:
    """Tell whether operators take the same wherever others run."""
    return costs.co_run is None and not costs.graph_launch_s


def additive(costs: CostTable) -> CostTable:
    """Return costs of processors that do not slow each other down and start graphs in no time."""
    return costs if is_additive(costs) else replace(costs, co_run=None, graph_launch_s=())


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
        That average, by index of a busy processor; None where nothing takes time, or nothing is
        slowed down. All others are to stay empty.
    graph_launch_s
        As of the costs.
    """

    law: CoRunLaw | None
    costs: CostTable
    typical: Mapping[int, Running | None]
    graph_launch_s: Sequence[float | None] = ()

    @classmethod
    def of(cls, costs: CostTable, law: CoRunLaw | None, busy: Sequence[int]) -> ExpectedLoad:
        """Return the load of some processors, by their indices."""
        typical = {p: _typical(costs, p) if law else None for p in busy}
        return cls(law, additive(costs), typical, costs.graph_launch_s)

    def slowed(self, cost: OperatorCost | Refusal, p: int) -> OperatorCost | Refusal:
        """Return what an operator, or a part of one, costs under the load on a processor."""
        if p not in self.typical:
            return Refusal(self.costs.processors[p], "it is to stay empty")
        if isinstance(cost, Refusal) or self.law is None:
            return cost
        beside = [each for q, each in self.typical.items() if q != p and each]
        own = Running(self.costs.wholes[p], cost.moved_bytes, cost.time_s)
        return _slowed(cost, self.law.slowdowns([own, *beside])[0])

    def table(self, costs: CostTable | None = None) -> CostTable:
        """Return costs under the load: the network's, or those of it with operators split."""
        alone = costs or self.costs
        rows = [tuple(self.slowed(cost, p) for p, cost in enumerate(row)) for row in alone.entries]
        table = replace(additive(alone), entries=tuple(rows))
        return self._with_launches(table) if self.graph_launch_s else table

    def _with_launches(self, costs: CostTable) -> CostTable:
        """Return costs with a launch in each hand-over, and one where the network begins."""
        launches_s = [launch_s or 0.0 for launch_s in self.graph_launch_s]
        entries = [*costs.entries]
        timed = (v for v in range(len(entries)) if any(costs.cost(v, p) for p in self.typical))
        for v in [*timed][:1]:
            entries[v] = tuple(
                _slowed(cost, 1 + launch_s / cost.time_s)
                if isinstance(cost, OperatorCost) and cost.time_s
                else cost
                for cost, launch_s in zip(entries[v], launches_s, strict=True)
            )
        longer = {
            matrix: tuple(
                tuple(time_s if p == q else time_s + launches_s[q] for q, time_s in enumerate(row))
                for p, row in enumerate(matrix)
            )
            for matrix in {*costs.transfers.values()}
        }
        transfers = {name: longer[matrix] for name, matrix in costs.transfers.items()}
        return replace(costs, entries=tuple(entries), transfers=transfers)


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
