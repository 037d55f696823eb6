from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parapipe.modulo.least_energy import bound_j, dynamic_j, energy_front, least_energy
from parapipe.modulo.least_period import least_period, period_s
from parapipe.solvers.problem import MappingProblem
from tests.cases.occupying_cases import any_problem
from tests.cases.random_dags import placements

OPTIONS = {"time_limit_s": 20, "seed": 0, "deterministic": True}
ROUNDED = 1e-5
RESOLUTION = 0.1


def energies(problem, seed):
    rng = random.Random(seed)
    return tuple(tuple(rng.choice([0.0, 1e-3, 2e-3, 7e-3]) for _ in row) for row in problem.time_s)


def test_two_operators_move_to_the_frugal_processor_as_the_period_grows() -> None:
    # 1 s and 3 J each on processor 0, 2 s and 1 J each on processor 1
    problem = MappingProblem(((1.0, 2.0),) * 2, (), (0, 1))
    energy_j = ((3.0, 1.0),) * 2
    found = [least_energy(problem, energy_j, limit_s, **OPTIONS) for limit_s in (1.9, 2.0, 4.0)]
    assert found[0] is None
    assert [each.energy_j for each in found[1:]] == [4.0, 2.0]
    free = energy_front(problem, energy_j, (0.0, 0.0), **OPTIONS)
    assert [(each.period_s, each.energy_j) for each in free] == [(2.0, 4.0), (4.0, 2.0)]
    # with static power the second processor alone takes 2 + 4 · 0.5, both 4 + 2 · (2 + 0.5)
    static = energy_front(problem, energy_j, (2.0, 0.5), **OPTIONS)
    assert [(each.period_s, each.energy_j) for each in static] == [(2.0, 9.0), (4.0, 4.0)]


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([1.0, 1.2, 2.0]))
def test_no_assignment_within_the_period_takes_less_by_brute_force(seed, times) -> None:
    problem = any_problem(seed, most_operators=6)
    energy_j = energies(problem, seed)
    limit_s = least_period(problem, **OPTIONS).period_s * times
    if not limit_s:
        return

    def least_within(most_s):  # 1.2 times a load may be another one, but for rounding
        within = [each for each in placements(problem) if period_s(problem, each) <= most_s]
        return min(dynamic_j(energy_j, each) for each in within)

    lowest_j, least_j = least_within(limit_s * (1 + ROUNDED)), least_within(limit_s)
    found = least_energy(problem, energy_j, limit_s, **OPTIONS)
    assert found.period_s <= limit_s * (1 + ROUNDED)
    assert found.energy_j == dynamic_j(energy_j, found.processor)
    assert lowest_j * (1 - ROUNDED) <= found.energy_j <= least_j * (1 + ROUNDED)
    assert found.bound_j <= least_j * (1 + 1e-12)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10_000))
def test_the_front_is_that_of_all_assignments_to_its_resolution(seed) -> None:
    problem = any_problem(seed, most_operators=5)
    if not least_period(problem, **OPTIONS).period_s or 0.0 in map(max, problem.time_s):
        return
    energy_j, power_w = energies(problem, seed), (0.5, 1.0, 3.0)
    front = energy_front(problem, energy_j, power_w, resolution=RESOLUTION, **OPTIONS)

    def taken(processor):
        time_s = period_s(problem, processor)
        static_w = sum(power_w[p] for p in set(processor))
        return time_s, dynamic_j(energy_j, processor) + time_s * static_w

    for point in front:
        assert (point.period_s, point.energy_j) == pytest.approx(taken(point.processor), rel=1e-12)
    for time_s, joules in map(taken, placements(problem)):
        for at_s in (time_s, 1.03 * time_s, 2 * time_s):
            assert bound_j(front, at_s) <= joules * (1 + ROUNDED)
    longer = 1 + RESOLUTION + ROUNDED
    for time_s, joules in map(taken, placements(problem)):
        reached = [each.energy_j for each in front if each.period_s <= time_s * longer]
        assert min(reached) <= joules * longer
        assert all(each.bound_j <= joules * (1 + 1e-9) for each in front if time_s <= each.period_s)


@pytest.mark.parametrize("asked", [8, 9, 12])
def test_a_search_that_is_over_keeps_what_it_has_and_proves_nothing_else(asked) -> None:
    problem, power_w = any_problem(3, most_operators=5), (0.5, 1.0, 3.0)
    energy_j = energies(problem, 3)
    answers = iter([False] * asked)  # once for each set of processors, then once for each period
    front = energy_front(problem, energy_j, power_w, over=lambda: next(answers, True), **OPTIONS)
    assert 1 <= len(front) <= asked - 7
    for processor in placements(problem):
        time_s = period_s(problem, processor)
        joules = dynamic_j(energy_j, processor)
        joules += time_s * sum(power_w[p] for p in set(processor))
        assert bound_j(front, time_s) <= joules * (1 + ROUNDED)
    assert energy_front(problem, energy_j, power_w, over=lambda: True, **OPTIONS) == ()
