"""How often frames may come so that processors draw no more than they may for ever."""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum, inf

from parapipe.cost.cost_table import CostTable
from parapipe.mappings.mapping import Mapping


@dataclass(frozen=True, slots=True)
class PowerNeed:
    """What a power budget asks of a mapping.

    Parameters
    ----------
    budget_w
        Watts that the processors may draw on average.
    period_s
        Seconds between frames at which they draw that; infinite if they draw no less when they do
        nothing.
    """

    budget_w: float
    period_s: float


def power_need(mapping: Mapping, costs: CostTable) -> PowerNeed | None:
    """Return what the power budget asks; None if there is none, or frames come slowly enough.

    With D the joules of a frame's operators and S the static watts of the used processors, the
    average power at a period T is D / T + S: the period is stretched to D / (budget − S).
    """
    budget_w = costs.power_budget_w
    if budget_w is None:
        return None
    dynamic_j = fsum(costs.energy_j(at.operator, at.processor) for at in mapping.placements)
    left_w = budget_w - fsum(costs.static_power_w[p] for p in mapping.processors)
    period_s = dynamic_j / left_w if left_w > 0 else inf
    return None if period_s <= costs.arrival_s else PowerNeed(budget_w, period_s)


def may_exceed(costs: CostTable) -> bool:
    """Tell whether some mapping may draw more than the power budget, if frames come at full rate.

    No processor draws more on average than with the operator on it that draws most, all the time.
    """
    if costs.power_budget_w is None:
        return False
    most_w = list(costs.static_power_w)
    for v, row in enumerate(costs.entries):
        for p in range(len(row)):
            if 0 < (time_s := costs.time_s(v, p)) < inf:
                drawn_w = costs.static_power_w[p] + costs.energy_j(v, p) / time_s
                most_w[p] = max(most_w[p], drawn_w)
    return fsum(most_w) > costs.power_budget_w


def power_s(mapping: Mapping, costs: CostTable) -> float:
    """Return the seconds between frames that a power budget asks for; 0 if it asks for nothing."""
    need = power_need(mapping, costs)
    return need.period_s if need else 0.0
