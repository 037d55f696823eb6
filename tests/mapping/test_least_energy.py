"""The least energy under a deadline, against all schedules there are."""

from __future__ import annotations

from dataclasses import replace

import pytest

from parapipe.errors import MappingError, VerificationError
from parapipe.mapping.energy.least_energy import least_energy
from parapipe.mapping.energy.trade_off import verify_trade_off
from parapipe.mapping.problem import MappingProblem
from tests.cases.energy_cases import MICRO, NANO, every_pair, random_case, wide


@pytest.mark.parametrize("block", range(4))
def test_the_least_energy_under_any_deadline_equals_brute_force(block):
    for seed in range(300 + 10 * block, 310 + 10 * block):
        problem, energy_j = random_case(seed)
        pairs = every_pair(problem, energy_j)
        times = sorted({time for time, _ in pairs})
        for deadline_us in (times[0], times[len(times) // 2]):
            found = least_energy(
                problem, energy_j, deadline_s=deadline_us * MICRO, time_limit_s=60, seed=0
            )
            expected = min(energy for time, energy in pairs if time <= deadline_us)
            assert round(found.energy_j / NANO) == expected
            assert found.schedule.makespan_s <= deadline_us * MICRO * (1 + 1e-12)
            assert found.claim.proven
            assert found.claim.gap == 0
            assert found.claim.proves == "energy"


def test_a_deadline_that_no_schedule_meets_is_refused_on_both_sides_of_the_boundary():
    problem, energy_j = random_case(301)
    first_us = min(time for time, _ in every_pair(problem, energy_j))
    least_energy(problem, energy_j, deadline_s=first_us * MICRO, time_limit_s=60, seed=0)
    with pytest.raises(MappingError, match=r"no schedule that ends within .* exists"):
        least_energy(problem, energy_j, deadline_s=(first_us - 1) * MICRO, time_limit_s=60, seed=0)


def test_without_a_deadline_every_operator_runs_where_it_takes_least():
    problem, energy_j = wide(5)
    found = least_energy(problem, energy_j, deadline_s=None, time_limit_s=60, seed=0)
    assert found.energy_j == pytest.approx(sum(map(min, energy_j)))


def test_what_ends_in_time_in_whole_microseconds_only_is_not_an_answer():
    # 1.9 µs each; two of them end after 3.8 µs, in whole microseconds after 2.
    problem = MappingProblem(((1.9e-6, 1e-6), (1.9e-6, 1e-6)), (), (0, 1))
    found = least_energy(
        problem, ((NANO, 5 * NANO),) * 2, deadline_s=3.5e-6, time_limit_s=60, seed=0
    )
    assert found.schedule.makespan_s <= 3.5e-6
    assert round(found.energy_j / NANO) == 6
    assert not found.claim.proven
    assert found.claim.bound_j == pytest.approx(2 * NANO)
    assert found.claim.gap == pytest.approx(4 / 6)


def test_without_time_nothing_is_found_and_that_is_said():
    problem, energy_j = wide(6)
    with pytest.raises(MappingError, match="was found in time"):
        least_energy(problem, energy_j, deadline_s=0.05, time_limit_s=0, seed=0)


def test_the_verifier_compares_claims_with_energies():
    problem, energy_j = random_case(302)
    found = least_energy(problem, energy_j, deadline_s=None, time_limit_s=60, seed=0)
    verify_trade_off(problem, energy_j, found)
    for claim, said in (
        (replace(found.claim, objective_j=found.claim.objective_j * 2), "are claimed"),
        (replace(found.claim, bound_j=found.claim.bound_j * 2), "lies above its energy"),
        (replace(found.claim, bound_j=float("nan")), "not finite"),
    ):
        with pytest.raises(VerificationError, match=said):
            verify_trade_off(problem, energy_j, replace(found, claim=claim))
