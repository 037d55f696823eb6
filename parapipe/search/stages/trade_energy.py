"""Configurations whose units may run longer and take less energy than their shortest schedules."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf

from parapipe.cost.cost_table import CostTable
from parapipe.graph.partition import Partition
from parapipe.problems.identical_processors import NO_REPLICAS, Replicable
from parapipe.problems.method import Question
from parapipe.problems.problems import Request
from parapipe.problems.solve import Reporter, SolvedQuestions, Solver, solve
from parapipe.problems.time_energy import Tolerance, unit_tolerance
from parapipe.processes.deadline import Deadline
from parapipe.search.stages.candidates import StageCandidate
from parapipe.search.stages.search import search
from parapipe.search.stages.stage_table import StageTable
from parapipe.search.stages.unit_schedules import (
    Choice,
    OptionsByPlace,
    cheapest_first,
    options_lookup,
    unit_options,
)
from parapipe.solvers.assignments.enumerate import is_small
from parapipe.solvers.problem import MappingProblem
from parapipe.solvers.replay import is_as_short
from parapipe.solvers.schedule import Answer, Schedule

SETS_SHARE = 0.5  # of the resolution, for the units' schedules; the search has the rest
SEARCH_PARTS = 3  # unit tolerance, stages, labels
COARSE_PARTS = 4  # units, units between two cuts, stages, labels
TIME_PARTS = 20  # a set gets at most one part of so many of a problem's time limit
TIMES_ALL = 8  # all sets together get at most so many times that
NO_ANSWERS = SolvedQuestions({}, frozenset())


@dataclass(frozen=True, slots=True)
class TradedStages:
    """What was found by trading time for energy within units.

    Parameters
    ----------
    candidates
        Configurations.
    resolution
        For every configuration there is one that is larger by at most this share in latency,
        period and energy each. Infinite if nothing of the kind is known.
    timed_out
        Whether time limits ended the search for some schedules.
    """

    candidates: Sequence[StageCandidate]
    resolution: float
    timed_out: bool


@dataclass(frozen=True, slots=True)
class Sets:
    """The schedules of each choice's unit that trade time for energy.

    Parameters
    ----------
    fastest
        The shortest schedules; of equally short ones those of least energy that are known.
    questions
        What was asked for each of them.
    solved
        Sets of schedules, where an operator has a choice of processors.
    """

    fastest: tuple[Choice, ...]
    questions: tuple[Question, ...]
    solved: SolvedQuestions


def joint_questions(
    requests: Sequence[Request], costs: CostTable, resolution: float
) -> dict[MappingProblem, Question]:
    """Return, of small problems, the questions for the shortest schedule and for those that trade.

    Parameters
    ----------
    resolution
        As for `find_sets`.
    """
    return {
        request.problem: _make_question(request, None, costs, resolution * SETS_SHARE)
        for request in requests
        if _has_choice(request.problem) and is_small(request.problem)
    }


def find_sets(
    fastest: Sequence[Choice],
    costs: CostTable,
    solver: Solver,
    *,
    resolution: float,
    report: Reporter,
    before: SolvedQuestions = NO_ANSWERS,
    deadline: Deadline | None = None,
    meanwhile: Callable[[Sets], None] | None = None,
) -> Sets:
    """Find schedules that trade time for energy.

    Parameters
    ----------
    fastest
        The shortest schedules.
    solver
        How they were found. A set gets a twentieth of its time limit, or its share of eight times
        that if this is less.
    resolution
        As for `trade_energy`.
    before
        Answers to what was asked before, those to `joint_questions` among them.
    deadline
        As for `solve`.
    meanwhile
        Called with the sets so far whenever the deadline says that a look is due.
    """
    share = resolution * SETS_SHARE
    questions = tuple(_make_question(c.request, c.schedule, costs, share) for c in fastest)
    with_choice = [question for question in questions if _has_choice(question.problem)]
    part = min(1 / TIME_PARTS, TIMES_ALL / max(1, len(set(with_choice))))
    method = replace(solver.method, time_limit_s=solver.method.time_limit_s * part)

    def make_sets(solved: SolvedQuestions) -> Sets:
        choices = (
            _with_less_energy(choice, solved.answers.get(question))
            for choice, question in zip(fastest, questions, strict=True)
        )
        return Sets(tuple(choices), questions, solved)

    earlier = {each: answer for each, answer in before.answers.items() if answer.resolution < inf}
    solved = solve(
        with_choice,
        replace(solver, method=method),
        report,
        deadline=deadline,
        meanwhile=meanwhile
        and (lambda some: meanwhile(make_sets(SolvedQuestions(some, frozenset())))),
        earlier=earlier,
    )
    cached = solved.cached | before.cached.intersection(solved.answers)
    return make_sets(replace(solved, cached=cached))


def trade_energy(
    sets: Sets,
    partition: Partition,
    costs: CostTable,
    *,
    resolution: float,
    identical: Sequence[Sequence[int]] = (),
    replicable: Replicable = NO_REPLICAS,
    incumbents: Sequence[StageCandidate] = (),
    most_stages: int | None = None,
    deadline: Deadline | None = None,
    better: Callable[[Sequence[StageCandidate]], None] | None = None,
) -> TradedStages:
    """Search with all schedules of the sets, if there is any besides the shortest ones.

    The resolution asked for is shared out between the sets of schedules and the search:
    (1 + sets) (1 + units) (1 + stages) (1 + labels)^processors = 1 + resolution.

    Parameters
    ----------
    resolution
        Relative, of latency, period and energy; 0 for exact sets and an exact search.
    identical, replicable, incumbents, most_stages, deadline, better
        As for `search`.
    """
    share = resolution * SETS_SHARE
    fastest, questions = sets.fastest, sets.questions
    answers = sets.solved.answers
    more = [
        Choice(choice.request, schedule)
        for choice, question in zip(fastest, questions, strict=True)
        if question in answers
        for schedule in answers[question].schedules
        if schedule.timing != choice.schedule.timing
    ]
    answered = [answer.resolution for answer in answers.values()]
    single = [c.schedule for c in fastest if not _has_choice(c.request.problem)]
    reached = max([0.0, *answered, *map(_excess_of, single)])
    timed_out = any(answer.timed_out for answer in answers.values()) or any(
        not choice.schedule.certificate.proven for choice in fastest
    )
    if not more:
        return TradedStages((), reached, timed_out)
    search_share = ((1 + resolution) / (1 + share)) ** (1 / SEARCH_PARTS) - 1
    units = partition.cuts.last
    options = cheapest_first(unit_options([*fastest, *more], costs))
    stages, tolerance = _table_within(options, units, len(costs.processors), search_share, deadline)
    candidates = search(
        units,
        stages,
        costs.static_power_w,
        tolerance=tolerance,
        identical=identical,
        replicable=replicable,
        incumbents=incumbents,
        most_stages=most_stages,
        arrival_s=costs.least_frame_s,
        power_budget_w=costs.power_budget_w,
        line=partition.cuts.line,
        deadline=deadline,
        better=better,
    )
    reached = (1 + reached) * (1 + search_share) ** SEARCH_PARTS - 1
    return TradedStages(candidates, reached, timed_out)


def coarse_table(
    options: OptionsByPlace, units: int, processors: int, resolution: float, deadline: Deadline
) -> tuple[StageTable, Tolerance]:
    """Return the stages of a large network, and the tolerance of a search that has few cuts."""
    share = (1 + resolution) ** (1 / COARSE_PARTS) - 1
    return _table_within(options, units, processors, share, deadline)


def _table_within(
    options: OptionsByPlace, units: int, processors: int, share: float, deadline: Deadline | None
) -> tuple[StageTable, Tolerance]:
    """Return stages and a tolerance: units, stages and labels may be off by a share each."""
    tolerance = unit_tolerance(_least_ns(options, units), share)
    stages = StageTable(options_lookup(options), tolerance=tolerance, deadline=deadline)
    return stages, Tolerance(share, (1 + share) ** (1 / processors) - 1)


def _with_less_energy(choice: Choice, answer: Answer | None) -> Choice:
    """Take the first schedule of a set if it is as short as the shortest known."""
    if answer is None:
        return choice
    first, problem = answer.schedules[0], choice.request.problem
    if not is_as_short(problem, first.makespan_s, choice.schedule.makespan_s):
        return choice
    # what is proven of the one holds for the other
    return Choice(choice.request, replace(first, certificate=choice.schedule.certificate))


def _make_question(
    request: Request, fastest: Schedule | None, costs: CostTable, resolution: float
) -> Question:
    energy_j = tuple(
        tuple(costs.energy_j(v, p) if time_s < inf else inf for p, time_s in enumerate(row))
        for v, row in zip(request.operators, request.problem.time_s, strict=True)
    )
    return Question(request.problem, energy_j, resolution, fastest)


def _has_choice(problem: MappingProblem) -> bool:
    """Tell whether an operator has a choice of processors, so that there can be a trade."""
    return any(sum(time_s < inf for time_s in row) > 1 for row in problem.time_s)


def _excess_of(schedule: Schedule) -> float:
    """Share by which a schedule may be longer than the shortest."""
    claim = schedule.certificate
    if claim.proven or schedule.makespan_s <= 0:
        return 0.0
    return schedule.makespan_s / claim.bound_s - 1 if claim.bound_s > 0 else inf


def _least_ns(options: OptionsByPlace, units: int) -> list[int]:
    """Return times of units that, added up, exceed that of no option, whatever it runs."""
    least = [sys.maxsize] * units
    for (begin, _), some in options.items():
        for option in some:
            share_ns = option.time_ns // option.units
            for unit in range(begin, begin + option.units):
                least[unit] = min(least[unit], share_ns)
    return [time_ns if time_ns < sys.maxsize else 0 for time_ns in least]
