"""What an executor does with a plan: the tasks of each lane in order, and what they wait for.

A *lane* is a processor, or a link that transfers share. Its thread takes the lane's tasks in their
order, round after round: a task that lags l periods works on frame r - l in round r. A *task* is an
operator, or a segment where a runtime compiles those, or a transfer that keeps something busy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from heapq import merge
from itertools import pairwise
from typing import Literal, TypeAlias

from parapipe.pipeline.sustained import EventGraph, picoseconds
from parapipe.plan.places import Edge, Place, edges, every_place
from parapipe.plan.schema import Plan, Transfer
from parapipe.plan.segments import segments

Unit: TypeAlias = Literal["operator", "segment"]


@dataclass(frozen=True, slots=True)
class Task:
    """Work of a lane on one frame, without interruption.

    Parameters
    ----------
    name
        Of an operator its id, of a segment its processor and number from 0 (`gpu/0`), of a transfer
        its tensor and where it goes (`relu_1 → gpu`); unique in the lane.
    lane
        Name of the processor or link.
    operators
        Ids of the operators that it runs; none for a transfer.
    """

    name: str
    lane: str
    operators: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Handover:
    """A step of a tensor on its way to another processor: from task to task, by their indices."""

    tensor: str
    producer: int
    consumer: int


@dataclass(frozen=True, slots=True)
class Program:
    """A plan as an executor sees it.

    Parameters
    ----------
    tasks
        Lane after lane, each in its order.
    lanes
        Processors as the plan lists them, then links.
    graph
        Times, order and waits of the tasks, by their indices.
    handovers
        Of all tensors that go from one processor to another.
    first
        Indices of the tasks that a frame's arrival starts: they read a graph input, or nothing.
    """

    tasks: tuple[Task, ...]
    lanes: tuple[str, ...]
    graph: EventGraph
    handovers: tuple[Handover, ...]
    first: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Work:
    """A task before it has its place."""

    task: Task
    time_ps: int
    lag: int
    key: tuple[float, float, int, str, int]


def program(
    plan: Plan, *, unit: Unit = "operator", queue: int | None = None, moves: bool = True
) -> Program:
    """Return what an executor does with a plan.

    Parameters
    ----------
    plan
        A plan that `verify_plan` accepts.
    unit
        What a processor runs at one go. A segment begins once all that it receives is there, and
        hands out what it makes at its end.
    queue
        Slots of every channel, in place of the plan's.
    moves
        Whether transfers that keep something busy are tasks; they only take their time if not, as
        where processors share memory.
    """
    position = {operator.id: i for i, operator in enumerate(plan.operators)}
    routes = _routes(plan)
    works = [
        *_runs(plan, unit, position),
        *(_moves(plan, routes, position) if moves else ()),
    ]
    names = [processor.name for processor in plan.processors]
    lanes = list(dict.fromkeys([*names, *(work.task.lane for work in works)]))
    ordered: list[_Work] = []
    taken: list[tuple[int, ...]] = []
    for lane in lanes:
        begin = len(ordered)
        mine = [work for work in works if work.task.lane == lane]
        run = (work for work in mine if work.task.operators)
        moved = sorted((work for work in mine if not work.task.operators), key=_key)
        ordered += merge(run, moved, key=_key)  # the plan's order of operators stays
        taken.append(tuple(range(begin, len(ordered))))
    at = {v: i for i, work in enumerate(ordered) for v in work.task.operators}
    carried = {work.task.name: i for i, work in enumerate(ordered) if not work.task.operators}
    waits: list[tuple[int, int, int]] = []
    channels: list[tuple[int, int, int]] = []
    handovers: list[Handover] = []
    for transfer, users in routes:
        mover = carried.get(transfer_name(transfer)) if transfer.occupies else None
        u = at[users[0].producer.operator]
        for v in dict.fromkeys(at[edge.consumer.operator] for edge in users):
            via = (u, v) if mover is None else (u, mover, v)
            delay_ps = picoseconds(transfer.time_s) if mover is None else 0
            for a, b in pairwise(via):
                waits.append((a, b, delay_ps))
                handovers.append(Handover(transfer.tensor, a, b))
            channels.append((u, v, queue or transfer.queue_depth))
    return Program(
        tasks=tuple(work.task for work in ordered),
        lanes=tuple(lanes),
        graph=EventGraph(
            time_ps=tuple(work.time_ps for work in ordered),
            lag=tuple(work.lag for work in ordered),
            lanes=tuple(taken),
            waits=tuple(dict.fromkeys(waits)),
            channels=tuple(channels),
        ),
        handovers=tuple(dict.fromkeys(handovers)),
        first=tuple(_first(plan, at)),
    )


def _key(work: _Work) -> tuple[float, float, int, str, int]:
    return work.key


def transfer_name(transfer: Transfer) -> str:
    """Return the name of the task that a transfer is, if it keeps something busy."""
    return f"{transfer.tensor} → {transfer.target}"


def _routes(plan: Plan) -> list[tuple[Transfer, list[Edge]]]:
    """Return the transfers, each with the edges that it serves."""
    users: dict[tuple[str, str], list[Edge]] = {}
    for edge in edges(plan):
        users.setdefault((edge.tensor, edge.consumer.processor), []).append(edge)
    return [(transfer, users[transfer.tensor, transfer.target]) for transfer in plan.transfers]


def _runs(plan: Plan, unit: Unit, position: Mapping[str, int]) -> Iterator[_Work]:
    """Yield what processors run, in the order in which they do."""
    placed = {place.operator: place for place in every_place(plan)}
    groups: Iterable[tuple[str, tuple[str, ...]]] = (
        ((v, (v,)) for v in placed)
        if unit == "operator"
        else (
            (f"{name}/{number}", segment.operators)
            for name, some in segments(plan, prompt=True).items()
            for number, segment in enumerate(some)
        )
    )
    for name, operators in groups:
        places = [placed[v] for v in operators]
        begin = places[0]
        yield _Work(
            Task(name, begin.processor, operators),
            sum(_time_ps(place) for place in places),
            begin.lag,
            (begin.start_s, begin.end_s, position[begin.operator], "", -1),
        )


def _time_ps(place: Place) -> int:
    return picoseconds(place.end_s - place.start_s)


def _moves(
    plan: Plan, routes: Iterable[tuple[Transfer, list[Edge]]], position: Mapping[str, int]
) -> Iterator[_Work]:
    """Yield the transfers that keep something busy."""
    number = {processor.name: i for i, processor in enumerate(plan.processors)}
    for transfer, users in routes:
        if transfer.occupies is not None:
            assert transfer.start_s is not None
            assert transfer.end_s is not None
            maker = position[users[0].producer.operator]
            yield _Work(
                Task(transfer_name(transfer), transfer.occupies, ()),
                picoseconds(transfer.time_s),
                min(edge.consumer.lag for edge in users),
                (transfer.start_s, transfer.end_s, maker, transfer.tensor, number[transfer.target]),
            )


def _first(plan: Plan, at: Mapping[str, int]) -> list[int]:
    """Return the tasks with an operator that reads a graph input or no activation at all."""
    inputs = set(plan.inputs)
    starting = (
        at[operator.id]
        for operator in plan.operators
        if not (read := plan.tensors.keys() & set(operator.inputs)) or read & inputs
    )
    return sorted(set(starting))
