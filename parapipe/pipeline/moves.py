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
    """Return what the executor of the sustained period sees of a configuration.

    Events stand in the order of their starts within a period.
    """
    ranked: list[tuple[float, float, int, str, int, Event]] = []
    for index, stage in enumerate(stages):
        for at in stage.placements:
            # As a plan says it, so that a simulation of the plan comes to the same picosecond.
            work = Event(at.processor, index, at.end_s - at.start_s)
            ranked.append((at.start_s, at.end_s, at.operator, "", -1, work))
        for move in stage.moves:
            work = Event(move.resource, index, costs.transfer_s(move.tensor, *_ends(move)))
            producer = graph.producer[move.tensor]
            ranked.append((move.start_s, move.end_s, producer, move.tensor, move.target, work))
    # of what starts and ends together producers go first, their transfers behind them
    ranked.sort(key=lambda entry: entry[:5])
    place = {entry[2:5]: i for i, entry in enumerate(ranked)}
    processor_of = {at.operator: at.processor for stage in stages for at in stage.placements}
    edges: list[tuple[int, int, float]] = []
    carried: list[tuple[int, int, int]] = []
    for name, u in graph.producer.items():
        for v in graph.consumers.get(name, ()):
            made, read = place[u, "", -1], place[v, "", -1]
            source, target = processor_of[u], processor_of[v]
            if (u, name, target) in place:
                carried.append((made, place[u, name, target], read))
            else:
                edges.append((made, read, costs.transfer_s(name, source, target)))
    return [entry[5] for entry in ranked], edges, carried


def _ends(move: Move) -> tuple[int, int]:
    return move.source, move.target
