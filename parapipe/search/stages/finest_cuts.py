"""Where stages may be cut, and whether all requests that follow from it can be built.

A small network may be cut at every ideal, others inside large chains.

Cuts inside chains are left out where all problems could be built without them, and not with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, islice
from math import comb

from parapipe.cost.cost_table import CostTable
from parapipe.graph.inner_cuts import cuts_at_ideals, cuts_in_chains
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.graph.partition import CutGraph, Partition, Run, partition
from parapipe.problems.problems import MOST_LOCATIONS, Request, requests
from parapipe.processes.deadline import Deadline

MOST_REQUESTS = 100_000  # that are all built and solved
MOST_AT_IDEALS = 3_000  # requests: a second or two


def finest_partition(graph: OperatorGraph, tables: Sequence[CostTable]) -> Partition:
    """Cut a graph for a search over stages, with the costs that it is for."""
    coarse = partition(graph)
    costs = max(tables, key=lambda table: len(table.processors))

    def fits(cuts: CutGraph) -> bool:
        runs, processors = chain.from_iterable(cuts.runs), len(costs.processors)
        if sum(count_modes(graph, cuts, run, processors) for run in runs) > MOST_AT_IDEALS:
            return False  # each way is at least one request: they need not be built
        some = islice(requests(graph, replace(coarse, finer=cuts), costs), MOST_AT_IDEALS + 1)
        return sum(1 for _ in some) <= MOST_AT_IDEALS

    if cuts := cuts_at_ideals(graph, coarse, fits):
        return replace(coarse, finer=cuts)
    processors = range(len(costs.processors))
    time_s = [min(costs.time_s(v, p) for p in processors) for v in range(len(graph.operators))]
    with_chains = replace(coarse, finer=cuts_in_chains(graph, coarse, time_s))
    more = many_requests(graph, with_chains, costs) and not many_requests(graph, coarse, costs)
    return coarse if more else with_chains


def many_requests(
    graph: OperatorGraph, partition: Partition, costs: CostTable, most: int = MOST_REQUESTS
) -> bool:
    """Tell whether there are too many requests to build them all; an estimate from above."""
    processors, cuts = len(costs.processors), partition.cuts
    count = 0
    for begin, runs in enumerate(cuts.runs):
        live = len(cuts.boundaries[begin])
        places = max(processors**live, MOST_LOCATIONS if live > 1 else 1)
        units = (run for run in runs if run.alone)
        count += places * sum(count_modes(graph, cuts, run, processors) for run in units)
    return count > most


def count_modes(graph: OperatorGraph, cuts: CutGraph, run: Run, processors: int) -> int:
    """Count sets of processors, with every choice for where the exits of a run are."""
    makers = {graph.producer[name] for name in cuts.boundaries[run.end]}
    exits = max(1, len(makers.intersection(run.unit.operators)))
    most = min(processors, len(run.unit.operators))
    return sum(comb(processors, k) * k**exits for k in range(1 if run.alone else 2, most + 1))


def all_requests(
    graph: OperatorGraph, partition: Partition, costs: CostTable, deadline: Deadline | None = None
) -> tuple[Request, ...]:
    """Return every request; none if they are too many; OverError if the deadline comes first."""
    if many_requests(graph, partition, costs):
        return ()
    return tuple(requests(graph, partition, costs, deadline))
