"""Where stages may be cut: in a small network at every ideal, if the problems remain few."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from parapipe.cost.cost_table import CostTable
from parapipe.graph.ideals import cuts_at_ideals
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.graph.partition import Partition, partition
from parapipe.pipeline.promising import most_requests

MOST_AT_IDEALS = 5_000  # requests


def finest_partition(graph: OperatorGraph, tables: Sequence[CostTable]) -> Partition:
    """Cut a graph for a search over stages, with the costs that it is for."""
    found = partition(graph)
    processors = max(len(table.processors) for table in tables)
    cuts = cuts_at_ideals(
        graph, found, lambda cuts: most_requests(graph, cuts, processors) <= MOST_AT_IDEALS
    )
    return replace(found, finer=cuts)
