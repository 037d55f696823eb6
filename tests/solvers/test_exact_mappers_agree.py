"""`fine`, the literal MILP and brute force: three ways to one optimum."""

from __future__ import annotations

from math import inf

import pytest

from parapipe.reference_mappers.fine_milp import map as fine_milp
from parapipe.solvers.problem import MappingProblem
from parapipe.solvers.registry import mapper
from tests.cases.oracle import optimum_s
from tests.cases.small_problems import small_problem

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # PuLP announces PuLP 4

MICRO = 1e-6
HEURISTICS = ("cpop", "heft", "heft_cpop", "layer_switched", "peft", "streams")
fine = mapper("fine")


def proven_s(solve, problem: MappingProblem) -> float:
    certificate = solve(problem, time_limit_s=60, seed=0).certificate
    assert certificate.proven
    assert certificate.proves == "makespan"
    assert certificate.bound_s == pytest.approx(certificate.objective_s, abs=1e-12)
    return certificate.objective_s


@pytest.mark.parametrize("batch", range(10))
def test_all_three_find_the_same_optimum(batch) -> None:
    for seed in range(30 * batch, 30 * (batch + 1)):
        problem = small_problem(seed)
        best_s = pytest.approx(optimum_s(problem), abs=1e-12)
        assert proven_s(fine, problem) == best_s, seed
        assert proven_s(fine_milp, problem) == best_s, seed


@pytest.mark.parametrize("batch", range(10))
def test_fine_finds_the_optimum_of_brute_force(batch) -> None:
    for seed in range(1000 + 50 * batch, 1000 + 50 * (batch + 1)):
        problem = small_problem(seed)
        assert proven_s(fine, problem) == pytest.approx(optimum_s(problem), abs=1e-12), seed


@pytest.mark.parametrize("seed", range(3000, 3012))
def test_both_exact_mappers_agree_where_brute_force_takes_too_long(seed) -> None:
    problem = small_problem(seed, least=8, most=9)
    assert proven_s(fine, problem) == pytest.approx(proven_s(fine_milp, problem), abs=1e-12)


@pytest.mark.parametrize("seed", range(4000, 4040))
def test_fine_is_never_worse_than_a_list_schedule_or_a_sequence_even_without_time(seed) -> None:
    problem = small_problem(seed, least=10, most=25)
    least_s = min(mapper(name)(problem, time_limit_s=1, seed=0).makespan_s for name in HEURISTICS)
    for limit_s in (0.0, 0.05):
        exact = fine(problem, time_limit_s=limit_s, seed=0)
        assert exact.makespan_s <= least_s
        assert exact.certificate.bound_s <= exact.makespan_s


@pytest.mark.parametrize("seed", range(4000, 4020))
def test_no_other_mapper_beats_a_proof_of_fine(seed) -> None:
    problem = small_problem(seed, least=10, most=14)
    best_s = proven_s(fine, problem)
    for name in (*HEURISTICS, "coarse"):
        assert mapper(name)(problem, time_limit_s=1, seed=0).makespan_s >= best_s - 1e-12


def test_a_proof_is_told_of_the_schedule_that_was_proven() -> None:
    # the best sequence waits where its own order need not, and the search finds nothing better
    problem = small_problem(46)
    assert mapper("layer_switched")(problem, time_limit_s=1, seed=0).makespan_s > 0.0085
    assert proven_s(fine, problem) == pytest.approx(0.007588)


def test_the_small_problems_hold_what_they_promise() -> None:
    problems = [small_problem(seed) for seed in range(300)]
    rows = [row for problem in problems for row in problem.time_s]
    assert any(inf in row for row in rows)
    assert any(sum(t < inf for t in row) == 1 for row in rows)  # pinned
    assert any(max(row) == 0 for row in rows)
    flows = [flow for problem in problems for flow in problem.flows]
    assert any(len(flow.consumers) > 1 and flow.producer is not None for flow in flows)
    assert any(flow.location is not None for flow in flows)
    assert any(flow.transfer_s[0][1] != flow.transfer_s[1][0] for flow in flows)
