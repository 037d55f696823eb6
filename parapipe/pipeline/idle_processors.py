"""Schedules that use all processors they may, beside the shortest ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from parapipe.mapping.all_used import all_used
from parapipe.mapping.problem import MappingProblem
from parapipe.mapping.renamed import back, renamed, renamed_schedule
from parapipe.mapping.schedule import Schedule
from parapipe.pipeline.choices import Choice
from parapipe.pipeline.deadline import Deadline
from parapipe.pipeline.identical import names_in_order


def using_all(
    fastest: Sequence[Choice], identical: Sequence[Sequence[int]], deadline: Deadline
) -> Iterator[Choice]:
    """Yield schedules that use all processors they may, where the shortest ones do not."""
    found: dict[MappingProblem, Schedule | None] = {}
    for choice in fastest:
        if deadline.over:
            return
        problem, names = choice.request.problem, None
        if identical:
            names = names_in_order(problem, identical)
            problem = renamed(problem, names)
        if problem not in found:
            shortest = renamed_schedule(choice.schedule, names) if names else choice.schedule
            found[problem] = all_used(problem, shortest)
        if schedule := found[problem]:
            yield Choice(
                choice.request, renamed_schedule(schedule, back(names)) if names else schedule
            )
