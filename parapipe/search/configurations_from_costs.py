"""From costs to configurations: solve every mapping problem once, search, and name the winners."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from contextlib import suppress
from math import inf
from typing import TYPE_CHECKING

from parapipe.cost.cost_table import CostTable
from parapipe.files.progress import Tell
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.graph.partition import Partition
from parapipe.processes.deadline import Deadline, OverError
from parapipe.processes.workers import shared_processes
from parapipe.search.exploration_result import Exploration
from parapipe.search.infeasible import check_times
from parapipe.search.options import MapOptions
from parapipe.search.problems.cache import Cache
from parapipe.search.problems.identical_processors import (
    identical_processors,
    replica_sets,
    replicable,
)
from parapipe.search.problems.method import Method
from parapipe.search.problems.solve import Solver
from parapipe.search.search_sequence import SearchSequence
from parapipe.search.stages.finest_cuts import MOST_REQUESTS, all_requests, many_requests
from parapipe.search.stages.problem_order import OtherTables, Periods, PromisingRequests
from parapipe.search.stages.relaxed import Relaxed
from parapipe.search.stages.stage_incumbents import ListSchedules, StageSearches

if TYPE_CHECKING:
    from parapipe.search.contract import Search, SplitSources


def explore(
    graph: OperatorGraph,
    partition: Partition,
    costs: CostTable,
    options: MapOptions,
    *,
    cache: Cache | None = None,
    executor: Executor | None = None,
    progress: Tell | None = None,
    others: Sequence[CostTable] = (),
    searches: Sequence[Search] = (),
    sources: SplitSources | None = None,
    deadline: Deadline | None = None,
    most_requests: int = MOST_REQUESTS,
) -> Exploration:
    """Map every subgraph on every set of processors, then search all stages built from them.

    After a few seconds, and now and then from then on, a search with what has been solved gives a
    front, list schedules standing in for the rest; with a budget there is one before all else. Then
    an interruption ends the work with the best so far, as the end of the budget does. A budget
    changes nothing but when the work ends, so no greater one gives a worse front: for each
    configuration found with less time, one at least as good in all objectives is found with more.
    What work to its end finds matches those that were found on its way to within the resolutions
    that `Exploration` states.

    Parameters
    ----------
    others
        Cost tables of other operating points or divisions: on the same processors, and perhaps on
        more behind them. A configuration rests on one table; the front is that of all together, of
        the others with their shortest schedules only.
    options
        Those of model, platform and costs are not looked at. With energy as an objective and a
        mapper that proves schedules shortest, what concerns latency and throughput stays exact.
    cache, executor
        As for `solve`.
    searches
        What is searched beside stages, see `requested_searches`; options that ask for other
        searches have no effect.
    sources
        For searches that split operators.
    deadline
        The end of the budget, if it began to count before.
    most_requests
        Of a cost table that are all built and solved; of more, those that look promising.

    Raises
    ------
    MappingError
        No configuration exists.
    """
    check_times(graph, costs)
    deadline = deadline or Deadline(inf if options.budget_s is None else options.budget_s)
    deadline.start_exploring()
    tables = (costs, *others)
    many = many_requests(graph, partition, costs, most_requests)
    requests = () if many or options.budget_s is not None else all_requests(graph, partition, costs)
    method = Method(**options.where(lambda option: option.solves))
    identical = tuple(identical_processors(graph, table) for table in tables)
    promising = None
    if not requests:
        relaxed = Relaxed(graph, partition, costs, identical[0], limited=many)
        replicas = replica_sets(replicable(identical[0], costs).alone)
        promising = PromisingRequests(relaxed, Periods(relaxed, replicas), options.resolution)
    solver = Solver(method, options.workers, cache, executor, identical[0])
    with shared_processes():
        sequence = SearchSequence(
            graph,
            (requests, *((),) * len(others)),
            OtherTables(graph, partition, others, identical[1:], most_requests),
            solver,
            deadline,
            StageSearches(
                graph.source.name, partition, tables, options, identical, deadline, progress
            ),
            ListSchedules(solver),
            promising,
            searches,
            sources,
        )
        with deadline.ending(), suppress(OverError):
            sequence.run_all()
        return sequence.result()
