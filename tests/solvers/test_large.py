"""Problems too large for a search: never wrong, and near to their bounds where loads decide."""

from __future__ import annotations

import random
from time import perf_counter

import pytest
from hypothesis import given, settings

from parapipe.solvers.energy.trade_offs import trade_offs
from parapipe.solvers.fine import list_schedules
from parapipe.solvers.problem import Flow, MappingProblem
from parapipe.solvers.registry import mapper
from parapipe.solvers.verify import verify, verify_answer
from tests.cases.random_dags import dags, least_makespan_s

MICRO = 1e-6
NO_SEARCH = "list scheduling and loads"


def fan(branches: int, seed: int = 0) -> MappingProblem:
    """Branches of two operators that all meet in one; three unrelated processors."""
    rng = random.Random(seed)
    apart = tuple(tuple(0.0 if p == q else 100 * MICRO for q in range(3)) for p in range(3))
    rows = [tuple(rng.randint(50, 500) * MICRO for _ in range(3)) for _ in range(2 * branches)]
    rows.append((500 * MICRO,) * 3)
    flows = [Flow(v, (v + 1,), apart) for v in range(0, 2 * branches, 2)]
    flows += [Flow(v + 1, (2 * branches,), apart) for v in range(0, 2 * branches, 2)]
    pairs = tuple((v, v + 1) for v in range(0, 2 * branches, 2))
    return MappingProblem(tuple(rows), tuple(flows), (pairs, 2 * branches))


@settings(max_examples=60, deadline=None)
@given(dags(most_operators=5))
def test_bound_and_schedule_are_on_either_side_of_the_optimum(problem) -> None:
    found = list_schedules.scheduled(problem, seed=0, began_s=perf_counter())
    verify(problem, found)
    optimum_s = least_makespan_s(problem)
    assert found.certificate.bound_s <= optimum_s + 1e-12
    assert found.makespan_s >= optimum_s - 1e-12


@pytest.mark.parametrize("name", ["auto", "fine"])
def test_a_thousand_branches_come_within_five_percent_of_the_bound(name) -> None:
    problem = fan(1000)
    found = mapper(name)(problem, time_limit_s=60, seed=0)
    verify(problem, found)
    assert not found.certificate.proven
    assert found.certificate.solver == NO_SEARCH
    assert 0 < found.certificate.gap < 0.05


@pytest.mark.parametrize(("operators", "searched"), [(401, False), (400, True)])
def test_the_limit_of_the_search_is_said_in_operators(operators, searched) -> None:
    problem = fan(200) if operators == 401 else without_the_last(fan(200))
    assert problem.operators == operators == list_schedules.MOST_SEARCHED + (not searched)
    found = mapper("fine")(problem, time_limit_s=0.1, seed=0, deterministic=True)
    assert found.certificate.solver.startswith("CP-SAT ") == searched
    assert (found.certificate.solver == NO_SEARCH) != searched


def without_the_last(problem: MappingProblem) -> MappingProblem:
    """Leave out the operator in which all branches meet."""
    flows = (each for each in problem.flows if problem.operators - 1 not in each.consumers)
    return MappingProblem(problem.time_s[:-1], tuple(flows), problem.structure[:-1])


def test_time_is_traded_for_energy_between_the_two_ends_only() -> None:
    problem = fan(250)
    rng = random.Random(1)
    energy_j = tuple(tuple(rng.uniform(0.1, 1.0) for _ in row) for row in problem.time_s)
    fastest = mapper("fine")(problem, time_limit_s=60, seed=0)
    found = trade_offs(problem, energy_j, fastest, resolution=0.05, time_limit_s=60, seed=0)
    verify_answer(problem, found, energy_j)
    assert len(found.schedules) == 2
    assert {each.certificate.solver for each in found.schedules} == {NO_SEARCH}
    assert found.resolution > 0.05


def test_where_transfers_occupy_a_link_the_bound_of_pure_delays_holds() -> None:
    problem = fan(250)
    link = tuple(tuple(None if p == q else 3 for q in range(3)) for p in range(3))
    occupying = MappingProblem(problem.time_s, problem.flows, problem.structure, link)
    found = mapper("auto")(occupying, time_limit_s=60, seed=0)
    verify(occupying, found)
    pure = mapper("auto")(problem, time_limit_s=60, seed=0)
    assert found.certificate.bound_s == pytest.approx(pure.certificate.bound_s)
