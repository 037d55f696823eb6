"""Which parts of operators a split search would like to have measured, as rules."""

from __future__ import annotations

from collections.abc import Sequence

from parapipe.cost.cost_table import CostTable
from parapipe.cost.profile import Profile
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.graph.partition import partition
from parapipe.mapping.split.search import shortest
from parapipe.pipeline.identical import identical_processors
from parapipe.pipeline.part_prices import PartPrices
from parapipe.pipeline.split_model import rule_of, rules_of
from parapipe.pipeline.split_search import WIDTH, processor_sets, restricted
from parapipe.pipeline.split_ways import SplitWays
from parapipe.platform.platform import Platform

Rules = tuple[str, ...]
"""Rules of which no two concern one operator, so that one model holds all the parts."""


def balanced(
    graph: OperatorGraph, platform: Platform, costs: CostTable, profiles: Sequence[Profile]
) -> tuple[Rules, ...]:
    """Return rules that split each operator by itself, along each axis, for each set of processors.

    The shares are in proportion to the processors' speeds.
    """
    ways = _ways(graph, platform, costs, profiles)
    found: dict[tuple[int, tuple[int, ...]], list[str]] = {}
    sets = processor_sets(len(costs.processors), identical_processors(graph, costs))
    for processors, split in ways.in_balance():
        if processors in sets:
            key = (split.ranges[0].axis, processors)
            found.setdefault(key, []).append(rule_of(split, graph))
    return tuple(map(tuple, found.values()))


def searched(
    graph: OperatorGraph, platform: Platform, costs: CostTable, profiles: Sequence[Profile]
) -> tuple[Rules, ...]:
    """Return the rules of the least latency on each set of processors, by the times so far."""
    ways = _ways(graph, platform, costs, profiles)
    problem = ways.problem()
    found = []
    for processors in processor_sets(len(costs.processors), identical_processors(graph, costs)):
        part = restricted(problem, processors)
        best = part and shortest(part, width=WIDTH)
        if best and (rules := rules_of(best.ways, graph)):
            found.append(rules)
    return tuple(found)


def _ways(
    graph: OperatorGraph, platform: Platform, costs: CostTable, profiles: Sequence[Profile]
) -> SplitWays:
    return SplitWays(PartPrices(graph, platform, costs, profiles), partition(graph).order)
