"""Where stages may be cut: in a small network at every ideal, if the problems remain few."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

from parapipe.cost.cost_table import CostTable
from parapipe.graph.ideals import cuts_at_ideals
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.graph.partition import CutGraph, Partition, partition
from parapipe.pipeline.problems import requests
from parapipe.pipeline.promising import ways

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

    return replace(found, finer=cuts_at_ideals(graph, found, fits))
