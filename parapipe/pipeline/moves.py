"""Transfers that keep a processor or a link busy, as parts of a configuration."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from parapipe.cost.cost_table import CostTable
from parapipe.graph.operator_graph import OperatorGraph
from parapipe.mapping.schedule import Schedule
from parapipe.pipeline.configuration import Move, Stage
from parapipe.pipeline.problems import Request
from parapipe.pipeline.sustained import Event

# Events, edges and carried edges, as `sustained_period_s` takes them.
Flow = tuple[list[Event], list[tuple[int, int, float]], list[tuple[int, int, int]]]
# Of a transfer the operator that makes the tensor, its name, and the processor that it goes to.
Identity = tuple[int, str, int]
Rank = tuple[float, float, int, str, int]
Link = tuple[int, int, float, Identity | None]


def moves_of(request: Request, schedule: Schedule, begin_s: float) -> Iterator[Move]:
    """Yield the occupying transfers of a unit's schedule that begins so late in its stage."""
    for moved in schedule.transfers:
        flow = request.problem.flows[moved.flow]
        source = flow.home if flow.producer is None else schedule.processor[flow.producer]
        assert source is not None
        resource = request.problem.carrier_of(source, moved.target)
        assert resource is not None
        yield Move(
            request.tensors[moved.flow],
            source,
            moved.target,
            resource,
            begin_s + moved.start_s,
            begin_s + moved.end_s,
        )


def once_each(moves: Iterable[Move]) -> tuple[Move, ...]:
    """Drop transfers to where the tensor already is, and order the others by their start.

    Each unit reckons with the transfer of what it reads from outside. If an earlier unit of the
    stage has read it there, it need not be moved again: its schedule keeps the gap.
    """
    first: dict[tuple[str, int], Move] = {}
    for move in sorted(moves, key=lambda move: (move.start_s, move.end_s, move.tensor)):
        first.setdefault((move.tensor, move.target), move)
    return tuple(first.values())


def flow_of_frames(graph: OperatorGraph, costs: CostTable, stages: Sequence[Stage]) -> Flow:
    """Return what the executor of the sustained period sees of a configuration."""
    works: list[tuple[Rank, Event]] = []
    carriers: set[Identity] = set()
    for index, stage in enumerate(stages):
        for at in stage.placements:
            # As a plan says it, so that a simulation of the plan comes to the same picosecond.
            work = Event(at.processor, index, at.end_s - at.start_s)
            works.append(((at.start_s, at.end_s, *operator_identity(at.operator)), work))
        for move in stage.moves:
            work = Event(move.resource, index, costs.transfer_s(move.tensor, *_ends(move)))
            identity = (graph.producer[move.tensor], move.tensor, move.target)
            carriers.add(identity)
            works.append(((move.start_s, move.end_s, *identity), work))
    processor_of = {at.operator: at.processor for stage in stages for at in stage.placements}
    links: list[Link] = []
    for name, u in graph.producer.items():
        for v in graph.consumers.get(name, ()):
            source, target = processor_of[u], processor_of[v]
            moved = (u, name, target)
            transfer_s = costs.transfer_s(name, source, target)
            links.append((u, v, transfer_s, moved if moved in carriers else None))
    return ordered_flow(works, links)


def operator_identity(operator: int) -> Identity:
    """Return what an operator goes by among the works of a period."""
    return operator, "", -1


def ordered_flow(works: Iterable[tuple[Rank, Event]], links: Iterable[Link]) -> Flow:
    """Put works in the order of their starts within a period, and say what waits for what.

    Parameters
    ----------
    works
        Operators, and transfers that occupy something, by start, end and identity.
    links
        Producer and reader, by operator; seconds of the transfer; the identity of the work that it
        is, if it occupies something.
    """
    # of what starts and ends together producers go first, their transfers behind them
    ranked = sorted(works, key=lambda work: work[0])
    place = {rank[2:]: i for i, (rank, _) in enumerate(ranked)}
    edges: list[tuple[int, int, float]] = []
    carried: list[tuple[int, int, int]] = []
    for u, v, transfer_s, moved in links:
        made, read = place[operator_identity(u)], place[operator_identity(v)]
        if moved is None:
            edges.append((made, read, transfer_s))
        else:
            carried.append((made, place[moved], read))
    return [event for _, event in ranked], edges, carried


def _ends(move: Move) -> tuple[int, int]:
    return move.source, move.target
