"""Configurations whose units may run longer and take less energy than their shortest schedules."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from math import inf

from parapipe.cost.cost_table import CostTable
from parapipe.graph.partition import Partition
from parapipe.mapping.schedule import Schedule
from parapipe.pipeline.cache import Cache
from parapipe.pipeline.choices import Choice, options_of
from parapipe.pipeline.fronts import Homes
from parapipe.pipeline.grain import grain
from parapipe.pipeline.method import Method
from parapipe.pipeline.rough_search import Tolerance, search_within
from parapipe.pipeline.runs import Option, Runs
from parapipe.pipeline.search import Candidate
from parapipe.pipeline.solve_trade_offs import Answered, Question, has_choice, solve_trade_offs

SETS_SHARE = 0.5  # of the resolution, for the units' schedules; the search has the rest
SEARCH_PARTS = 3  # runs, stages, labels


@dataclass(frozen=True, slots=True)
class Traded:
    """What was found by trading time for energy within units.

    Parameters
    ----------
    candidates, runs
        Configurations, and the runs that their stages were found in.
    choices
        All schedules that options may stand for, the shortest ones first.
    resolution
        For every configuration there is one that is larger by at most this share in latency,
        period and energy each. Infinite if nothing of the kind is known.
    timed_out
        Whether time limits ended the search for some schedules.
    """

    candidates: Sequence[Candidate]
    runs: Runs
    choices: Sequence[Choice]
    answered: Answered
    resolution: float
    timed_out: bool


def questions_of(fastest: Sequence[Choice], costs: CostTable) -> list[Question]:
    """Return what to ask about each shortest schedule, in the same order."""
    return [
        Question(
            choice.request.problem,
            tuple(
                tuple(costs.energy_j(v, p) if t < inf else inf for p, t in enumerate(row))
                for v, row in zip(
                    choice.request.operators,
                    choice.request.problem.time_s,
                    strict=True,
                )
            ),
            choice.schedule,
        )
        for choice in fastest
    ]


def trade_energy(
    fastest: Sequence[Choice],
    partition: Partition,
    costs: CostTable,
    method: Method,
    *,
    resolution: float,
    jobs: int,
    cache: Cache | None,
    executor: Executor | None,
    tell: Callable[[int, int], None],
) -> Traded:
    """Search with all schedules of the sets, if there is any besides the shortest ones.

    The resolution asked for is shared out between the sets of schedules and the search:
    (1 + sets) (1 + runs) (1 + stages) (1 + labels)^processors = 1 + resolution.

    Parameters
    ----------
    fastest
        The shortest schedules.
    method, jobs, cache, executor
        As for `solve_trade_offs`.
    resolution
        Relative, of latency, period and energy; 0 for exact sets and an exact search.
    tell
        As for `solve_trade_offs`.
    """
    questions = questions_of(fastest, costs)
    share = resolution * SETS_SHARE
    answered = solve_trade_offs(
        [question for question in questions if has_choice(question.problem)],
        method,
        resolution=share,
        jobs=jobs,
        cache=cache,
        executor=executor,
        tell=tell,
    )
    sets = answered.sets
    more = [
        Choice(choice.request, point, point.certificate.energy)
        for choice, question in zip(fastest, questions, strict=True)
        if question in sets
        for point in sets[question].schedules
        if point.certificate.energy
        if (point.processor, point.start_s) != (choice.schedule.processor, choice.schedule.start_s)
    ]
    reached = max(
        *(found.resolution for found in sets.values()),
        *(_excess(choice.schedule) for choice in fastest if not has_choice(choice.request.problem)),
        0.0,
    )
    timed_out = any(found.timed_out for found in sets.values()) or any(
        not choice.schedule.certificate.proven for choice in fastest
    )
    choices = [*fastest, *more]
    options = _cheapest_first(options_of(choices, costs))
    search_share = ((1 + resolution) / (1 + share)) ** (1 / SEARCH_PARTS) - 1
    runs = Runs(
        lambda unit, homes: options.get((unit, homes), ()),
        grain=grain(_least_ns(options, len(partition.units)), search_share),
    )
    if not more:
        return Traded((), runs, choices, answered, reached, timed_out)
    label_share = (1 + search_share) ** (1 / len(costs.processors)) - 1
    tolerance = Tolerance(search_share, label_share)
    candidates = search_within(len(partition.units), runs, costs.static_power_w, tolerance)
    reached = (1 + reached) * (1 + search_share) ** SEARCH_PARTS - 1
    return Traded(candidates, runs, choices, answered, reached, timed_out)


def _excess(schedule: Schedule) -> float:
    """Share by which a schedule may be longer than the shortest."""
    claim = schedule.certificate
    if claim.proven or schedule.makespan_s <= 0:
        return 0.0
    return schedule.makespan_s / claim.bound_s - 1 if claim.bound_s > 0 else inf


def _cheapest_first(
    options: Mapping[tuple[int, Homes], Sequence[Option]],
) -> dict[tuple[int, Homes], list[Option]]:
    """Leave out options that another one on no other processors matches."""
    return {
        key: [
            option
            for option in some
            if not any(
                other is not option
                and other.units == option.units
                and other.homes == option.homes
                and other.processors != option.processors
                and not other.processors & ~option.processors
                and other.time_ns <= option.time_ns
                and other.energy_nj <= option.energy_nj
                for other in some
            )
        ]
        for key, some in options.items()
    }


def _least_ns(options: Mapping[tuple[int, Homes], Sequence[Option]], units: int) -> list[int]:
    """Return times of units that, added up, exceed that of no option, whatever it runs."""
    least = [sys.maxsize] * units
    for (begin, _), some in options.items():
        for option in some:
            share_ns = option.time_ns // option.units
            for unit in range(begin, begin + option.units):
                least[unit] = min(least[unit], share_ns)
    return [time_ns if time_ns < sys.maxsize else 0 for time_ns in least]
