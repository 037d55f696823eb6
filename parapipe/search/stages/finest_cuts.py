"""Where stages may be cut: in a small network at every ideal, in others inside large chains.

Cuts inside chains are left out where all problems could be built without them, and not with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

from parapipe.cost.cost_table import CostTable
from parapipe.graph.inner_cuts import cuts_at_ideals, cuts_in_chains
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.graph.partition import CutGraph, Partition, partition
from parapipe.search.problems.problems import requests
from parapipe.search.stages.problem_order import many_requests, ways

MOST_AT_IDEALS = 3_000  # requests: a second or two


def finest_partition(graph: OperatorGraph, tables: Sequence[CostTable]) -> Partition:
    """Cut a graph for a search over stages, with the costs that it is for."""
    found = partition(graph)
    costs = max(tables, key=lambda table: len(table.processors))

    def fits(cuts: CutGraph) -> bool:
        every = (
            ways(graph, cuts, run, len(costs.processors)) for runs in cuts.runs for run in runs
        )
        if sum(every) > MOST_AT_IDEALS:
            return False  # each way is at least one request: they need not be built
        some = islice(requests(graph, replace(found, finer=cuts), costs), MOST_AT_IDEALS + 1)
        return sum(1 for _ in some) <= MOST_AT_IDEALS

    if cuts := cuts_at_ideals(graph, found, fits):
        return replace(found, finer=cuts)
    processors = range(len(costs.processors))
    time_s = [min(costs.time_s(v, p) for p in processors) for v in range(len(graph.operators))]
    finer = replace(found, finer=cuts_in_chains(graph, found, time_s))
    more = many_requests(graph, finer, costs) and not many_requests(graph, found, costs)
    return found if more else finer
