"""Which costs to measure first: those whose doubt widens the figures of configurations most."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from parapipe.cost.cost_table import CostTable
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.pipeline.configuration import Configuration
from parapipe.pipeline.contributions import BASES, Doubt
from parapipe.pipeline.uncertain import Draws, uncertain

LATENCY, PERIOD = 0, 1


def gains(
    found: Sequence[Configuration], graph: OperatorGraph, costs: CostTable
) -> Mapping[tuple[int, int], float]:
    """Return by operator and processor what measuring it takes away of the doubt.

    That is the sum of the variances of latency and period, over configurations of the model as it
    is. What is measured already takes nothing away.
    """
    names, draws = [operator.id for operator in graph.operators], Draws(BASES, seed=0)
    total: dict[tuple[int, int], float] = defaultdict(float)
    for each in found:
        made, at = each.evaluated, each.mapping.at
        known = uncertain(each.mapping, costs, names)
        doubt = Doubt(each.mapping, known, draws, made.latency_s, made.period_s)
        for figure in (LATENCY, PERIOD):
            for v, gain in doubt.gains(figure).items():
                cost = costs.cost(v, at[v].processor)
                if cost and any(part.provenance != "measured" for part in cost.parts):
                    total[v, at[v].processor] += gain
    return total
