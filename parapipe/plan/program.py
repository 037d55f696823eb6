"""What an executor does with a plan: the tasks of each resource in order, and what they wait for.

A *resource* is a processor, or a link that transfers share. Its thread takes its tasks in their
order, round after round: a task that lags l periods works on frame r - l in round r. A *task* is an
operator, or a segment where a runtime compiles those, or a transfer that keeps something busy.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, TypeAlias

from parapipe.pipeline.mapping import Placement
from parapipe.pipeline.sustained import EventGraph, executed
from parapipe.plan.mapped import mapped, route_of
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
    if unit == "operator":
        runs: dict[int, list[tuple[Placement, ...]]] = {
            p: [(at,) for at in order] for p, order in view.orders.items()
        }
        named = {v: v for v in view.placements}
    else:
        cut = segments(plan, prompt=True)
        runs = {
            p: [tuple(view.placements[v] for v in each.operators) for each in cut[name]]
            for p, name in enumerate(view.resources)
            if name in cut
        }
        named = {each.operators[0]: f"{p}/{i}" for p in cut for i, each in enumerate(cut[p])}
    slots = [queue or each.queue_depth for each in view.moved]
    found = executed(view.mapping, runs, slots=slots, moves=moves)
    tasks: list[Task] = []
    for names in found.works:
        if names[0] < 0:
            moving = view.moved[-1 - names[0]]
            tasks.append(Task(transfer_name(moving), moving.occupies or "", ()))
        else:
            run = tuple(plan.operators[v].id for v in names)
            tasks.append(Task(named[run[0]], view.name(view.placements[run[0]]), run))
    handovers = (
        Handover(transfer.tensor, u, v)
        for i, transfer in enumerate(view.moved)
        for edge in view.users[route_of(transfer)]
        for u, v in pairwise(
            found.event[name]
            for name in (edge.made.operator, -1 - i, edge.read.operator)
            if name in found.event
        )
    )
    inputs = set(plan.inputs)
    first = {
        found.event[v]
        for v, operator in enumerate(plan.operators)
        if not (read := plan.tensors.keys() & set(operator.inputs)) or read & inputs
    }
    return Program(
        tasks=tuple(tasks),
        resources=tuple(dict.fromkeys(task.resource for task in tasks)),
        graph=found.graph,
        handovers=tuple(dict.fromkeys(handovers)),
        first=tuple(sorted(first)),
    )


def transfer_name(transfer: Transfer) -> str:
    """Return the name of the task that a transfer is, if it keeps something busy."""
    return f"{transfer.tensor} → {transfer.target}"
