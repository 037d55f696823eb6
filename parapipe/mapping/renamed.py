"""The same problem, and the same answer, with processors that have other numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from parapipe.mapping.problem import Flow, MappingProblem
from parapipe.mapping.schedule import Answer, Energies, Schedule

# `names[p]`: the new number of processor p.
Names = tuple[int, ...]
Matrix = tuple[tuple[float, ...], ...]


def renamed(problem: MappingProblem, names: Names) -> MappingProblem:
    """Return the problem with other numbers of its processors; links keep theirs."""
    old, links = back(names), problem.transfer_resource
    return MappingProblem(
        renamed_columns(problem.time_s, names),
        tuple(
            Flow(
                flow.producer,
                flow.consumers,
                _renamed_matrix(flow.transfer_s, old),
                None if flow.location is None else names[flow.location],
            )
            for flow in problem.flows
        ),
        problem.structure,
        links and tuple(tuple(_resource(links[p][q], names) for q in old) for p in old),
    )


def renamed_columns(rows: Energies, names: Names) -> Energies:
    """Return times or energies of operators on processors with other numbers of these."""
    old = back(names)
    return tuple(tuple(row[p] for p in old) for row in rows)


def renamed_schedule(schedule: Schedule, names: Names) -> Schedule:
    """Return the schedule of the problem with these numbers of its processors."""
    return replace(
        schedule,
        processor=tuple(names[p] for p in schedule.processor),
        transfers=tuple(replace(t, target=names[t.target]) for t in schedule.transfers),
    )


def renamed_answer(answer: Answer, names: Names) -> Answer:
    """Return the answer to the problem with these numbers of its processors."""
    return replace(
        answer, schedules=tuple(renamed_schedule(each, names) for each in answer.schedules)
    )


def back(names: Sequence[int]) -> Names:
    """Return the names that undo others."""
    old = [0] * len(names)
    for p, new in enumerate(names):
        old[new] = p
    return tuple(old)


@lru_cache(maxsize=4096)  # problems of one unit share their tensors
def _renamed_matrix(transfer_s: Matrix, old: Names) -> Matrix:
    return tuple(tuple(transfer_s[p][q] for q in old) for p in old)


def _resource(resource: int | None, names: Names) -> int | None:
    return resource if resource is None or resource >= len(names) else names[resource]
