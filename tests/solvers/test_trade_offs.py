"""Sets of schedules that trade time for energy, against all schedules there are."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from parapipe.errors import VerificationError
from parapipe.solvers.energy.trade_offs import trade_offs
from parapipe.solvers.fine.mapper import map as fine
from parapipe.solvers.lists import heft
from parapipe.solvers.problem import Flow, MappingProblem
from parapipe.solvers.schedule import Answer
from parapipe.solvers.verify import verify, verify_answer
from tests.cases.energy_cases import MICRO, NANO, every_pair, pairs_of, pareto, random_case, wide


def solved(case, resolution, **options):
    problem, energy_j = case
    fastest = fine(problem, time_limit_s=60, seed=0)
    options = {"time_limit_s": 60, "seed": 0, **options}
    return trade_offs(problem, energy_j, fastest, resolution=resolution, **options)


@pytest.mark.parametrize("block", range(7))
def test_at_resolution_0_the_set_is_all_that_any_schedule_can_reach(block):
    for seed in range(10 * block, 10 * block + 10):
        case = random_case(seed)
        found = solved(case, 0)
        assert pairs_of(found) == pareto(every_pair(*case))
        assert found.resolution <= 1e-9


@pytest.mark.parametrize("resolution", [0.03, 0.1, 0.5])
def test_every_schedule_is_matched_within_the_resolution(resolution):
    for seed in range(100, 120):
        case = random_case(seed)
        found = solved(case, resolution)
        kept = pairs_of(found)
        assert found.resolution <= resolution
        share = found.resolution + 1e-9
        for time, energy in pareto(every_pair(*case)):
            assert any(t <= time * (1 + share) and e <= energy * (1 + share) for t, e in kept)


def test_times_between_microseconds_are_matched_within_what_is_stated():
    for seed in range(200, 215):
        problem, energy_j = random_case(seed, 4)
        rng = random.Random(seed)
        rows = tuple(tuple(t * rng.uniform(0.7, 1.0) for t in row) for row in problem.time_s)
        problem = replace(problem, time_s=rows)
        found = solved((problem, energy_j), 0)
        # in picoseconds, so that nothing is rounded away
        finer = replace(
            problem,
            time_s=tuple(tuple(t * 1e6 for t in row) for row in rows),
            flows=tuple(
                replace(f, transfer_s=tuple(tuple(t * 1e6 for t in r) for r in f.transfer_s))
                for f in problem.flows
            ),
        )
        share = found.resolution + 1e-6
        for time, energy in pareto(every_pair(finer, energy_j)):
            assert any(
                point.makespan_s <= time * 1e-12 * (1 + share)
                and point.energy_j <= energy * NANO * (1 + share)
                for point in found.schedules
            )


def test_the_ends_are_the_shortest_schedule_and_the_least_energy():
    # Two independent operators. p is fast and takes 9 nJ each, q slow and takes 1 nJ each.
    rows = ((2 * MICRO, 7 * MICRO), (2 * MICRO, 7 * MICRO))
    energy_j = ((9 * NANO, 1 * NANO),) * 2
    found = solved((MappingProblem(rows, (), (0, 1)), energy_j), 0)
    assert pairs_of(found) == [(4, 18), (7, 10), (14, 2)]
    assert solved((MappingProblem(rows, (), (0, 1)), energy_j), 3).resolution <= 3


def test_of_equal_energies_the_shortest_schedule_counts():
    rows = ((5 * MICRO, 5 * MICRO), (5 * MICRO, 5 * MICRO))
    found = solved((MappingProblem(rows, (), (0, 1)), ((NANO, NANO),) * 2), 0)
    assert pairs_of(found) == [(5, 2)]


def test_a_limit_on_schedules_is_kept_and_the_resolution_says_what_it_costs():
    case = wide(3, branches=3)
    every = solved(case, 0.01)
    few = solved(case, 0.01, limit=2)
    assert every.resolution <= 0.01 < few.resolution
    assert len(few.schedules) <= 2 < len(every.schedules)


def test_without_time_the_ends_stand_with_an_honest_resolution():
    problem, energy_j = wide(1, branches=5)
    fastest = heft(problem, time_limit_s=1, seed=0)
    found = trade_offs(problem, energy_j, fastest, resolution=0.05, time_limit_s=0, seed=0)
    finer = solved((problem, energy_j), 0.3, time_limit_s=10)
    assert (found.timed_out, finer.timed_out) == (True, False)
    assert found.schedules[0].makespan_s <= fastest.makespan_s
    assert found.resolution > 0.05
    share = found.resolution + 1e-9
    for point in finer.schedules:
        assert any(
            other.makespan_s <= point.makespan_s * (1 + share)
            and other.energy_j <= point.energy_j * (1 + share)
            for other in found.schedules
        )


def test_counted_work_gives_the_same_set_again():
    case = wide(2, branches=4)
    options = {"time_limit_s": 0.5, "deterministic": True}
    once, again = (solved(case, 0.01, **options) for _ in range(2))
    assert once.resolution == again.resolution
    assert [p.processor for p in once.schedules] == [p.processor for p in again.schedules]
    assert [p.start_s for p in once.schedules] == [p.start_s for p in again.schedules]


def test_claims_of_energy_are_true_for_every_point():
    case = random_case(20)
    for point in solved(case, 0).schedules[1:]:
        limit_us = (
            round(point.certificate.energy.deadline_s / MICRO)
            if point.certificate.energy.deadline_s
            else 10**9
        )
        least = min(e for t, e in every_pair(*case) if t <= limit_us)
        assert point.certificate.energy.proven
        assert (
            round(point.certificate.energy.bound_j / NANO) == least == round(point.energy_j / NANO)
        )


@pytest.mark.parametrize("resolution", [-0.1, float("nan"), float("inf")])
def test_a_resolution_that_makes_no_sense_is_refused(resolution):
    with pytest.raises(ValueError, match="resolution"):
        solved(random_case(0), resolution)


def test_missing_energies_are_all_named():
    rows = ((MICRO, MICRO), (MICRO, float("inf")))
    problem = MappingProblem(rows, (Flow(0, (1,), ((0, 0), (0, 0))),), (0, 1))
    energies = ((float("inf"), NANO), (-NANO, float("inf")))
    with pytest.raises(ValueError, match=r"\[\(0, 0\), \(1, 0\)\]"):
        solved((problem, energies), 0)


def test_the_verifier_turns_down_a_set_with_wrong_energies_or_without_order():
    problem, energy_j = wide(3, branches=3)
    found = solved((problem, energy_j), 0.1)
    wrong = tuple((row[0], row[1], row[2] * 2) for row in energy_j)
    with pytest.raises(VerificationError, match="are claimed"):
        verify_answer(problem, found, wrong)
    with pytest.raises(VerificationError, match="ascend"):
        verify_answer(problem, replace(found, schedules=found.schedules[::-1]), energy_j)
    with pytest.raises(VerificationError, match="holds no schedule"):
        verify_answer(problem, Answer((), 0.0, timed_out=False), energy_j)


def test_the_verifier_compares_claims_with_energies():
    problem, energy_j = random_case(302)
    found = solved((problem, energy_j), 0).schedules[-1]
    verify(problem, found, energy_j)
    claim = found.certificate.energy
    for wrong, said in (
        (replace(claim, objective_j=claim.objective_j * 2), "are claimed"),
        (replace(claim, bound_j=claim.bound_j * 2), "lies above its energy"),
        (replace(claim, bound_j=float("nan")), "not finite"),
    ):
        certificate = replace(found.certificate, energy=wrong)
        with pytest.raises(VerificationError, match=said):
            verify(problem, replace(found, certificate=certificate), energy_j)
