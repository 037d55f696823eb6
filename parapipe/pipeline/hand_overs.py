"""What placed operators hand over to each other, and the mapping that comes of both."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from parapipe.cost.cost_table import CostTable
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.pipeline.mapping import Edge, Mapping, Placement, Transfer


class HandOver(NamedTuple):
    """A tensor that goes to readers: `transfers` are those to other processors, one for each."""

    producer: int
    readers: Sequence[int]
    transfers: Sequence[Transfer]


def hand_overs_of(
    placements: dict[int, Placement],
    graph: OperatorGraph,
    costs: CostTable,
    busy: dict[tuple[str, int], Transfer],
) -> Iterator[HandOver]:
    """Yield what the operators of a graph hand over: whole tensors, once to each processor.

    Parameters
    ----------
    placements
        Of each operator.
    busy
        Transfers that keep something busy, by tensor and target. All others only delay.
    """
    for name, u in graph.producer.items():
        source, readers = placements[u].processor, graph.consumers.get(name, ())
        lags: dict[int, int] = {}
        for v in readers:
            at = placements[v]
            if at.processor != source:
                lags[at.processor] = min(at.lag, lags.get(at.processor, at.lag))
        transfers = [
            busy.get((name, q))
            or Transfer(name, u, source, q, lag, costs.transfer_s(name, source, q))
            for q, lag in lags.items()
        ]
        yield HandOver(u, readers, transfers)


def assemble(
    placements: dict[int, Placement], moved: Iterable[HandOver], period_s: float | None = None
) -> Mapping:
    """Return the mapping of placed operators and of what they hand over."""
    transfers: list[Transfer] = []
    edges: list[Edge] = []
    for producer, readers, some in moved:
        number = {each.target: at for at, each in enumerate(some, len(transfers))}
        transfers += some
        edges += [Edge(producer, v, number.get(placements[v].processor)) for v in readers]
    return Mapping(tuple(placements.values()), tuple(transfers), tuple(edges), period_s)
