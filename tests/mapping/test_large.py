"""Problems too large for a search: never wrong, and near to their bounds where loads decide."""

from __future__ import annotations

import random
from time import perf_counter

import pytest
from hypothesis import given, settings

from parapipe.mapping.energy.trade_offs import trade_offs
from parapipe.mapping.fine import cp_sat, large
from parapipe.mapping.problem import Flow, MappingProblem
from parapipe.mapping.registry import mapper
from parapipe.mapping.verify import verify, verify_answer
from tests.cases.random_dags import dags, least_makespan_s

MICRO = 1e-6


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


@pytest.fixture
def no_search(monkeypatch):
    def refuse(*_given, **_options):
        pytest.fail("CP-SAT was given a large problem")

    monkeypatch.setattr(cp_sat, "solve", refuse)


@settings(max_examples=60, deadline=None)
@given(dags(most_operators=5))
def test_bound_and_schedule_are_on_either_side_of_the_optimum(problem) -> None:
    found = large.scheduled(problem, seed=0, began_s=perf_counter())
    verify(problem, found)
    optimum_s = least_makespan_s(problem)
    assert found.certificate.bound_s <= optimum_s + 1e-12
    assert found.makespan_s >= optimum_s - 1e-12


@pytest.mark.usefixtures("no_search")
@pytest.mark.parametrize("name", ["auto", "fine"])
def test_a_thousand_branches_come_within_five_percent_of_the_bound(name) -> None:
    problem = fan(1000)
    found = mapper(name)(problem, time_limit_s=60, seed=0)
    verify(problem, found)
    assert not found.certificate.proven
    assert 0 < found.certificate.gap < 0.05


@pytest.mark.usefixtures("no_search")
def test_the_limit_of_the_search_is_said_in_operators(monkeypatch) -> None:
    problem = fan(10)
    monkeypatch.setattr("parapipe.mapping.fine.mapper.MOST_SEARCHED", 20)
    found = mapper("fine")(problem, time_limit_s=60, seed=0)
    assert found.certificate.solver == "list scheduling and loads"
    monkeypatch.setattr("parapipe.mapping.fine.mapper.MOST_SEARCHED", 21)
    with pytest.raises(pytest.fail.Exception):
        mapper("fine")(problem, time_limit_s=60, seed=0)


@pytest.mark.usefixtures("no_search")
def test_time_is_traded_for_energy_between_the_two_ends_only() -> None:
    problem = fan(250)
    rng = random.Random(1)
    energy_j = tuple(tuple(rng.uniform(0.1, 1.0) for _ in row) for row in problem.time_s)
    fastest = mapper("fine")(problem, time_limit_s=60, seed=0)
    found = trade_offs(problem, energy_j, fastest, resolution=0.05, time_limit_s=60, seed=0)
    verify_answer(problem, found, energy_j)
    assert len(found.schedules) == 2
    assert found.resolution > 0.05


def test_where_transfers_occupy_a_link_the_bound_of_pure_delays_holds() -> None:
    problem = fan(250)
    link = tuple(tuple(None if p == q else 3 for q in range(3)) for p in range(3))
    occupying = MappingProblem(problem.time_s, problem.flows, problem.structure, link)
    found = mapper("auto")(occupying, time_limit_s=60, seed=0)
    verify(occupying, found)
    pure = mapper("auto")(problem, time_limit_s=60, seed=0)
    assert found.certificate.bound_s == pytest.approx(pure.certificate.bound_s)
