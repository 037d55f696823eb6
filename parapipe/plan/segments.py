"""Segments: maximal runs of operators that a processor can execute at one go.

A runtime that compiles whole pieces of a network (a session, a delegate) asks which operators it
may put into one piece. A piece starts when all its inputs are there and hands out its outputs at
its end. So a run of operators can be one piece if nothing in it, but the first operator, waits for
another processor; otherwise the first would be held up by what only a later one needs, and
processors whose pieces wait for each other could never start.

Since a piece hands out its outputs at its end, another processor of the stage may have to wait for
operators that it does not need. Cut *promptly*, a piece ends where another processor waits for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from parapipe.plan.places import Place, edges, every_place, reads
from parapipe.plan.schema import Operator, Plan


@dataclass(frozen=True, slots=True)
class Segment:
    """A run of a processor's operators that needs no other processor in between.

    Parameters
    ----------
    processor
        Name of the processor.
    stage, lag
        Number of its stage, and the frame lag that all its operators work at.
    operators
        Ids, in the processor's order.
    receives
        Tensors that come from other processors and that no earlier segment has waited for. The
        first operator reads them all.
    inputs
        Tensors that it reads and does not make: those received, graph inputs, and those made or
        received by earlier segments of the processor; in order of first use.
    outputs
        Tensors that it makes and that other segments read or that leave the graph; in order.
    """

    processor: str
    stage: int
    lag: int
    operators: tuple[str, ...]
    receives: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


def segments(plan: Plan, *, prompt: bool = False) -> dict[str, tuple[Segment, ...]]:
    """Cut each processor's operators into segments, in the order in which it runs them.

    A new segment begins where an operator reads a tensor from another processor that the processor
    has not yet waited for, and where the frame lag changes. Nowhere else: so segments are maximal
    and there is one way only to make them. They are convex: no way through the network leaves a
    segment and comes back to it. And they wait for each other in no circle, even when each hands
    out its outputs only at its end: along any way from segment to segment, each is entered at its
    first operator, so a circle of segments would be a circle of operators.

    Parameters
    ----------
    plan
        A plan that `verify_plan` accepts.
    prompt
        Also end a segment with an operator that another processor of the stage waits for: of those
        that one operator there needs from this processor, the last. Then no operator starts later
        within its stage than the order of the plan makes it, and no cut could be left out.

    Returns
    -------
    dict
        Segments by the processor's name, in the plan's order of processors.
    """
    awaited = _awaited(plan)
    ends = _waited_for(plan, awaited) if prompt else frozenset()
    runs: dict[str, list[list[Place]]] = {processor.name: [] for processor in plan.processors}
    for place in every_place(plan):
        mine = runs[place.processor]
        last = mine[-1][-1] if mine else None
        if (
            last is None
            or awaited[place.operator]
            or last.lag != place.lag
            or last.operator in ends
        ):
            mine.append([])
        mine[-1].append(place)
    operators = {operator.id: operator for operator in plan.operators}
    readers = _readers(plan)
    return {
        name: tuple(_segment(run, plan, operators, readers, awaited) for run in mine)
        for name, mine in runs.items()
    }


def _awaited(plan: Plan) -> dict[str, tuple[str, ...]]:
    """Tensors from other processors that each operator is the first on its processor to read.

    A frame comes to operators of lower lag first.
    """
    first: dict[tuple[str, str], Place] = {}
    for edge in edges(plan):
        reader = edge.consumer
        if edge.producer.processor != reader.processor:
            key = (edge.tensor, reader.processor)
            first[key] = min(first.get(key, reader), reader, key=lambda at: (at.lag, at.position))
    awaited: dict[str, list[str]] = {operator.id: [] for operator in plan.operators}
    for (tensor, _), place in first.items():
        awaited[place.operator].append(tensor)
    return {operator: tuple(names) for operator, names in awaited.items()}


def _waited_for(plan: Plan, awaited: Mapping[str, tuple[str, ...]]) -> frozenset[str]:
    """Operators that another processor waits for within the stage, the last for each that waits."""
    last: dict[tuple[str, str], Place] = {}
    for edge in edges(plan):
        made, reader = edge.producer, edge.consumer
        if edge.tensor in awaited[reader.operator] and made.lag == reader.lag:
            key = (made.processor, reader.operator)
            last[key] = max(last.get(key, made), made, key=lambda at: at.position)
    return frozenset(place.operator for place in last.values())


def _readers(plan: Plan) -> dict[str, set[str]]:
    """Operators that read each tensor."""
    readers: dict[str, set[str]] = {}
    for operator in plan.operators:
        for name in reads(operator, plan):
            readers.setdefault(name, set()).add(operator.id)
    return readers


def _segment(
    run: list[Place],
    plan: Plan,
    operators: dict[str, Operator],
    readers: dict[str, set[str]],
    awaited: dict[str, tuple[str, ...]],
) -> Segment:
    ids = tuple(place.operator for place in run)
    made = dict.fromkeys(name for v in ids for name in operators[v].outputs if name)
    read = dict.fromkeys(name for v in ids for name in reads(operators[v], plan))
    return Segment(
        processor=run[0].processor,
        stage=run[0].stage,
        lag=run[0].lag,
        operators=ids,
        receives=awaited[ids[0]],
        inputs=tuple(name for name in read if name not in made),
        outputs=tuple(
            name
            for name in made
            if name in plan.outputs or not readers.get(name, set()).issubset(ids)
        ),
    )
