"""What an executor does with a plan: the tasks of each resource in order, and what they wait for.

A *resource* is a processor, or a link that transfers share. Its thread takes its tasks in their
order, round after round: a task that lags l periods works on frame r - l in round r. A *task* is an
operator, or a segment where a runtime compiles those, or a transfer that keeps something busy.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import merge
from itertools import pairwise
from operator import attrgetter
from typing import Literal, TypeAlias

from parapipe.pipeline.sustained import EventGraph, picoseconds
from parapipe.plan.mapped import MappedPlan, mapped, route_of
from parapipe.plan.schema import Plan, Transfer
from parapipe.plan.segments import segments

Unit: TypeAlias = Literal["operator", "segment"]


@dataclass(frozen=True, slots=True)
class Task:
    """Work of a resource on one frame, without interruption.

    Parameters
    ----------
    name
        Of an operator its id, of a segment its processor and number from 0 (`gpu/0`), of a transfer
        its tensor and where it goes (`relu_1 → gpu`); unique in the resource.
    resource
        Name of the processor or link.
    operators
        Ids of the operators that it runs; none for a transfer.
    """

    name: str
    resource: str
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
        Resource after resource, each in its order.
    resources
        Processors as the plan lists them, then links.
    graph
        Times, order and waits of the tasks, by their indices.
    handovers
        Of all tensors that go from one processor to another.
    first
        Indices of the tasks that a frame's arrival starts: they read a graph input, or nothing.
    """

    tasks: tuple[Task, ...]
    resources: tuple[str, ...]
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
    view = mapped(plan)
    works: list[_Work] = []
    taken: list[tuple[int, ...]] = []
    for name in view.resources:
        moved = (work for work in _moves(view) if moves and work.task.resource == name)
        run = (work for work in _runs(view, unit) if work.task.resource == name)
        begin = len(works)
        in_order = attrgetter("key")
        works += merge(run, sorted(moved, key=in_order), key=in_order)  # the plan's order stays
        taken.append(tuple(range(begin, len(works))))
    at = {v: i for i, work in enumerate(works) for v in work.task.operators}
    mover = {work.task.name: i for i, work in enumerate(works) if not work.task.operators}
    waits: list[tuple[int, int, int]] = []
    channels: list[tuple[int, int, int]] = []
    handovers: list[Handover] = []
    for transfer in plan.transfers:
        moving = mover.get(transfer_name(transfer)) if transfer.occupies else None
        users = view.users[route_of(transfer)]
        u = at[view.id(users[0].made)]
        for v in dict.fromkeys(at[view.id(edge.read)] for edge in users):
            via = (u, v) if moving is None else (u, moving, v)
            delay_ps = picoseconds(transfer.time_s) if moving is None else 0
            for a, b in pairwise(via):
                waits.append((a, b, delay_ps))
                handovers.append(Handover(transfer.tensor, a, b))
            channels.append((u, v, queue or transfer.queue_depth))
    inputs = set(plan.inputs)
    first = {
        at[operator.id]
        for operator in plan.operators
        if not (read := plan.tensors.keys() & set(operator.inputs)) or read & inputs
    }
    return Program(
        tasks=tuple(work.task for work in works),
        resources=tuple(r for r, order in zip(view.resources, taken, strict=True) if order),
        graph=EventGraph(
            time_ps=tuple(work.time_ps for work in works),
            lag=tuple(work.lag for work in works),
            orders=tuple(order for order in taken if order),
            waits=tuple(dict.fromkeys(waits)),
            channels=tuple(channels),
        ),
        handovers=tuple(dict.fromkeys(handovers)),
        first=tuple(sorted(first)),
    )


def transfer_name(transfer: Transfer) -> str:
    """Return the name of the task that a transfer is, if it keeps something busy."""
    return f"{transfer.tensor} → {transfer.target}"


def _runs(view: MappedPlan, unit: Unit) -> Iterator[_Work]:
    """Yield what processors run, in the order in which they do."""
    units = (
        ((v, (v,)) for v in view.placements)
        if unit == "operator"
        else (
            (f"{name}/{number}", segment.operators)
            for name, some in segments(view.plan, prompt=True).items()
            for number, segment in enumerate(some)
        )
    )
    for name, operators in units:
        places = [view.placements[v] for v in operators]
        begin = places[0]
        yield _Work(
            Task(name, view.name(begin), operators),
            sum(picoseconds(at.end_s - at.start_s) for at in places),
            begin.lag,
            (*begin.in_order, "", -1),
        )


def _moves(view: MappedPlan) -> Iterator[_Work]:
    """Yield the transfers that keep something busy."""
    for moved in view.mapping.transfers:
        if moved.resource is not None:
            name = f"{moved.tensor} → {view.resources[moved.target]}"
            yield _Work(
                Task(name, view.resources[moved.resource], ()),
                picoseconds(moved.time_s),
                moved.lag,
                (moved.start_s, moved.end_s, moved.producer, moved.tensor, moved.target),
            )
