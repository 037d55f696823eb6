"""Questions for the shortest schedule and for those that trade energy, asked at once or apart."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest

from parapipe.mapping.verify import verify, verify_answer
from parapipe.pipeline.method import Method
from parapipe.pipeline.question import Question, answer_of, shortest_of
from tests.cases.energy_cases import every_pair, pairs_of, pareto, random_case, wide

METHOD = Method("auto", 60.0, 0)


@pytest.mark.parametrize("mapper", ["auto", "fine"])
@pytest.mark.parametrize("seed", range(20))
def test_asked_at_once_both_are_what_they_are_apart(seed, mapper) -> None:
    problem, energy_j = random_case(seed)
    method = replace(METHOD, mapper=mapper)
    alone = answer_of(Question(problem), method).schedules[0]
    both = Question(problem, energy_j, 0.0)
    found = answer_of(both, method)
    verify_answer(problem, found, energy_j)
    assert pairs_of(found) == pareto(every_pair(problem, energy_j))
    ((question, answer),) = shortest_of({both: found}).items()
    assert question == Question(problem)
    (first,) = answer.schedules
    verify(problem, first)
    assert first.makespan_s == pytest.approx(alone.makespan_s)
    assert first.certificate.proven


def test_of_a_large_problem_the_shortest_schedule_alone_is_the_answer() -> None:
    problem, energy_j = wide(24)
    method = replace(METHOD, time_limit_s=0.005)
    both = Question(problem, energy_j, 0.05)
    found = answer_of(both, method)
    assert len(found.schedules) == 1
    assert found.resolution == inf


def test_they_are_kept_apart_from_sets_for_a_shortest_schedule_that_is_known() -> None:
    problem, energy_j = random_case(1)
    both = Question(problem, energy_j, 0.05)
    known = replace(both, fastest=answer_of(Question(problem), METHOD).schedules[0])
    assert both == known
    assert both.keys(METHOD) != known.keys(METHOD)


def test_processors_are_renamed_without_a_shortest_schedule_too() -> None:
    problem, energy_j = random_case(1)
    names = tuple(reversed(range(problem.processors)))
    there = Question(problem, energy_j, 0.0).renamed(names)
    assert there.energy_j == tuple(row[::-1] for row in energy_j)
