"""Schedules as options of the search: which unit they belong to, and what they take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from parapipe.cost.cost_table import CostTable
from parapipe.mapping.schedule import Certificate, EnergyClaim, Schedule
from parapipe.pipeline.front import nondominated
from parapipe.pipeline.fronts import Homes
from parapipe.pipeline.problems import Request
from parapipe.pipeline.runs import Option

NANO = 1e9


@dataclass(frozen=True, slots=True)
class Choice:
    """A schedule that answers a request.

    Parameters
    ----------
    claim
        What is proven: that it is short, or that it takes little energy for its time.
    """

    request: Request
    schedule: Schedule
    claim: Certificate | EnergyClaim


def options_of(
    choices: Sequence[Choice], costs: CostTable
) -> dict[tuple[int, Homes], list[Option]]:
    """Return the options of every unit by the homes before it, dominated ones left out."""
    every: dict[tuple[int, Homes], list[Option]] = {}
    for number, choice in enumerate(choices):
        request, schedule = choice.request, choice.schedule
        energy_j = sum(
            costs.energy_j(v, p) for v, p in zip(request.operators, schedule.processor, strict=True)
        )
        option = Option(
            sum(1 << p for p in schedule.used),
            request.homes_out,
            round(schedule.makespan_s * NANO),
            round(energy_j * NANO),
            number,
            request.end - request.begin,
        )
        every.setdefault((request.begin, request.homes_in), []).append(option)
    return {key: _undominated(options) for key, options in every.items()}


def _undominated(options: Sequence[Option]) -> list[Option]:
    alike: dict[tuple[int, int, Homes], list[Option]] = {}
    for option in options:
        alike.setdefault((option.units, option.processors, option.homes), []).append(option)
    return [
        option
        for group in alike.values()
        for option in nondominated(group, lambda option: (option.time_ns, option.energy_nj))
    ]
