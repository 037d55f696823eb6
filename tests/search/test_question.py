"""Questions for the shortest schedule and for those that trade energy, asked at once or apart."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest

from parapipe.problems import method as question_module
from parapipe.problems.method import (
    Method,
    Question,
    answer_in_time,
    answer_of,
    shortest_of,
    solve_one,
)
from parapipe.processes.deadline import Deadline
from parapipe.solvers.verify import verify, verify_answer
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


@pytest.mark.parametrize("mapper", ["auto", "fine", "coarse", "heft", "layer_switched"])
@pytest.mark.parametrize("proven", [True, False])
@pytest.mark.parametrize(("left_s", "limit_s"), [(10.0, 10.0), (60.0, 60.0), (70.0, 60.0)])
def test_an_answer_by_a_deadline_is_that_of_the_method_or_none(
    mapper, proven, left_s, limit_s, monkeypatch
) -> None:
    limits = []

    def solved(problem, method, **_given):
        limits.append(method.time_limit_s)
        found = solve_one(problem, replace(method, mapper="heft"))
        return replace(found, certificate=replace(found.certificate, proven=proven))

    monkeypatch.setattr(question_module, "solve_one", solved)
    deadline = Deadline(left_s, clock=lambda: 0.0)
    found = answer_in_time(Question(random_case(1)[0]), replace(METHOD, mapper=mapper), deadline)
    assert limits == [limit_s]
    cut = limit_s < METHOD.time_limit_s
    assert (found is None) == (cut and not proven and mapper != "heft")


def test_a_deadline_that_is_over_leaves_no_time_to_answer() -> None:
    question = Question(random_case(1)[0])
    assert answer_in_time(question, METHOD, Deadline(0.0, clock=lambda: 0.0)) is None


@pytest.mark.parametrize("left_s", [1e-6, 30.0])
def test_of_schedules_that_trade_energy_none_by_a_deadline_are_fewer(left_s) -> None:
    problem, energy_j = random_case(3)
    fastest = answer_of(Question(problem), METHOD).schedules[0]
    question = Question(problem, energy_j, 0.0, fastest)
    found = answer_in_time(question, METHOD, Deadline(left_s, clock=lambda: 0.0))
    assert found is None or pairs_of(found) == pairs_of(answer_of(question, METHOD))
    assert found or left_s < 1
