"""Which causes the doubt in figures comes from, and which costs to measure first."""

from __future__ import annotations

from collections import abc, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from parapipe.cost.cost_table import CostTable
from parapipe.cost.spread import ONCE
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.mappings.configuration import Configuration
from parapipe.mappings.mapping import Mapping
from parapipe.uncertainty.causes import Array, Draws, UncertainCosts, uncertain_costs
from parapipe.uncertainty.samples import SampledFigures, figures_at_costs, interval

BASES = 8  # draws at which each cause is moved
BLOCK = 64  # causes that are moved at once


@dataclass(frozen=True)
class Doubt:
    """A mapping whose costs are uncertain.

    Parameters
    ----------
    latency_s, period_s
        What it takes by the stated costs.
    """

    mapping: Mapping
    costs: UncertainCosts
    draws: Draws
    latency_s: float
    period_s: float

    @cached_property
    def effects(self) -> Array:
        """How the logarithms of latency, period and energy change with each cause, [cause, figure].

        A cause is moved by one standard deviation from some draws of all others, and the mean of
        the changes taken (elementary effects; Morris, 1991): its square is the variance that the
        cause brings, as far as figures follow causes in proportion.
        """
        base = self.draws.of(self.costs.causes)[:, 1 : 1 + BASES]
        before = self._logarithms(base)
        effects = np.zeros((len(self.costs.causes), 3))
        count = base.shape[1]
        for begin in range(0, len(effects), BLOCK):
            moved = range(begin, min(begin + BLOCK, len(effects)))
            values = np.tile(base, len(moved))
            for i, cause in enumerate(moved):
                values[cause, i * count : (i + 1) * count] += 1
            change = self._logarithms(values).reshape(3, len(moved), count) - before[:, None]
            effects[moved.start : moved.stop] = change.mean(axis=2).T
        return effects

    @property
    def shares(self) -> Array:
        """Shares of the variance of each figure's logarithm, [cause, figure]."""
        variances: Array = self.effects**2
        total = variances.sum(axis=0)
        return variances / np.where(total, total, 1)

    def ends(self, figure: int) -> tuple[float, float, float]:
        """Return the lower end of a figure's interval, the stated figure, and the upper end."""
        figures = self._figures_at(self.draws.of(self.costs.causes))
        values = (figures.latency_s, figures.period_s, figures.energy_j)[figure]
        low, high = interval(values[1:])
        return low, float(values[0]), high

    def width(self, figure: int) -> float:
        """Return half the width of a figure's interval, as a share of the figure."""
        low, stated, high = self.ends(figure)
        return (high - low) / 2 / stated

    def gains(self, figure: int) -> dict[int, float]:
        """Return by operator how much of the variance of a figure's logarithm measuring takes away.

        Parameters
        ----------
        figure
            0 for latency, 1 for period, 2 for energy.
        """
        effect, costs = self.effects[:, figure], self.costs
        gains: dict[int, float] = {}
        for v, begin in enumerate(costs.begins):
            end = costs.begins[v + 1] if v + 1 < len(costs.begins) else len(costs.time_s)
            weight = costs.time_s[begin:end]
            own = (weight * costs.own[begin:end]).sum()
            if own <= 0:
                continue
            per_spread = effect[costs.operator[begin]] / own  # by the operator's seconds
            gain = effect[costs.operator[begin]] ** 2 - (per_spread * ONCE.own * weight.sum()) ** 2
            for part in range(begin, end):
                if costs.shared[part]:
                    with_it = effect[costs.cause[part]]
                    share = per_spread * costs.shared[part] * costs.time_s[part]
                    gain += with_it**2 - (with_it - share) ** 2
            gains[v] = float(gain)
        return gains

    def most_useful(self, figure: int, count: int) -> list[int]:
        """Return the operators whose measurement takes away most of a figure's variance."""
        gains = self.gains(figure)
        best = sorted(gains, key=lambda v: -gains[v])[:count]
        return [v for v in best if gains[v] > 0]

    def measured(self, operators: Collection[int]) -> Doubt:
        """Return the same with some operators measured once."""
        numbers = np.searchsorted(self.costs.begins, np.arange(len(self.costs.time_s)), "right") - 1
        is_measured = np.isin(numbers, list(operators))
        costs = replace(
            self.costs,
            own=np.where(is_measured, ONCE.own, self.costs.own),
            shared=np.where(is_measured, ONCE.shared, self.costs.shared),
        )
        return Doubt(self.mapping, costs, self.draws, self.latency_s, self.period_s)

    def _logarithms(self, values: Array) -> Array:
        """Return those of the three figures for some values of the causes, [figure, draw]."""
        stated = np.zeros((len(values), 1))
        figures = self._figures_at(np.hstack([stated, values]))
        return np.log([figures.latency_s[1:], figures.period_s[1:], figures.energy_j[1:]])

    def _figures_at(self, values: Array) -> SampledFigures:
        return figures_at_costs(
            self.mapping, self.costs.costs(values), latency_s=self.latency_s, period_s=self.period_s
        )


LATENCY, PERIOD = 0, 1


def gains(
    configurations: Sequence[Configuration], graph: OperatorGraph, costs: CostTable
) -> abc.Mapping[tuple[int, int], float]:
    """Return by operator and processor what measuring it takes away of the doubt.

    That is the sum of the variances of latency and period, over configurations of the model as it
    is. What is measured already takes nothing away.
    """
    names, draws = [operator.id for operator in graph.operators], Draws(BASES, seed=0)
    total: dict[tuple[int, int], float] = defaultdict(float)
    for each in configurations:
        evaluated, at = each.evaluated, each.mapping.at
        by_causes = uncertain_costs(each.mapping, costs, names)
        doubt = Doubt(each.mapping, by_causes, draws, evaluated.latency_s, evaluated.period_s)
        for figure in (LATENCY, PERIOD):
            for v, gain in doubt.gains(figure).items():
                cost = costs.cost(v, at[v].processor)
                if cost and any(part.provenance != "measured" for part in cost.parts):
                    total[v, at[v].processor] += gain
    return total
