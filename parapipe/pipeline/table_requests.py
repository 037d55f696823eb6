"""What each cost table is asked for: every request, or those of shortest paths where too many."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from parapipe.cost.cost_table import CostTable
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.graph.partition import Partition
from parapipe.mapping.paths import supporting
from parapipe.pipeline.deadline import Deadline, OverError
from parapipe.pipeline.problems import Request, requests
from parapipe.pipeline.promising import MOST_REQUESTS, many_requests, with_identical
from parapipe.pipeline.relaxed import Relaxed

LEFT_OUT = (
    "with other operating points or divisions, there are too many subgraphs, processors and "
    "locations of tensors: only those were looked at that the shortest latencies and least "
    "energies ask for before any is solved"
)
NOT_BUILT = "not all subgraphs, processors and locations of tensors were looked at in time"


def all_requests(
    graph: OperatorGraph, partition: Partition, costs: CostTable, deadline: Deadline | None = None
) -> tuple[Request, ...]:
    """Return every request; none if they are too many; OverError if the deadline comes first."""
    if many_requests(graph, partition, costs):
        return ()
    return tuple(requests(graph, partition, costs, deadline))


@dataclass(frozen=True)
class OtherTables:
    """What the cost tables behind the first one are asked for.

    Parameters
    ----------
    identical
        Of each table, groups of identical processors.
    most
        Requests of a table that are all built.
    """

    graph: OperatorGraph
    partition: Partition
    tables: Sequence[CostTable]
    identical: Sequence[Sequence[Sequence[int]]]
    most: int = MOST_REQUESTS

    @cached_property
    def left_out(self) -> tuple[str, ...]:
        """Say that requests are left out; nothing if none are."""
        return (LEFT_OUT,) if any(map(self._many, self.tables)) else ()

    def requests(self, deadline: Deadline) -> Iterator[tuple[Request, ...]]:
        """Yield the requests of each table; none of those that are not built by the deadline.

        Where all would be too many, those of stages of one processor each and of shortest paths.
        """
        for costs, groups in zip(self.tables, self.identical, strict=True):
            asked: tuple[Request, ...] = ()
            with suppress(OverError):
                deadline.check()
                if self._many(costs):
                    asked = _of_paths(
                        Relaxed(self.graph, self.partition, costs, groups, limited=True)
                    )
                else:
                    asked = all_requests(self.graph, self.partition, costs, deadline)
            yield asked

    def _many(self, costs: CostTable) -> bool:
        return many_requests(self.graph, self.partition, costs, self.most)


def _of_paths(relaxed: Relaxed) -> tuple[Request, ...]:
    """Return what is asked for before anything is solved."""
    paths = [*relaxed.least_energy(), *relaxed.least_latency(relaxed.sets)[1]]
    return with_identical(relaxed, [*relaxed.one_by_one(), *paths])


def of_pipelines(relaxed: Relaxed) -> tuple[Request, ...]:
    """Return what some pipelines of single processors ask for, few of all that do."""
    return with_identical(relaxed, relaxed.one_by_one())


def on_one_processor(asked: Iterable[Request]) -> list[Request]:
    """Return the requests in which one processor runs all operators."""
    return [each for each in asked if len(set(chain(*supporting(each.problem)))) == 1]
