"""Schedules as options of the search: which unit they belong to, and what they take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum

from parapipe.cost.cost_table import CostTable
from parapipe.pareto import nondominated
from parapipe.problems.problems import Request
from parapipe.problems.time_energy import Locations
from parapipe.search.stages.options import Option, Options
from parapipe.solvers.problem import NANO
from parapipe.solvers.schedule import Certificate, EnergyClaim, Schedule


@dataclass(frozen=True, slots=True)
class Choice:
    """A schedule that answers a request."""

    request: Request
    schedule: Schedule

    @property
    def claim(self) -> Certificate | EnergyClaim:
        """What is proven: that it is short, or that it takes little energy for its time."""
        return self.schedule.certificate.energy or self.schedule.certificate


OptionsByPlace = Mapping[tuple[int, Locations], Sequence[Option]]


def unit_options(choices: Sequence[Choice], costs: CostTable) -> OptionsByPlace:
    """Return the options of every unit by the locations before it, dominated ones left out."""
    every: dict[tuple[int, Locations], list[Option]] = {}
    energies_nj: dict[tuple[tuple[int, ...], tuple[int, ...]], int] = {}
    for choice in choices:
        request, schedule = choice.request, choice.schedule
        placed = request.operators, schedule.processor
        if placed not in energies_nj:
            each_j = (costs.energy_j(v, p) for v, p in zip(*placed, strict=True))
            energies_nj[placed] = sum(round(energy_j * NANO) for energy_j in each_j)
        option = Option(
            sum(1 << p for p in schedule.used),
            request.locations_out,
            _time_ns(choice),
            energies_nj[placed],
            choice,
            request.end - request.begin,
        )
        every.setdefault((request.begin, request.locations_in), []).append(option)
    return {key: _drop_dominated(options) for key, options in every.items()}


def _time_ns(choice: Choice) -> int:
    """Return the makespan; on one processor, the sum of what its operators and its waits take.

    So one processor takes as long for operators as one problem as for one after the other.
    """
    problem, schedule = choice.request.problem, choice.schedule
    if len(schedule.used) > 1:
        return round(schedule.makespan_s * NANO)
    rows = zip(problem.time_s, schedule.processor, strict=True)
    each_s = [row[p] for row, p in rows]
    waits_s = schedule.makespan_s - fsum(each_s)
    return sum(round(time_s * NANO) for time_s in each_s) + round(waits_s * NANO)


def options_lookup(options: OptionsByPlace) -> Options:
    """Return options by unit and locations; none where there are none."""
    return lambda unit, locations: options.get((unit, locations), ())


def cheapest_first(options: OptionsByPlace) -> OptionsByPlace:
    """Leave out options that another one on no other processors matches."""
    return {
        key: [
            option
            for option in some
            if not any(
                other is not option
                and other.units == option.units
                and other.locations == option.locations
                and other.processors != option.processors
                and not other.processors & ~option.processors
                and other.time_ns <= option.time_ns
                and other.energy_nj <= option.energy_nj
                for other in some
            )
        ]
        for key, some in options.items()
    }


def _drop_dominated(options: Sequence[Option]) -> list[Option]:
    groups: dict[tuple[int, int, Locations], list[Option]] = {}
    for option in options:
        groups.setdefault((option.units, option.processors, option.locations), []).append(option)
    return [
        option
        for group in groups.values()
        for option in (
            nondominated(group, lambda option: (option.time_ns, option.energy_nj))
            if len(group) > 1
            else group
        )
    ]
