"""Where a plan puts its operators, and which tensors go from one to another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from parapipe.plan.schema import Operator, Plan


@dataclass(frozen=True, slots=True)
class Place:
    """Where and when an operator runs.

    Parameters
    ----------
    operator
        Its id.
    processor
        Name of the processor.
    stage
        Position of the stage in the plan.
    position
        Position among the operators of that processor.
    lag
        Periods between the frame's entry and the operator's turn.
    start_s, end_s
        Seconds from the start of the stage.
    """

    operator: str
    processor: str
    stage: int
    position: int
    lag: int
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class Edge:
    """A tensor that one placed operator makes and another reads."""

    tensor: str
    producer: Place
    consumer: Place


def every_place(plan: Plan) -> Iterator[Place]:
    """Yield all places: stage by stage, and for each processor in its order."""
    for stage, entry in enumerate(plan.stages):
        for processor in entry.processors:
            for position, at in enumerate(processor.operators):
                yield Place(
                    at.operator, processor.name, stage, position, at.lag, at.start_s, at.end_s
                )


def reads(operator: Operator, plan: Plan) -> tuple[str, ...]:
    """Activations that an operator reads, each once, in order."""
    return tuple(dict.fromkeys(name for name in operator.inputs if name in plan.tensors))


def producers(plan: Plan) -> dict[str, str]:
    """Operator that makes each tensor; the first if there are several. Graph inputs have none."""
    made: dict[str, str] = {}
    for operator in plan.operators:
        for name in operator.outputs:
            if name:
                made.setdefault(name, operator.id)
    return made


def edges(plan: Plan) -> tuple[Edge, ...]:
    """Tensors between placed operators, in the order of the operators that read them.

    What cannot be placed (an operator in no stage, a tensor without a producer) has no edge: to
    find that is the verifier's business.
    """
    placed: dict[str, Place] = {}
    for place in every_place(plan):
        placed.setdefault(place.operator, place)
    made = producers(plan)
    return tuple(
        Edge(name, placed[made[name]], placed[operator.id])
        for operator in plan.operators
        if operator.id in placed
        for name in reads(operator, plan)
        if made.get(name) in placed
    )
