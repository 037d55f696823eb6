"""What an executor does with a plan: the tasks of each resource in order, and what they wait for.

A *resource* is a processor, or a link that transfers share. Its thread takes its tasks in their
order, round after round: a task that lags l periods works on frame r - l in round r. A *task* is an
operator, or a segment where a runtime compiles those, or a transfer that keeps something busy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, TypeAlias

from parapipe.mappings.event_graph import EventGraph, execution_of
from parapipe.mappings.mapping import Placement
from parapipe.plan.mapped import mapping_view, route_of
from parapipe.plan.schema import Plan, Transfer
from parapipe.plan.segments import NO_PIECES, Pieces, segments

Unit: TypeAlias = Literal["operator", "segment"]


@dataclass(frozen=True, slots=True)
class Task:
    """Work of a resource on one frame, without interruption.

    Parameters
    ----------
    name
        Of an operator its id, of a segment its processor and number from 0 (`gpu/0`), of a piece
        its name, of a transfer its tensor and where it goes (`relu_1 → gpu`); unique in the
        resource.
    resource
        Name of the processor or link; of processors that take turns on frames, the first one.
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
    graph
        Times, order and waits of the tasks, by their indices.
    handovers
        Of all tensors that go from one processor to another.
    needs
        Tasks that make what another one reads, and that one; transfers stand between them.
    first
        Indices of the tasks that a frame's arrival starts: they read a graph input, or nothing.
    replicas
        Processors that take turns on frames, in that order, by the name of the first.
    """

    tasks: tuple[Task, ...]
    graph: EventGraph
    handovers: tuple[Handover, ...]
    needs: tuple[tuple[int, int], ...]
    first: tuple[int, ...]
    replicas: Mapping[str, tuple[str, ...]]

    def processors(self, task: Task) -> tuple[str, ...]:
        """Names of the processors or the link that a task keeps busy, frames in turn."""
        return self.replicas.get(task.resource, (task.resource,))

    def processor(self, task: Task, frame: int) -> str:
        """Name of the one that it keeps busy for a frame."""
        names = self.processors(task)
        return names[frame % len(names)]

    @property
    def in_turn(self) -> tuple[tuple[str, ...], ...]:
        """All resources, those together that take turns on frames."""
        return tuple(dict.fromkeys(map(self.processors, self.tasks)))

    @property
    def resources(self) -> tuple[str, ...]:
        """Processors as the plan lists them, those that take turns together, then links."""
        return tuple(name for names in self.in_turn for name in names)


def program(
    plan: Plan,
    *,
    unit: Unit = "operator",
    queue: int | None = None,
    moves: bool = True,
    pieces: Pieces = NO_PIECES,
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
    pieces
        Names by the ids of operators that are run at one go; the others are as `unit` says.

    Raises
    ------
    PlanError
        If pieces would wait for each other in a circle.
    """
    view = mapping_view(plan)
    if unit == "operator" and not pieces:
        runs: dict[int, list[tuple[Placement, ...]]] = {
            p: [(at,) for at in order] for p, order in view.orders.items()
        }
        task_names = {v: v for v in view.placements}
    else:
        cuts = segments(plan, prompt=True, single=unit == "operator", pieces=pieces)
        runs = {
            p: [tuple(view.placements[v] for v in each.operators) for each in cuts[name]]
            for p, name in enumerate(view.resources)
            if name in cuts
        }
        task_names = {each.operators[0]: f"{p}/{i}" for p in cuts for i, each in enumerate(cuts[p])}
        if unit == "operator":
            task_names = {v: v for v in task_names}
        several = Counter(pieces[v] for v in task_names if v in pieces)
        for v in task_names.keys() & pieces.keys():
            name, at = pieces[v], view.placements[v]
            more = f" of {view.name(at)} at lag {at.lag}" if several[name] > 1 else ""
            task_names[v] = f"{name}{more}"
    slots = [queue or each.queue_depth for each in view.moved]
    execution = execution_of(view.mapping, runs, slots=slots, moves=moves)
    tasks: list[Task] = []
    for names in execution.works:
        if names[0] < 0:
            transfer = view.moved[-1 - names[0]]
            tasks.append(Task(transfer_name(transfer), transfer.occupies or "", ()))
        else:
            ids = tuple(plan.operators[v].id for v in names)
            tasks.append(Task(task_names[ids[0]], view.name(view.placements[ids[0]]), ids))
    handovers = (
        Handover(transfer.tensor, u, v)
        for i, transfer in enumerate(view.moved)
        for edge in view.users[route_of(transfer)]
        for u, v in pairwise(
            execution.event[name]
            for name in (edge.made.operator, -1 - i, edge.read.operator)
            if name in execution.event
        )
    )
    needs = (
        (execution.event[edge.made.operator], execution.event[edge.read.operator])
        for edge in view.edges
    )
    inputs = set(plan.inputs)
    first = {
        execution.event[v]
        for v, operator in enumerate(plan.operators)
        if not (read := plan.tensors.keys() & set(operator.inputs)) or read & inputs
    }
    return Program(
        tasks=tuple(tasks),
        graph=execution.graph,
        handovers=tuple(dict.fromkeys(handovers)),
        needs=tuple(sorted({(u, v) for u, v in needs if u != v})),
        first=tuple(sorted(first)),
        replicas=view.replicas,
    )


def transfer_name(transfer: Transfer) -> str:
    """Return the name of the task that a transfer is, if it keeps something busy."""
    return f"{transfer.tensor} → {transfer.target}"
