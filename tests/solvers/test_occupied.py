"""The exact mapper, and all others, where transfers keep something busy: against brute force."""

from __future__ import annotations

import random
from dataclasses import replace
from math import inf

import pytest

from parapipe.errors import MappingError
from parapipe.solvers.energy.trade_offs import trade_offs
from parapipe.solvers.problem import Flow, MappingProblem
from parapipe.solvers.registry import MAPPERS, mapper
from parapipe.solvers.verify import verify
from tests.cases.occupying_cases import FAR, LINK, MICRO, RECEIVER, SENDER, any_problem, fork
from tests.cases.oracle import optimum_s
from tests.cases.random_dags import placements

fine = mapper("fine")
OTHERS = [name for name in MAPPERS.names() if name not in ("fine", "fine_milp")]


@pytest.mark.parametrize(
    ("transfer_resource", "optimum"), [(SENDER, 6.0), (RECEIVER, 5.0), (LINK, 5.0)]
)
def test_what_a_transfer_occupies_decides_the_optimum(transfer_resource, optimum) -> None:
    schedule = fine(fork(transfer_resource), time_limit_s=10, seed=0)
    assert optimum_s(fork(transfer_resource)) == schedule.makespan_s == optimum
    assert schedule.certificate.proven


def test_short_problems_are_proven_in_fractions_of_a_microsecond() -> None:
    long = fork(SENDER)
    rows = tuple(tuple(s * 3.3e-7 for s in row) for row in long.time_s)
    far = tuple(tuple(s * 3.3e-7 for s in row) for row in FAR)
    schedule = fine(replace(long, time_s=rows, flows=(Flow(0, (1,), far),)), time_limit_s=9, seed=0)
    assert schedule.certificate.proven
    assert schedule.certificate.bound_s == pytest.approx(6 * 3.3e-7, rel=3e-3)


def test_the_optimum_may_be_a_placement_that_is_not_best_for_pure_delays() -> None:
    # as delays the two transfers overlap, and both readers run best on processor 1: 1 + 3 + 1 + 1
    rows = ((1.0, inf), (5.5, 1.0), (inf, 1.0))
    flows = (Flow(0, (1,), FAR), Flow(0, (2,), FAR))
    problem = MappingProblem(rows, flows, (0, ((1,), (2,))), LINK)
    free = fine(MappingProblem(rows, flows, problem.structure), time_limit_s=10, seed=0)
    schedule = fine(problem, time_limit_s=10, seed=0)
    assert (free.makespan_s, free.processor) == (6.0, (0, 1, 1))
    assert (schedule.makespan_s, schedule.processor) == (6.5, (0, 0, 1))
    assert schedule.certificate.proven


def test_a_chain_is_not_proven_by_its_delays_alone() -> None:
    # 1's tensor from outside and 0's output both need processor 1, which receives them
    rows = ((1.0, inf), (inf, 1.0))
    flows = (Flow(0, (1,), FAR), Flow(None, (1,), FAR, 0))
    problem = MappingProblem(rows, flows, (0, 1), RECEIVER)
    schedule = fine(problem, time_limit_s=10, seed=0)
    assert schedule.certificate.proven
    assert schedule.makespan_s == optimum_s(problem) == 7.0


@pytest.mark.parametrize("block", range(11))
def test_fine_proves_what_trying_everything_finds_and_no_mapper_is_better(block) -> None:
    for seed in range(20 * block, 20 * block + 20):
        problem = any_problem(seed)
        best_s = optimum_s(problem)
        jobs = problem.operators + 3 * len(problem.flows)
        exact = fine(problem, time_limit_s=30, seed=0)
        assert exact.certificate.proven, seed
        assert abs(exact.makespan_s - best_s) <= MICRO * jobs, seed
        assert exact.certificate.bound_s <= best_s + 1e-12, seed
        for name in OTHERS:
            found = mapper(name)(problem, time_limit_s=5, seed=0)
            verify(problem, found)
            assert found.makespan_s >= best_s - 1e-12, (name, seed)
            claim = found.certificate
            if claim.proves == "makespan":
                assert claim.bound_s <= best_s + 1e-12, (name, seed)
                if claim.proven:
                    assert found.makespan_s <= best_s + MICRO * jobs, (name, seed)


@pytest.mark.parametrize("seed", range(3))
def test_without_time_there_is_a_schedule_and_an_honest_bound(seed) -> None:
    problem = any_problem(seed, most_operators=40)
    schedule = fine(problem, time_limit_s=0, seed=0)
    assert 0 <= schedule.certificate.bound_s <= schedule.makespan_s


def test_counted_work_gives_the_same_schedule_again() -> None:
    problem = any_problem(34, most_operators=30)
    first, again = (fine(problem, time_limit_s=2, seed=0, deterministic=True) for _ in range(2))
    assert (first.processor, first.start_s, first.transfers) == (
        again.processor,
        again.start_s,
        again.transfers,
    )
    assert first.certificate.bound_s == again.certificate.bound_s


def test_sets_of_times_and_energies_are_as_dense_as_they_say() -> None:
    for seed in range(12):
        problem = any_problem(seed, most_operators=4)
        rng = random.Random(seed)
        energy_j = tuple(tuple(rng.randint(1, 50) * 1e-3 for _ in row) for row in problem.time_s)
        fastest = fine(problem, time_limit_s=5, seed=0)
        found = trade_offs(problem, energy_j, fastest, resolution=0.05, time_limit_s=5, seed=0)
        worse = 1 + found.resolution + 1e-9
        for processor in placements(problem):
            rows = zip(problem.time_s, processor, strict=True)
            tied = tuple(tuple(t if p == q else inf for p, t in enumerate(r)) for r, q in rows)
            time_s = optimum_s(replace(problem, time_s=tied))
            taken_j = sum(row[p] for row, p in zip(energy_j, processor, strict=True))
            assert any(
                point.makespan_s <= time_s * worse + 20 * MICRO
                and point.energy_j <= taken_j * worse
                for point in found.schedules
            ), (seed, processor)


def test_the_papers_model_as_it_stands_refuses_such_problems_in_one_sentence() -> None:
    with pytest.raises(MappingError, match="choose the mapper 'fine'"):
        mapper("fine_milp")(fork(SENDER), time_limit_s=10, seed=0)
